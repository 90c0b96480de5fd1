"""A fact table and dimension tables, and the check of a query that joins these tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame
from spark_session import Lab, scans

FILES = 40
JOIN = "SELECT fact.k, v, attr FROM fact JOIN dim ON fact.k = dim.k"


def create(lab: Lab) -> None:
    """Creates a fact table of forty files with a hundred keys each, and one dimension.

    The keys ascend from file to file, and the dimension contains every twentieth key.

    A second fact table also has forty files, which are in four partitions.
    """
    lab.sql(
        "CREATE TABLE fact USING parquet AS SELECT id AS k, CAST(id AS INT) AS i, "
        "CAST(id AS STRING) AS s, CASE id WHEN 150 THEN DOUBLE('NaN') WHEN 250 THEN -0.0D "
        "WHEN 350 THEN NULL ELSE id + 0.5D END AS d, STRUCT(id AS n) AS st, "
        "DATE_ADD(DATE '2020-01-01', CAST(id AS INT)) AS day, id % 7 AS v "
        f"FROM range(0, 4000, 1, {FILES})"
    )
    lab.sql(
        "CREATE TABLE dim USING parquet AS SELECT id * 20 AS k, id % 100 AS attr, "
        "CAST(id * 20 AS STRING) AS s, CAST(id * 20 AS SMALLINT) AS i FROM range(0, 200, 1, 2) "
        "UNION ALL SELECT NULL, 77, NULL, NULL"
    )
    lab.sql(
        "CREATE TABLE parted USING parquet PARTITIONED BY (p) AS SELECT id AS k, id % 7 AS v, "
        f"id DIV 1000 AS p FROM range(0, 4000, 1, {FILES})"
    )
    lab.sql("CREATE SIEVE INDEX ON fact (k, i, s, d, st.n, day)")
    lab.sql("CREATE SIEVE INDEX ON parted (k)")


def fact_files(frame: DataFrame) -> int:
    """The number of files of `fact` that an executed query read."""
    return sum(
        scan.metrics().apply("numFiles").value()
        for scan in scans(frame._jdf.queryExecution().executedPlan())
        if scan.tableIdentifier().get().table() == "fact"
    )


def run(lab: Lab, query: str) -> tuple[Counter[str], int]:
    """Runs a query; returns its rows and the number of files of `fact` that it read."""
    frame = lab.spark.sql(query)
    rows = Counter(repr(tuple(row)) for row in frame.collect())
    return rows, fact_files(frame)


_ROWS: dict[str, Counter[str]] = {}


def without(lab: Lab, query: str) -> Counter[str]:
    """Returns a query's rows without Sieve.

    The first call caches the rows, because all plans of a query return the same rows.
    """
    if query not in _ROWS:
        with lab.setting("spark.sieve.enabled", "false"):
            _ROWS[query], _ = run(lab, query)
    return _ROWS[query]


def check(lab: Lab, query: str, files: int, conf: Mapping[str, str] | None = None) -> None:
    """Asserts that a query returns the same rows as without Sieve, and reads this many files."""
    strict = {"spark.sieve.strict": "true", "spark.sieve.audit.sample": "1.0"}
    with lab.settings(strict | (conf or {})):
        on, read = run(lab, query)
    assert on == without(lab, query), f"other rows: {query}"
    assert read == files, f"read {read} files of fact, not {files}: {query}"


PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}
SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
LONG = pytest.mark.long
FETCHED = SHUFFLED | {"spark.sieve.join.pruning": "always"}
MODES = {
    "adaptive": {},
    "planned once": PLANNED_ONCE,
    "fetched": FETCHED,
    "fetched, planned once": FETCHED | PLANNED_ONCE,
}
