"""A manifest with all members, which tests copy and then change."""

from __future__ import annotations

from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import (
    BuildStats,
    CreatedBy,
    Expected,
    IndexUuid,
    LocationsRef,
    PartRef,
    RunFileRef,
    RunId,
    RunRef,
    TableIdentity,
    VersionId,
)

UUID = IndexUuid("0b9f3c1e-5a55-4b1c-9d0e-0123456789ab")
SAMPLE = Manifest(
    index=UUID,
    version=1,
    id=VersionId("1" * 32),
    parent=None,
    instant="2025-03-01T12:00:00.123Z",
    state="ready",
    table=TableIdentity("spark_catalog", "sales", "orders", 1_740_000_000_000, "file:/w/orders"),
    name="customer_sieve",
    column=("customer", "id"),
    type="decimal(10,2)",
    comment="größte Kunden",
    options=IndexOptions(budget="1%"),
    next_options=IndexOptions("sieve", budget="1%", error=50),
    format_name="parquet",
    null_proof=True,
    fingerprint="f" * 64,
    fingerprint_parts={"spark": "4.1", "timeZone": "UTC"},
    runs=(
        RunRef(
            id=RunId("a" * 32),
            locations=17,
            encoder={"type": "string", "prefix": "YWI="},
            files=(
                RunFileRef(
                    "part-00000-0a1b-c000.zstd.parquet",
                    4096,
                    "b" * 64,
                    ((-(1 << 63), -7), (-5, (1 << 63) - 1)),
                    ((12, 12),),
                ),
            ),
            segments=3,
            blocks=40,
            keys=1000,
            rows=5000,
            bytes=4096,
        ),
    ),
    locations=LocationsRef((PartRef("1" * 32 + ".parquet", 512, "c" * 64, 17),), 17),
    roots=("file:/w/orders", "hdfs://nn:8020/other place"),
    stats=BuildStats(
        *(5000, 10, 0, 40_000, 1.5),
        (Expected("present", 2.25, 2.0, 17.0, 2e6, 1.5e6),),
        *(17, 17, 9_000_000),
    ),
    created_by=CreatedBy("0.1.0", "4.1.4"),
)
