"""REFRESH reads a Delta table's log. If the log has gaps, REFRESH lists all files."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import pytest
from delta_tables import AUDITED, REPLACEABLE, ROWS, create, insert, replace
from processes import front_ends
from pyspark.errors import PySparkException
from spark_session import Lab

pytestmark = pytest.mark.delta


@pytest.fixture(autouse=True)
def table(lab: Lab) -> Iterator[None]:
    """Creates a table `t` of ten files with an index, in a database for each test."""
    with lab.database("refresh"), lab.settings(AUDITED):
        create(lab, mapping=REPLACEABLE)
        insert(lab, ROWS)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        yield


def log_of(lab: Lab) -> Path:
    """The folder that contains the table's commits."""
    folder = dict(row[:2] for row in lab.sql("DESCRIBE EXTENDED t"))["Location"]
    return Path(unquote(folder.removeprefix("file:"))) / "_delta_log"


def built(lab: Lab) -> tuple[str, str]:
    """The number of files in the newest index version, and the version of the Delta table."""
    facts = lab.facts()
    return facts["files"], facts["instant"].partition(" ")[2]


def test_refresh_lists_all_files_if_a_commit_is_missing(lab: Lab) -> None:
    """If a commit is missing in the log, REFRESH lists all files of the table.

    The refreshed index contains exactly the table's files.
    """
    lab.sql("INSERT INTO t VALUES (500, 'a')")
    lab.sql("DELETE FROM t WHERE id = 42")
    session = lab.spark._jsparkSession
    tables = lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog
    name = lab.spark._jvm.org.apache.spark.sql.catalyst.TableIdentifier("t")
    log = tables.forTable(session, name)
    log.checkpoint()
    gone = max(int(path.stem) for path in log_of(lab).glob("*.json")) - 1
    (log_of(lab) / f"{gone:020}.json").unlink()
    tables.clearCache()
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
    assert row[1:3] == (2, 11)
    assert built(lab) == ("11", "(version 3)")
    lab.check("SELECT * FROM t WHERE id = 500", exactly=1)
    assert lab.check("SELECT * FROM t WHERE id = 42", at_most=1).rows.total() == 0
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_refresh_indexes_all_files_of_a_replaced_table(lab: Lab) -> None:
    """After CREATE OR REPLACE, REFRESH indexes all files, although version numbers continue."""
    replace(lab)
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert built(lab) == ("5", "(version 2)")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    assert lab.check("SELECT * FROM t VERSION AS OF 1 WHERE id = 99").rows.total() == 1
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_a_change_of_the_protocol(lab: Lab) -> None:
    """A commit that enables deletion vectors changes no file, so queries still use the index."""
    lab.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    lab.sql("DELETE FROM t WHERE id = 43")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert built(lab) == ("10", "(version 3)")
    lab.check("SELECT * FROM t WHERE id IN (42, 43)", exactly=1)


def test_a_change_of_the_columns(lab: Lab) -> None:
    """After ADD COLUMN, queries still use the index; until REFRESH, they also read new files."""
    lab.sql("ALTER TABLE t ADD COLUMN more INT")
    lab.sql("INSERT INTO t VALUES (500, 'a', 1)")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=2)
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert built(lab) == ("11", "(version 3)")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE id = 500 AND more = 1", exactly=1)


def test_files_of_commits_without_data_change_are_read(lab: Lab) -> None:
    """Queries read the new files of a commit that replaces files with ``dataChange`` = false."""
    rows = lab.spark.sql("SELECT /*+ REPARTITION_BY_RANGE(4, id) */ * FROM t")
    writer = rows.write.format("delta").mode("overwrite").option("dataChange", "false")
    writer.saveAsTable("t")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=4)
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert built(lab) == ("4", "(version 2)")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)


@pytest.mark.parametrize("after", [0.05, 0.3, 1.0])
def test_refresh_works_after_a_killed_refresh(lab: Lab, after: float) -> None:
    """If a REFRESH is killed, queries return all rows, and a second REFRESH succeeds."""
    lab.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    for key in (500, 600):
        lab.sql(f"INSERT INTO t VALUES ({key}, 'a')")
        lab.sql(f"DELETE FROM t WHERE id IN ({key // 100}, 42)")
    (front_end,) = front_ends(int(lab.spark._jvm.java.lang.ProcessHandle.current().pid()))
    killer = threading.Timer(after, os.kill, (front_end, signal.SIGKILL))
    killer.start()
    with suppress(PySparkException):
        lab.sql("REFRESH SIEVE INDEX ON t")
    killer.join()
    time.sleep(0.1)
    with lab.setting("spark.sieve.strict", "false"):
        on = lab.run("SELECT * FROM t WHERE id IN (42, 43, 500, 600)")
    assert on.rows.total() == 3
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert built(lab) == ("12", "(version 6)")
    lab.check("SELECT * FROM t WHERE id IN (42, 600)", exactly=2)
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
