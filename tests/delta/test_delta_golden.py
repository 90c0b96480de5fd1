"""The golden corpus over Delta tables: the rows, and the files read, of the Parquet tables."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark
import pytest
from corpus import read_script
from engines import Result, SparkEngine
from running import answers, differences, prepare
from spark_session import Lab

pytestmark = pytest.mark.delta

# These statements show the table's format and ranges of its files.
OTHERS = {"statements"}
SCRIPTS = [
    pytest.param(path, id=path.stem)
    for path in sorted((Path(__file__).parents[1] / "golden").glob("*.sql"))
    if path.stem not in OTHERS
]
SETTINGS = {
    # What is skipped the index skips.
    "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols": "0",
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


class DeltaEngine(SparkEngine):
    """A session that makes Delta tables in the place of Parquet tables."""

    def run(self, sql: str) -> Result:
        """Rows as spark-sql prints them."""
        if pyspark.__version__.startswith("3."):
            # Delta 3.3 refuses TRUNCATE, and counts what it deletes.
            emptied = re.sub(r"^TRUNCATE TABLE", "DELETE FROM", sql)
            if emptied != sql:
                super().run(emptied)
                return Result(())
        return super().run(sql.replace("USING parquet", "USING delta"))


@pytest.mark.parametrize("path", SCRIPTS)
def test_same_rows_of_delta_tables(lab: Lab, path: Path) -> None:
    """A statement gives the rows of its ``.out`` file, and reads no more files than it may."""
    script = read_script(path)
    with lab.database(f"golden_{script.name}") as database:
        engine = DeltaEngine(lab.spark.newSession())
        engine.run(f"USE {database}")
        for key, value in SETTINGS.items():
            engine.run(f"SET {key}={value}")
        prepare(engine, script)
        wrong = differences(script, "strict", answers(engine, "strict", script))
    assert not wrong, "\n".join(wrong)
