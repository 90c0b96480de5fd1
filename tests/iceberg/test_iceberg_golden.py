"""Queries of the golden corpus return the same rows from Iceberg tables as from Parquet tables.

The queries also read at most the allowed number of files.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus import read_script
from engines import Result, SparkEngine
from iceberg_tables import NO_BOUNDS
from running import answers, differences, prepare
from spark_session import Lab

pytestmark = pytest.mark.iceberg

OTHERS = {
    # The results of these scripts contain formats, ranges or folder names, which differ for
    # Iceberg.
    "statements",
    "partitions",
    # This script tests writes of Hive and of Spark.
    "writes",
    # In Iceberg files, fields of structs in arrays can have other names. CREATE refuses such
    # fields.
    "structarrays",
}
SCRIPTS = [
    pytest.param(path, id=path.stem)
    for path in sorted((Path(__file__).parents[1] / "golden").glob("*.sql"))
    if path.stem not in OTHERS
]
PROPERTIES = NO_BOUNDS | {"write.distribution-mode": "none"}
TOLD = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())


class IcebergEngine(SparkEngine):
    """An engine that creates Iceberg tables where the corpus creates Parquet tables."""

    def run(self, sql: str) -> Result:
        """Runs a statement; the rows have the format in which spark-sql prints rows."""
        if sql.startswith("ANALYZE TABLE"):
            # The engine skips ANALYZE TABLE, because Iceberg tables have their own statistics.
            return Result(())
        # Without the hint, Iceberg would read several small files in one task, and the task would
        # write one file.
        sql = sql.replace("AS SELECT a FROM t", "AS SELECT /*+ REPARTITION(2) */ a FROM t")
        return super().run(re.sub(r"USING parquet", f"USING iceberg TBLPROPERTIES ({TOLD})", sql))


@pytest.mark.parametrize("path", SCRIPTS)
def test_same_rows_of_iceberg_tables(lab: Lab, path: Path) -> None:
    """Each statement returns its ``.out`` file's rows, and reads no more files than allowed."""
    script = read_script(path)
    with lab.database(f"golden_{script.name}") as database:
        engine = IcebergEngine(lab.spark.newSession())
        engine.run(f"USE {database}")
        engine.run("SET spark.sql.shuffle.partitions=2")
        prepare(engine, script)
        wrong = differences(script, "strict", answers(engine, "strict", script, every=2))
    assert not wrong, "\n".join(wrong)
