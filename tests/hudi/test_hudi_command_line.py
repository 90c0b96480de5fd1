"""Tests the option ``--hudi`` of ``sieve submit``, ``thriftserver start`` and ``sql``."""

from __future__ import annotations

import json
from pathlib import Path

import bundle
import pytest
from command import sieve
from ports import free_ports
from thrift_session import thrift_session

pytestmark = pytest.mark.hudi

PROGRAM = """
import json, sys
sys.path.insert(0, {tests!r})
from spark_session import Lab
from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
lab = Lab(spark)
lab.sql(
    "CREATE TABLE t (id BIGINT, amount BIGINT, ts BIGINT, part INT) USING hudi "
    "PARTITIONED BY (part) TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
)
lab.sql("INSERT INTO t SELECT id, id * 7919 % 1000, 1, id div 100 FROM range(400)")
lab.sql("CREATE SIEVE INDEX ON t (amount)")
found = lab.check("SELECT id FROM t WHERE amount = 345 * 7919 % 1000")
print(json.dumps([list(found.rows), found.files]))
spark.stop()
"""
QUERY = "SELECT id FROM t WHERE amount = 345 * 7919 % 1000"


def test_a_program_a_server_and_a_shell(tmp_path: Path) -> None:
    """A program creates a table and an index; a Thrift server and a shell then use this index."""
    jars = ["--hudi", "--jars", str(bundle.bundle())]
    small = ["--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false"]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(tests=str(Path(__file__).parents[1])))
    told = sieve(tmp_path, "submit", *jars, *small, str(program)).splitlines()[-1]
    assert json.loads(told) == [["(345,)"], 1]

    (port,) = free_ports(1)
    sieve(tmp_path, "thriftserver", "start", "--port", str(port), *jars, *small)
    try:
        with thrift_session(port) as connection, connection.cursor() as cursor:
            rows = {}
            for on in ("false", "true"):
                cursor.execute(f"SET spark.sieve.enabled = {on}")
                cursor.execute(QUERY)
                rows[on] = cursor.fetchall()
            assert rows["true"] == rows["false"] == [(345,)]
            cursor.execute(f"EXPLAIN SIEVE {QUERY}")
            names = [column[0] for column in cursor.description]
            facts = dict(zip(names, cursor.fetchone(), strict=True))
            assert (facts["files_total"], facts["files_read"]) == (4, 1)
            cursor.execute("UPDATE t SET amount = 5000 WHERE id = 345")
            cursor.execute("REFRESH SIEVE INDEX ON t")
            cursor.execute("SELECT id FROM t WHERE amount = 5000")
            assert cursor.fetchall() == [(345,)]
    finally:
        sieve(tmp_path, "thriftserver", "stop", "--port", str(port))

    shown = sieve(tmp_path, "sql", *jars, *small, "-e", "SELECT id FROM t WHERE amount = 5000")
    # Hudi also prints a warning about object sizes to standard output.
    assert shown.splitlines()[-1] == "345"
