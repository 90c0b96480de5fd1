"""Makes a sample of the current format: ``python -m tests.compat.make FOLDER``; samples stay.

A sample is a root with the folders of some indexes, and ``keys.json``. For each index, by its UUID,
``keys.json`` has the column's values in every file of the table.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from pyspark.sql import functions as sf

from tests.spark_session import Lab, start_session

# The paths in a sample must not name anybody's home folder.
HOME = Path("/tmp/sieve-compat")
COLUMNS = {
    "n": "auto",
    "r": "runs",
    "e": "sieve",
    "u": "map",
    "s": "auto",
    "t": "map",
    "c": "intervals",
}
ROWS = """
    SELECT id AS n, id * 7919 % 3000 AS r, id DIV 3 AS e, xxhash64(id) AS u,
           concat('https://example.org/', id * 31 % 1000) AS s, md5(CAST(id AS STRING)) AS t,
           CAST(id * 1000000007 AS DECIMAL(25, 3)) AS c
    FROM range({first}, {last}, 1, {files})
"""


def make(sample: Path) -> None:
    """Creates and indexes a table of twenty files, adds four files and refreshes the index."""
    lab = Lab(start_session(HOME))
    lab.sql(f"CREATE TABLE t USING parquet AS {ROWS.format(first=0, last=1000, files=20)}")
    for column, shape in COLUMNS.items():
        lab.sql(f"CREATE SIEVE INDEX ON t ({column}) OPTIONS (shape = '{shape}')")
    lab.sql(f"INSERT INTO t {ROWS.format(first=1000, last=1200, files=4)}")
    lab.sql("REFRESH SIEVE INDEX ON t")
    keys = {}
    for column in COLUMNS:
        (text,) = lab.sql(f"SHOW TBLPROPERTIES t ('sieve.index.{column}_sieve')")
        rows = lab.spark.table("t").select(sf.col("_metadata.file_name"), sf.col(column))
        held: dict[str, list[object]] = {}
        for name, value in rows.collect():
            held.setdefault(name, []).append(value if isinstance(value, int | str) else str(value))
        keys[json.loads(text[1])["uuid"]] = held
    shutil.copytree(HOME / "warehouse" / ".sieve", sample, ignore=shutil.ignore_patterns(".*"))
    (sample / "keys.json").write_text(json.dumps(keys, indent=None, separators=(",", ":")))
    lab.spark.stop()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
