"""Delta tables for tests: files without statistics, so that what is skipped the index skips."""

from __future__ import annotations

from spark_session import Lab

NO_STATISTICS = {"delta.dataSkippingNumIndexedCols": "0"}
MAPPED = {"delta.columnMapping.mode": "name"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def create(
    lab: Lab,
    name: str = "t",
    columns: str = "id BIGINT, v STRING",
    more: str = "",
    **properties: dict[str, str],
) -> None:
    """An empty table; ``properties`` are merged, whatever their names."""
    merged = dict(NO_STATISTICS)
    for some in properties.values():
        merged |= some
    given = ", ".join(f"'{key}' = '{value}'" for key, value in merged.items())
    lab.sql(f"DROP TABLE IF EXISTS {name}")
    lab.sql(f"CREATE TABLE {name} ({columns}) USING delta {more} TBLPROPERTIES ({given})")


def insert(lab: Lab, select: str, name: str = "t", files: int = 10) -> None:
    """Rows of ``range``, 10 to a file, by expressions over ``id`` from 0 to 10 * files - 1."""
    lab.sql(
        f"INSERT INTO {name} SELECT /*+ REPARTITION_BY_RANGE({files}, id) */ {select} "
        f"FROM range(0, {10 * files})"
    )
