"""Tests statements of a user who may not write to the table's folder or the index's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import Driver, DriverError, driver

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id FROM range(100)"
POINT = "SELECT * FROM theirs.t WHERE id = 7"
SOMEBODY = 65534
CANNOT_CREATE = (
    r"\[SIEVE_PERMISSION_DENIED\] user \w+ may not .*theirs/\.sieve.*Permission denied.*"
    r"\.path.*spark\.sieve\.roots"
)
# The user root can write to every folder. Without these capabilities, the user root has only the
# rights of an ordinary user.
POWERS = "-dac_override,-dac_read_search,-fowner,-chown"
AS_A_USER = ("setpriv", "--inh-caps=-all", f"--bounding-set={POWERS}") if not os.geteuid() else ()


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Driver]:
    """A driver of a user who can only read the table ``theirs.t`` and the table's folder."""
    with driver(tmp_path / "driver", under=AS_A_USER) as it:
        it.sql(f"CREATE DATABASE theirs LOCATION '{tmp_path / 'theirs'}'")
        it.sql(f"CREATE TABLE theirs.t USING parquet AS {ROWS}")
        close(tmp_path / "theirs")
        yield it
        open_up(tmp_path)


def close(folder: Path) -> None:
    """Makes a folder and its content read-only, and gives them to another user."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:
            os.chown(path, SOMEBODY, SOMEBODY)


def open_up(folder: Path) -> None:
    """Gives a folder and its content back to the current user, with the right to write."""
    for path in (folder, *folder.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, 0, 0)
        if path.is_dir():
            path.chmod(0o755)


@pytest.mark.long
def test_create_on_a_read_only_table_names_the_setting(user: Driver, tmp_path: Path) -> None:
    """If CREATE may not write, the error names `spark.sieve.path` and `spark.sieve.roots`.

    Queries use an index in a read-only folder. Statements that would change an index in a read-only
    folder fail, and the errors name the folder.
    """
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    with pytest.raises(DriverError, match=CANNOT_CREATE):
        user.sql("CREATE SIEVE INDEX ON theirs.t (id)")
    assert "sieve.index" not in str(user.sql("SHOW TBLPROPERTIES theirs.t"))
    files = {path: path.stat().st_mtime_ns for path in theirs.rglob("*")}

    user.sql(f"SET spark.sieve.path = {mine.as_uri()}")
    user.sql(f"SET spark.sieve.roots = {mine}")
    user.sql("CREATE SIEVE INDEX ON theirs.t (id) OPTIONS (error = 1)")
    assert user.files(POINT) == 1
    assert {path: path.stat().st_mtime_ns for path in theirs.rglob("*")} == files

    before = set(mine.rglob("*"))
    close(mine)
    for statement in ("REFRESH SIEVE INDEX ON theirs.t FULL", "DROP SIEVE INDEX ON theirs.t (id)",
                      "ALTER SIEVE INDEX id_sieve ON theirs.t DISABLE"):  # fmt: skip
        with pytest.raises(
            DriverError, match=r"\[SIEVE_PERMISSION_DENIED\] user \w+ may not .*mine/"
        ):
            user.sql(statement)
        assert (user.sql(POINT), user.files(POINT)) == ([[7]], 1)
    assert set(mine.rglob("*")) == before
    open_up(mine)
    assert user.sql("REFRESH SIEVE INDEX ON theirs.t FULL")[0][1] == 2
    user.sql("DROP SIEVE INDEX ON theirs.t (id)")
    assert list(mine.iterdir()) == []
    assert user.files(POINT) == 4
