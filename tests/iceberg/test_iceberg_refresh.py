"""REFRESH reads only changed manifests, or all files if the indexed snapshot is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from py4j.protocol import Py4JJavaError
from spark_session import Lab

pytestmark = pytest.mark.iceberg

T = "spark_catalog.refresh.t"
CALL = "CALL spark_catalog.system."


@pytest.fixture(autouse=True)
def table(lab: Lab) -> Iterator[None]:
    """A new namespace. An audit reads the files that queries skip."""
    with namespace(lab, "spark_catalog.refresh"), lab.settings(AUDITED):
        yield


def indexed(lab: Lab, mode: str = "copy-on-write", version: int = 2) -> None:
    """The table `t` with an index: two manifests of ten files each, with ids from 0 to 199."""
    create(lab, format__version=version, write_delete_mode=mode)
    insert(lab)
    insert(lab, start=100)
    lab.sql("CREATE SIEVE INDEX ON t (id)")


def manifests(lab: Lab) -> list[Path]:
    """The manifests of data files in the current snapshot, the oldest first."""
    found = lab.sql(f"SELECT path FROM {T}.manifests WHERE content = 0 ORDER BY added_snapshot_id")
    return sorted((Path(path.removeprefix("file:")) for (path,) in found), key=_created)


def _created(path: Path) -> float:
    return path.stat().st_mtime


@contextmanager
def hidden(paths: list[Path]) -> Iterator[None]:
    """Renames files during the block; a reader of one of these files fails."""
    for path in paths:
        path.rename(path.with_suffix(".hidden"))
    try:
        yield
    finally:
        for path in paths:
            path.with_suffix(".hidden").rename(path)


def refreshed(lab: Lab) -> int:
    """Runs REFRESH, which must reuse the index; returns the number of files in the index."""
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
    assert row[5] != "rebuilt"
    return int(row[2])


def check(lab: Lab) -> None:
    """Checks that the index changes no rows of queries, and that CHECK finds no fault."""
    for predicate in ("id = 42", "id BETWEEN 95 AND 104", "id = 142", "id = 500", "v IS NULL"):
        lab.check(f"SELECT * FROM t WHERE {predicate}")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


@pytest.mark.parametrize(
    ("statements", "mode", "unchanged", "files"),
    [
        (["INSERT INTO t VALUES (500, 'a')"], "copy-on-write", 2, 21),
        (["DELETE FROM t WHERE id = 42"], "copy-on-write", 1, 20),
        (["DELETE FROM t WHERE id < 50"], "copy-on-write", 1, 15),
        (["DELETE FROM t WHERE id = 42"], "merge-on-read", 2, 20),
        (["INSERT INTO t VALUES (500, 'a')", "DELETE FROM t WHERE id = 500"],
         "copy-on-write", 2, 20),
        (["ALTER TABLE t CREATE BRANCH b", f"INSERT INTO {T}.branch_b VALUES (500, 'a')",
          f"{CALL}fast_forward('refresh.t', 'main', 'b')"], "copy-on-write", 2, 21),
    ],
    ids=["append", "rewritten file", "dropped files", "position deletes", "added and dropped",
         "fast-forward"],
)  # fmt: skip
def test_refresh_reads_only_changed_manifests(
    lab: Lab, statements: list[str], mode: str, unchanged: int, files: int
) -> None:
    """REFRESH succeeds even if unchanged manifests are unreadable."""
    indexed(lab, mode)
    before = manifests(lab)
    for statement in statements:
        lab.sql(statement)
    same = [path for path in before if path in manifests(lab)]
    assert len(same) == unchanged
    with hidden(same):
        with pytest.raises(Py4JJavaError, match="does not exist"):
            lab.sql("SELECT count(v) FROM t WHERE v = 'v0'")
        assert refreshed(lab) == files
    check(lab)
    assert refreshed(lab) == files


def test_refresh_after_a_rollback_removes_later_files(lab: Lab) -> None:
    """After a rollback, REFRESH reads only changed manifests, and removes files of later commits.

    If a user undoes the rollback, REFRESH adds the files of the later commits again.
    """
    indexed(lab)
    before = manifests(lab)
    lab.sql("INSERT INTO t VALUES (500, 'a')")
    assert refreshed(lab) == 21
    snapshots = [
        row[0] for row in lab.sql(f"SELECT snapshot_id FROM {T}.snapshots ORDER BY committed_at")
    ]
    lab.sql(f"{CALL}rollback_to_snapshot('refresh.t', {snapshots[1]})")
    with hidden(before):
        assert refreshed(lab) == 20
    check(lab)
    lab.sql(f"{CALL}set_current_snapshot('refresh.t', {snapshots[2]})")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=2)
    with hidden(before):
        assert refreshed(lab) == 21
    check(lab)
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)


def test_refresh_lists_all_files_if_the_snapshot_is_gone(lab: Lab) -> None:
    """After the indexed snapshot has expired, REFRESH lists all files."""
    indexed(lab)
    lab.sql("INSERT INTO t VALUES (500, 'a')")
    lab.sql("DELETE FROM t WHERE id < 10")
    lab.sql(
        f"{CALL}expire_snapshots(table => 'refresh.t', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    assert refreshed(lab) == 20
    check(lab)


def test_refresh_lists_all_files_of_format_version_1(lab: Lab) -> None:
    """Snapshots of format version 1 have no sequence number, so REFRESH lists all files."""
    indexed(lab, version=1)
    lab.sql("INSERT INTO t VALUES (500, 'a')")
    assert refreshed(lab) == 21
    check(lab)
    lab.sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '2')")
    lab.sql("INSERT INTO t VALUES (501, 'a')")
    assert refreshed(lab) == 22
    lab.sql("DELETE FROM t WHERE id = 500")
    assert refreshed(lab) == 21
    check(lab)


def test_refresh_after_rewritten_manifests_reads_no_data_file(lab: Lab) -> None:
    """After a rewrite of all manifests, REFRESH finds the same files and reads no file."""
    indexed(lab)
    lab.sql("INSERT INTO t VALUES (500, 'a')")
    lab.sql(f"{CALL}rewrite_manifests('refresh.t')")
    assert refreshed(lab) == 21
    lab.sql(f"{CALL}rewrite_manifests('refresh.t')")
    assert refreshed(lab) == 21
    check(lab)


def test_a_file_that_was_added_twice_is_read(lab: Lab) -> None:
    """If a table contains a data file twice, queries return its rows twice, also after REFRESH."""
    indexed(lab)
    ((path,),) = lab.sql(f"SELECT file_path FROM {T}.files ORDER BY file_path LIMIT 1")
    lab.sql(
        f"{CALL}add_files(table => 'refresh.t', source_table => '`parquet`.`{path}`', "
        "check_duplicate_files => false)"
    )
    lab.sql("REFRESH SIEVE INDEX ON t")
    for predicate in ("id < 10", "id = 42", "id = 142"):
        lab.check(f"SELECT * FROM t WHERE {predicate}")
    ((key, copies),) = lab.sql("SELECT id, count(*) FROM t GROUP BY id HAVING count(*) > 1 LIMIT 1")
    assert copies == 2
    assert lab.check(f"SELECT * FROM t WHERE id = {key}").rows.total() == 2


def test_statements_in_a_session_with_a_branch_for_writes(lab: Lab) -> None:
    """With `spark.wap.branch`, statements work, and REFRESH indexes the files of `main`."""
    create(lab, write_wap_enabled="true")
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    with lab.setting("spark.wap.branch", "audit"):
        insert(lab, start=100)
        assert lab.check("SELECT * FROM t WHERE id = 142", exactly=10).rows.total() == 1
        assert {row[6] for row in lab.sql("SHOW SIEVE INDEXES ON t")} == {"ready"}
        assert refreshed(lab) == 10
        check(lab)
        lab.sql("CREATE SIEVE INDEX ON t (v)")
        lab.sql("DROP SIEVE INDEX v_sieve ON t")
    assert lab.check("SELECT * FROM t WHERE id = 142", exactly=0).rows.total() == 0
    lab.sql(f"{CALL}fast_forward('refresh.t', 'main', 'audit')")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=11)
    assert refreshed(lab) == 20
    lab.check("SELECT * FROM t WHERE id = 142", exactly=1)
    check(lab)
