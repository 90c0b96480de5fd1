"""The golden corpus returns the same rows from Delta tables as from Parquet tables.

Queries also read the same numbers of files.
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

# The corpus file `statements` shows table formats and ranges of files, which differ for Delta.
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


# For the earliest time, `date_trunc` fails from Spark 4.2 on; older versions return the latest day.
OVERFLOW = re.compile(r"FROM ends WHERE date_trunc\(")


class DeltaEngine(SparkEngine):
    """A session that makes Delta tables instead of Parquet tables."""

    def run(self, sql: str) -> Result:
        """Runs a statement; the rows have the format in which spark-sql prints them."""
        if sql.startswith("ANALYZE TABLE"):
            # Spark refuses this statement for Delta tables, which have their own statistics.
            return Result(())
        if SPARK < (4, 0):
            # Delta 3.3 refuses TRUNCATE; DELETE returns a count, which the corpus does not contain.
            emptied = re.sub(r"^TRUNCATE TABLE", "DELETE FROM", sql)
            if emptied != sql:
                super().run(emptied)
                return Result(())
        return super().run(sql.replace("USING parquet", "USING delta"))


def without_overflows(engine: SparkEngine, script: Script) -> Script:
    """The script without the statements that fail on this Spark even without an index."""
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
    """A statement returns the rows of its ``.out`` file, and reads at most the allowed files."""
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
