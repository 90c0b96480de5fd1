"""Queries of the golden corpus return the same rows from Delta tables as from Parquet tables.

The queries also read at most the allowed number of files.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from corpus import Script, read_script
from delta_tables import SPARK
from engines import Result, SparkEngine
from py4j.protocol import Py4JJavaError
from running import answers, differences, prepare
from spark_session import Lab

pytestmark = pytest.mark.delta

# The script `statements` prints table formats and file ranges. The formats and ranges differ for
# Delta tables.
OTHERS = {"statements"}
SCRIPTS = [
    pytest.param(path, id=path.stem)
    for path in sorted((Path(__file__).parents[1] / "golden").glob("*.sql"))
    if path.stem not in OTHERS
]
SETTINGS = {
    # Without Delta's statistics, only the index skips files.
    "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols": "0",
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


# From Spark 4.2 on, `date_trunc` fails for the earliest time. Older versions return the latest day
# instead.
OVERFLOW = re.compile(r"FROM ends WHERE date_trunc\(")


class DeltaEngine(SparkEngine):
    """An engine that creates Delta tables where the corpus creates Parquet tables."""

    def run(self, sql: str) -> Result:
        """Runs a statement; the rows have the format in which spark-sql prints rows."""
        if sql.startswith("ANALYZE TABLE"):
            # Spark refuses ANALYZE TABLE for Delta tables, which have their own statistics.
            return Result(())
        if SPARK < (4, 0):
            # Delta 3.3 refuses TRUNCATE. In Delta, DELETE returns the number of deleted rows, but
            # the corpus expects no result.
            emptied = re.sub(r"^TRUNCATE TABLE", "DELETE FROM", sql)
            if emptied != sql:
                super().run(emptied)
                return Result(())
        return super().run(sql.replace("USING parquet", "USING delta"))


def without_overflows(engine: SparkEngine, script: Script) -> Script:
    """Returns the script, but omits statements that fail on this Spark even without an index."""
    engine.run("SET spark.sieve.enabled=false")
    queries = []
    for query in script.queries:
        if OVERFLOW.search(query.sql):
            with pytest.raises(Py4JJavaError, match="long overflow"):
                engine.run(query.sql)
            queries.append(replace(query, modes=()))
        else:
            queries.append(query)
    engine.run("SET spark.sieve.enabled=true")
    return replace(script, queries=tuple(queries))


@pytest.mark.parametrize("path", SCRIPTS)
def test_same_rows_of_delta_tables(lab: Lab, path: Path) -> None:
    """Each statement returns its ``.out`` file's rows, and reads no more files than allowed."""
    script = read_script(path)
    with lab.database(f"golden_{script.name}") as database:
        engine = DeltaEngine(lab.spark.newSession())
        engine.run(f"USE {database}")
        for key, value in SETTINGS.items():
            engine.run(f"SET {key}={value}")
        prepare(engine, script)
        if SPARK >= (4, 2):
            script = without_overflows(engine, script)
        wrong = differences(script, "strict", answers(engine, "strict", script))
    assert not wrong, "\n".join(wrong)
