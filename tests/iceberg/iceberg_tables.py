"""Creates and fills Iceberg tables without column bounds, so that only the index skips files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spark_session import Lab, scans

NO_BOUNDS = {"write.metadata.metrics.default": "none"}
SMALL_ROW_GROUPS = {
    f"write_parquet_row__group__{name}": value
    for name, value in (
        ("size__bytes", 100),
        ("check__min__record__count", 20),
        ("check__max__record__count", 20),
    )
}
"""Properties for `create` that make row groups of 20 rows."""
AUDITED = {"spark.sieve.audit.sample": "1.0", "spark.sieve.strict": "true"}
"""Settings with which an audit reads all skipped files."""
ROWS = "id, concat('v', id % 7) v"
"""The SELECT list for the rows that `insert` inserts."""


@contextmanager
def namespace(lab: Lab, name: str) -> Iterator[None]:
    """Creates a namespace, and makes it the session's current namespace in the block."""
    lab.sql(f"CREATE NAMESPACE {name}")
    lab.sql(f"USE {name}")
    try:
        yield
    finally:
        lab.sql("USE spark_catalog.default")
        for _, table, *_ in lab.sql(f"SHOW TABLES IN {name}"):
            lab.sql(f"DROP TABLE {name}.{table} PURGE")
        # If a catalog stores tables as folders, it cannot drop a folder that still contains
        # indexes.
        if not name.startswith("files."):
            lab.sql(f"DROP NAMESPACE {name}")


def create(
    lab: Lab,
    name: str = "t",
    columns: str = "id BIGINT, v STRING",
    more: str = "",
    **properties: str | int,
) -> None:
    """Creates an empty table.

    In the names of properties, one underscore stands for a dot, and two underscores stand for a
    hyphen.
    """
    given: Mapping[str, str] = NO_BOUNDS | {
        key.replace("__", "-").replace("_", "."): str(value) for key, value in properties.items()
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    lab.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {more} TBLPROPERTIES ({listed})")


def insert(lab: Lab, select: str = ROWS, name: str = "t", files: int = 10, start: int = 0) -> None:
    """Inserts ten rows per file; ``select`` computes each row from its ``id``."""
    lab.sql(
        f"INSERT INTO {name} SELECT /*+ REPARTITION_BY_RANGE({files}, id) */ {select} "
        f"FROM range({start}, {start + 10 * files})"
    )


def wait_for_state(lab: Lab, name: str, state: str = "ready") -> None:
    """Waits until all indexes of a table have the given state.

    Spark reports a command at its end, so a refresh starts only then.
    """
    deadline = time.monotonic() + 60
    while any(row[6] != state for row in lab.sql(f"SHOW SIEVE INDEXES ON {name}")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def bytes_read(lab: Lab, query: str) -> int:
    """How many bytes a query's scans with an index read, by Spark's metric "size of files read"."""
    frame = lab.spark.sql(query)
    frame.collect()
    found = (s.metrics() for s in scans(frame._jdf.queryExecution().executedPlan()))
    return sum(int(own.apply("filesSize").value()) for own in found if own.contains("filesSize"))


def sizes(lab: Lab, predicate: str, name: str = "t") -> int:
    """The total size of the files that contain a matching row, from Iceberg's metadata.

    Args:
        name: a table in the current namespace.
    """
    with lab.setting("spark.sieve.enabled", "false"):
        found = [
            path for (path,) in lab.sql(f"SELECT DISTINCT _file FROM {name} WHERE {predicate}")
        ]
        at = lab.spark.catalog.currentDatabase()
        files = lab.sql(
            f"SELECT file_path, file_size_in_bytes FROM spark_catalog.{at}.{name}.files"
        )
    return sum(int(size) for path, size in files if path in found)
