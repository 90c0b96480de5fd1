"""Two Spark release lines share a metastore. Each line uses the indexes of the other line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import sieve

HOME_35 = Path(__file__).parents[2] / "build" / "spark-3.5"
ON_35 = {"SPARK_HOME": str(HOME_35 / "pyspark"), "PYTHONPATH": str(HOME_35)}
SHARED = {"i": "5", "s": "'text 5'", "c": "5.00", "d": "DATE '1970-01-06'"}
"""For each column that both lines read alike, a value that is in one of four files."""


def _build(table: str, kind: str) -> str:
    return (
        f"CREATE TABLE {table} USING {kind} AS SELECT CAST(id AS INT) i, 'text ' || id s, "
        "CAST(id AS DECIMAL(9,2)) c, date_from_unix_date(CAST(id AS INT)) d "
        "FROM range(0, 40, 1, 4);\n"
        f"CREATE SIEVE INDEX ON {table} (i, s, c, d);\n"
    )


def _read(table: str) -> str:
    queries = (f"SELECT i FROM {table} WHERE {c} = {v}" for c, v in SHARED.items())
    return "SET spark.sieve.prune.timeout = 30s;\n" + "".join(
        f"SELECT 'files read:', files_read, reasons FROM sieve_explain(\"{query}\");\n{query};\n"
        for query in queries
    )


@pytest.mark.soak
def test_each_line_uses_the_indexes_of_the_other(tmp_path: Path) -> None:
    """Queries of one Spark line use indexes that another line built.

    Spark 3.5 makes the metastore, because the later Spark can open a Derby database that 3.5 made.
    """
    made = {"p35": "parquet", "o35": "orc"}
    (tmp_path / "1.sql").write_text("".join(_build(*table) for table in made.items()))
    later = {"p41": "parquet", "o41": "orc"}
    refreshed = "".join(f"REFRESH SIEVE INDEX ON {table};\n" for table in made)
    text = "".join(map(_read, made)) + refreshed
    (tmp_path / "2.sql").write_text(text + "".join(_build(*table) for table in later.items()))
    (tmp_path / "3.sql").write_text("".join(map(_read, later)))
    sieve(tmp_path, "sql", "-f", "1.sql", **ON_35)
    for printed in (
        sieve(tmp_path, "sql", "-f", "2.sql"),
        sieve(tmp_path, "sql", "-f", "3.sql", **ON_35),
    ):
        lines = printed.splitlines()
        explained = [line.split("\t")[1:] for line in lines if line.startswith("files read:\t")]
        # Each printed result begins with a line of column names.
        assert explained == [["files_read", "reasons"], ["1", "NULL"]] * len(SHARED) * len(made)
        assert lines.count("5") == len(SHARED) * len(made)
        assert "reader-changed" not in printed
        assert "rebuilt" not in printed
