"""Creates and fills Delta tables whose files have no statistics, so only the index skips files."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pyspark
from spark_session import Lab

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
"""The release line of Spark, such as (4, 1)."""
NO_STATISTICS = {"delta.dataSkippingNumIndexedCols": "0"}
MAPPED = {"delta.columnMapping.mode": "name"}
# In Delta 3.3, REPLACE gives mapped columns new names in the files, so existing indexes do not fit.
REPLACEABLE = {} if SPARK < (4, 0) else MAPPED
VECTORS = {"delta.enableDeletionVectors": "true"}
AUDITED = {"spark.sieve.audit.sample": "1.0", "spark.sieve.strict": "true"}
"""Settings with which an audit reads all skipped files."""
ROWS = "id, concat('v', id % 7) v"
"""The SELECT list for the rows that `insert` inserts."""


def create(
    lab: Lab,
    name: str = "t",
    columns: str = "id BIGINT, v STRING",
    more: str = "",
    **properties: dict[str, str],
) -> None:
    """Creates an empty table with the properties of all given dictionaries."""
    merged = dict(NO_STATISTICS)
    for some in properties.values():
        merged |= some
    lab.sql(f"DROP TABLE IF EXISTS {name}")
    lab.sql(f"CREATE TABLE {name} ({columns}) USING delta {more} {given(merged)}")


def replace(lab: Lab) -> None:
    """Replaces `t` by a table with the keys 0 to 49 in 5 files."""
    lab.sql(
        f"CREATE OR REPLACE TABLE t USING delta {given(NO_STATISTICS | REPLACEABLE)} "
        "AS SELECT /*+ REPARTITION_BY_RANGE(5, id) */ id, 'x' v FROM range(50)"
    )


def given(properties: Mapping[str, str]) -> str:
    """A TBLPROPERTIES clause, or an empty string if there are no properties."""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    return f"TBLPROPERTIES ({listed})" if listed else ""


def insert(lab: Lab, select: str, name: str = "t", files: int = 10) -> None:
    """Inserts ten rows per file; ``select`` computes each row from ``id``, which starts at 0."""
    lab.sql(
        f"INSERT INTO {name} SELECT /*+ REPARTITION_BY_RANGE({files}, id) */ {select} "
        f"FROM range(0, {10 * files})"
    )


def wait_for(lab: Lab, index: str, fact: str, value: str) -> None:
    """Waits until DESCRIBE shows ``value`` for a fact of an index; fails after a minute."""
    deadline = time.monotonic() + 60
    while True:
        found = [row[1] for row in lab.sql(f"DESCRIBE SIEVE INDEX EXTENDED {index} ON t")
                 if row[0] == fact]  # fmt: skip
        if found == [value]:
            return
        assert time.monotonic() < deadline, f"{fact} is {found}, not {value}"
        time.sleep(0.5)
