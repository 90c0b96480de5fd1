"""CREATE refuses some Hudi tables, and gives the reason; queries of such tables still work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bundle
import pytest
import tables
from pyspark.errors import PySparkException
from spark_session import Lab

sys.path.insert(0, str(Path(__file__).parent.parent / "fault"))

from driver import DriverError, driver

from sieve.client.spark_conf import EXTENSIONS

pytestmark = pytest.mark.hudi


def refused(lab: Lab, words: str) -> None:
    """Checks that CREATE refuses the table, with ``words`` in its error."""
    with pytest.raises(PySparkException, match=rf"(?s)SIEVE_UNSUPPORTED_TABLE.*{words}"):
        lab.sql("CREATE SIEVE INDEX ON t (id)")


def test_a_table_of_an_older_version(lab: Lab) -> None:
    """CREATE refuses a table of Hudi's table version 6.

    In table version 6, log files have fixed names, and can contain rows of incomplete commits.
    """
    with lab.database("hudi_old"), lab.setting("hoodie.write.table.version", "6"):
        tables.create(lab, "mor", parts=True, hoodie__write__table__version="6")
        tables.fill(lab, 0, 10)
        refused(lab, "Hudi table of version 6.*upgrade")
        assert lab.sql("SELECT count(*) FROM t WHERE id = 3") == [(1,)]


def test_a_table_without_a_commit(lab: Lab) -> None:
    """CREATE refuses a table without commits, which has no slices.

    To Spark, Hudi presents a table without commits as a different kind of relation.
    """
    with lab.database("hudi_empty"):
        tables.create(lab, "cow", parts=True)
        refused(lab, "Hudi table without a commit.*insert rows first")


def test_base_files_of_another_format(lab: Lab) -> None:
    """CREATE refuses base files that are not Parquet, as other formats have other readers."""
    with lab.database("hudi_orc"):
        tables.create(lab, "cow", parts=True, hoodie__table__base__file__format="ORC")
        with lab.setting("hoodie.table.base.file.format", "ORC"):
            tables.fill(lab, 0, 10)
        refused(lab, "Hudi table whose base files are ORC")


def test_a_partition_column(lab: Lab) -> None:
    """CREATE refuses a partition column, because Hudi already skips partitions."""
    with lab.database("hudi_partition"):
        tables.create(lab, "cow", parts=True)
        tables.fill(lab, 0, 10)
        with pytest.raises(PySparkException, match="SIEVE_PARTITION_COLUMN"):
            lab.sql("CREATE SIEVE INDEX ON t (part)")


def _forms(run: Callable[[str], list[Any]]) -> None:
    """Hudi can parse some statements of Sieve, too.

    If Hudi can parse a statement, Sieve runs the statement only for indexes of Sieve. The checks
    use a Parquet table, a Hudi table, and a Hudi table with an index of Hudi.
    """
    run("CREATE TABLE plain USING parquet AS SELECT id, id * 7 AS ts FROM range(0, 40, 1, 4)")
    for table in ("plain", "t"):
        assert [row[0] for row in run(f"CREATE INDEX mine ON {table} USING sieve (ts)")] == ["mine"]
        refreshed = run(f"CALL sieve.refresh('{table}', index => 'mine')")
        assert [row[0] for row in refreshed] == ["mine"]
    assert run("CALL show_commits(table => 't')")
    for text in ("CREATE INDEX i ON t USING bogus (ts)", "DROP INDEX i ON t", "CALL other.x()"):
        with pytest.raises(Exception) as refusal:  # noqa: PT011 - Hudi or Spark raises it
            run(text)
        assert "SIEVE_" not in str(refusal.value)
    run(
        f"CREATE TABLE h ({tables.COLUMNS}) USING hudi TBLPROPERTIES (primaryKey = 'id', "
        "preCombineField = 'ts', 'hoodie.metadata.enable' = 'true', "
        "'hoodie.metadata.record.index.enable' = 'true')"
    )
    run(f"INSERT INTO h {tables.rows(0, 10)}")
    run(f"SET hoodie.write.lock.provider = {tables.LOCK}")
    run("CREATE INDEX by_word ON h (word)")
    (theirs,) = (str(row[0]) for row in run("SHOW INDEXES FROM h") if "by_word" in str(row[0]))
    assert run("SHOW SIEVE INDEXES ON h") == []
    run(f"DROP INDEX {theirs} ON h")
    assert theirs not in [str(row[0]) for row in run("SHOW INDEXES FROM h")]
    run("RESET hoodie.write.lock.provider")
    for table in ("plain", "t"):
        assert [row[0] for row in run(f"DROP INDEX IF EXISTS mine ON {table}")] == ["mine"]
        assert "mine" not in [row[0] for row in run(f"SHOW SIEVE INDEXES ON {table}")]


def test_forms_work_if_the_extension_of_sieve_comes_first(lab: Lab) -> None:
    """If Sieve's extension comes first, Spark calls Sieve's parser last, but statements work."""
    with lab.database("hudi_forms"):
        tables.create(lab, "cow", parts=False)
        tables.fill(lab, 0, 10)
        _forms(lab.sql)


def test_extensions_in_the_other_order_and_a_driver_without_hudi(tmp_path: Path) -> None:
    """The extensions of Hudi and Sieve work in either order.

    In a driver without Hudi, CREATE of a Hudi table fails with an error that names Hudi.
    """
    conf = bundle.conf((bundle.HUDI_EXTENSION, EXTENSIONS))
    with driver(tmp_path / "one", **conf) as one:
        one.sql("SET hoodie.enable.data.skipping = false")
        one.sql(
            f"CREATE TABLE t ({tables.COLUMNS}) USING hudi PARTITIONED BY (part) "
            "TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
        )
        one.sql(f"INSERT INTO t {tables.rows(0, 400)}")
        one.sql("UPDATE t SET amount = 5000 WHERE id = 250")
        one.sql("CREATE SIEVE INDEX ON t (amount)")
        assert one.files("SELECT * FROM t WHERE amount = 5000") == 1
        with pytest.raises(DriverError, match="SIEVE_SYNTAX_ERROR"):
            one.sql("CREATE SIEVE INDEX t")
        _forms(one.sql)
        location = next(row[1] for row in one.sql("DESCRIBE EXTENDED t") if row[0] == "Location")
    with driver(tmp_path / "two") as two:
        two.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
        with pytest.raises(DriverError, match="hudi"):
            two.sql(f"CREATE TABLE t USING hudi LOCATION '{location}'")
        two.sql("CREATE SIEVE INDEX ON p (id)")
        assert two.sql("SELECT * FROM p WHERE id = 1") == [[1]]
