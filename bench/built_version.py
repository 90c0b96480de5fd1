"""Writes an index version to disk with Sieve's own code; needs neither Spark nor a table.

The version's locations are files, or ranges of files. The domain of keys is divided into one part
per location, and location i covers all keys of part i. So the version resembles an index on a table
whose rows are in order of time. Each file also has short intervals at random keys, as late rows
cause them.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sieve.encoding.encoder import Encoder
from sieve.metadata.file_list import Locations, render_locations, states_of
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest, parse_manifest, render_manifest
from sieve.metadata.records import (
    BuildStats,
    CreatedBy,
    IndexUuid,
    LocationsRef,
    PartRef,
    RunId,
    TableIdentity,
    VersionId,
)
from sieve.reader.run_file import describe_run
from sieve.segments.intervals.cut_gaps import Intervals
from sieve.segments.intervals.plan_segments import Segment, plan
from sieve.segments.query_model import QueryModel
from sieve.storage.interface import READ_LIMIT
from sieve.storage.local import LocalStore

SPAN = 1 << 40
EACH = 20
"""Number of intervals of each file in the index."""
RANGE_BYTES = 128 << 20
# Number of intervals in each file of the run. A build's task receives half a million intervals, and
# merges them to about half that number.
_INTERVALS_A_FILE = 250_000
# This cost per byte is so low that the build merges no intervals.
_PRICE = 1e-9
TABLE = "hdfs://namenode:8020/warehouse/shop.db/orders"


@dataclass(frozen=True, slots=True)
class CountingStore(LocalStore):
    """A local store that records the size of each file that it reads."""

    sizes: list[int] = field(default_factory=list)

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        """Reads a file, and records the file's size."""
        data = LocalStore.read(self, uri, limit)
        self.sizes.append(len(data))
        return data


@dataclass(frozen=True, slots=True)
class BuiltVersion:
    """An index version on disk.

    Attributes:
        root: the root, which contains the index's folder.
        manifest: the version's manifest.
        entries: number of intervals in the version's run.
        seconds: time that it took to write the version.
    """

    root: Path
    manifest: Manifest
    entries: int
    seconds: float


def make_version(root: Path, n_files: int, ranges: int = 1) -> BuiltVersion:
    """Writes a version below `root`. Each file has `ranges` ranges, at most `EACH`."""
    started = time.perf_counter()
    folder = root / str(uuid := IndexUuid("0b9f3c1e-5a55-4b1c-9d0e-0123456789ab"))
    run_id = RunId(secrets.token_hex(16))
    files, entries = [], 0
    (folder / "runs" / run_id).mkdir(parents=True)
    for number, segments in enumerate(_stretches(n_files, ranges)):
        entries += sum(segment.postings for segment in segments)
        name = f"part-{number:05d}-{secrets.token_hex(16)}-c000.zstd.parquet"
        files.append((name, _run_file(segments)))
        (folder / "runs" / run_id / name).write_bytes(files[-1][1])
    run = describe_run(run_id, n_files * ranges, Encoder("bigint"), files)
    assert run is not None
    manifest = Manifest(
        index=uuid,
        version=1,
        id=VersionId(secrets.token_hex(16)),
        parent=None,
        instant="2026-01-31T09:30:00.123Z",
        state="ready",
        table=TableIdentity("spark_catalog", "shop", "orders", 1, TABLE),
        name="id_sieve",
        column=("id",),
        type="bigint",
        comment=None,
        options=IndexOptions(),
        next_options=None,
        format_name="parquet",
        null_proof=True,
        fingerprint="0" * 64,
        fingerprint_parts={},
        runs=(run,),
        locations=_locations(folder, n_files, ranges),
        roots=(TABLE,),
        stats=BuildStats(entries, 0, 0, 8 * entries, 1.0, (), n_files, n_files * ranges, 0),
        created_by=CreatedBy("0", "4.1"),
    )
    data = render_manifest(manifest)
    (folder / "versions").mkdir()
    (folder / "versions" / "1.json").write_bytes(data)
    return BuiltVersion(root, parse_manifest(data), entries, time.perf_counter() - started)


def _stretches(n_files: int, ranges: int) -> Iterator[list[Segment]]:
    """The segments of each run file.

    The files cover consecutive parts of the key domain.
    """
    rng = np.random.default_rng(n_files)
    n_locations = n_files * ranges
    own = SPAN // n_locations
    n = n_files * EACH
    first = rng.integers(0, SPAN - own, n)
    last = first + rng.integers(0, own // 50, n)
    # Each of a file's first `ranges` intervals covers one location's whole part of the domain.
    place = np.arange(n) % EACH
    location = np.arange(n) // EACH * ranges + place % ranges
    is_own = place < ranges
    first[is_own] = location[is_own] * own
    last[is_own] = first[is_own] + own - 1
    ordinal = location.astype(np.int32)
    query_model = QueryModel.of_sample(rng.integers(0, SPAN, 1 << 16))
    files = -(-n // _INTERVALS_A_FILE)
    for number in range(files):
        low, high = SPAN * number // files, SPAN * (number + 1) // files - 1
        inside = (first <= high) & (last >= low)
        ones = np.ones(int(inside.sum()), np.int64)
        clipped = np.maximum(first[inside], low), np.minimum(last[inside], high)
        yield list(plan(Intervals(*clipped, ordinal[inside], ones, ones), query_model).emit(_PRICE))


def _run_file(segments: list[Segment]) -> bytes:
    names = ("first", "last", "keys", "rows", "blocks", "payload")
    columns = {name: [getattr(segment, name) for segment in segments] for name in names}
    table = pa.table({"shape": ["intervals"] * len(segments)} | columns)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def built_list(n: int, ranges: int = 1) -> Locations:
    """The file list of a table in folder `TABLE`. Each range of a file has `EACH` rows."""
    # The files are in a store's listing order: the files of a folder are adjacent.
    names = sorted(f"day={k % 365}/part-{k:05d}-{k:032x}.c000.snappy.parquet" for k in range(n))
    ones = np.ones(n, np.int64)
    cut = None
    if ranges > 1:
        each = np.ones(n * ranges, np.int64)
        starts = np.tile(np.arange(ranges) * RANGE_BYTES, n)
        cut = FileRanges(ones * ranges, ones << 16, starts, each * EACH, each * 0, each * 0)
    return Locations(
        tuple(f"{TABLE}/{name}" for name in names),
        states_of(n), ones * ranges * RANGE_BYTES, 1_760_000_000_000 + ones,
        ones * ranges * EACH, ones * 0, ones * 0, np.arange(n) * ranges, ranges=cut,
    )  # fmt: skip


def _locations(folder: Path, n: int, ranges: int) -> LocationsRef:
    data = render_locations(built_list(n, ranges), (TABLE,))
    name = f"{secrets.token_hex(16)}.parquet"
    (folder / "locations").mkdir()
    (folder / "locations" / name).write_bytes(data)
    part = PartRef(name, len(data), hashlib.sha256(data).hexdigest(), n)
    return LocationsRef((part,), n)
