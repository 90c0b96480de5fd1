"""Roots: the folders that can contain the indexes of a database."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import RootRefusedError
from sql_ext.driver import roots as module
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import Settings, parse_settings

DRIVER = SimpleNamespace(
    tables=lambda: SimpleNamespace(databaseLocation=lambda _, name: f"file:/w/{name}.db/")
)


def session() -> Any:
    """Replaces the session that queries the metastore."""
    return SimpleNamespace()


def settings(**given: str) -> Settings:
    """The settings of a session."""
    return parse_settings({f"spark.sieve.{key}": value for key, value in given.items()})


@pytest.mark.parametrize(
    "root", ["file:/w/d.db/.sieve", "file:///w/d.db//.sieve/", "file:/start", "file:/b", "file:/c"]
)
def test_a_root_that_every_session_knows_is_allowed(root: str) -> None:
    """Allowed roots are the database's root, the driver's initial root, and roots in a setting.

    Different spellings of a root's URI are equal.
    """
    roots, given = Roots(DRIVER, path="file:/start"), settings(roots="file:/b,/c")
    roots.check(root, "d", given, session)
    roots.check_shared(root, "d", given, session)


@pytest.mark.parametrize(
    "root", ["file:/a", "file:/w/a.db/.sieve", "file:/w/d.db", "file:/w/e.db/.sieve", "file:/z"]
)
def test_any_other_root_is_refused(root: str) -> None:
    """Sieve refuses a root that a table property names if no setting allows the root."""
    roots, given = Roots(DRIVER), settings(path="file:/mine", roots="file:/b")
    for check in (roots.check, roots.check_shared):
        with pytest.raises(RootRefusedError, match=root):
            check(root, "d", given, session)


def test_create_refuses_a_root_of_one_session() -> None:
    """CREATE refuses a root that is set in one session only: other sessions could not use it."""
    roots, given = Roots(DRIVER), settings(path="file:/mine")
    roots.check("file:/mine", "d", given, session)
    with pytest.raises(RootRefusedError, match="only this session would use"):
        roots.check_shared("file:/mine", "d", given, session)


@pytest.mark.parametrize(
    ("path", "root"),
    [
        (None, "file:/w/d.db/.sieve"),
        ("/mine//x/", "hdfs://nn/mine/x"),
        ("file:///mine/", "file:/mine"),
        ("s3a://bucket/i", "s3a://bucket/i"),
    ],
)
def test_new_index_is_in_session_folder_or_database_folder(path: str | None, root: str) -> None:
    """A new index is in the folder that the session sets.

    If the session sets no folder, the index is in the folder of its database. As in Spark, a path
    without a scheme refers to the default file system.
    """
    given = settings() if path is None else settings(path=path)
    assert Roots(DRIVER, file_system="hdfs://nn/").for_new("file:/w/d.db/", given) == root


@pytest.mark.parametrize(
    ("path", "root"), [(None, "file:/w/d.db/.sieve"), ("/mine//x/", "hdfs://nn/mine/x")]
)
def test_sessions_cannot_change_the_root_of_the_driver(path: str | None, root: str) -> None:
    """Outside of sessions, the driver uses its initial root. No session can change this root."""
    roots = Roots(DRIVER, path=path, file_system="hdfs://nn/")
    assert roots.of_driver("d", session) == root


def test_the_folder_of_a_database_is_read_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The location of a database is looked up again after a minute.

    For a minute after a look-up, scans use the location that the look-up returned.
    """
    asked: list[tuple[Any, str]] = []
    now, own = [1000.0], session()

    def location(of: Any, name: str) -> str:
        asked.append((of, name))
        return f"file:/w/{name}{len(asked)}.db/"

    driver = SimpleNamespace(tables=lambda: SimpleNamespace(databaseLocation=location))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    started: list[Any] = []

    def thread(target: Any, args: Any, daemon: bool) -> Any:
        assert daemon
        return SimpleNamespace(start=lambda: started.append((target, args)))

    monkeypatch.setattr(module.threading, "Thread", thread)
    roots = Roots(driver)
    for at in (1000.0, 1030.0, 1060.0):
        now[0] = at
        assert roots.of_database("d", lambda: own) == "file:/w/d1.db/.sieve"
    assert (asked, started) == ([(own, "d")], [])
    now[0] = 1060.5
    assert roots.of_database("d", lambda: own) == "file:/w/d1.db/.sieve"
    assert roots.of_database("d", lambda: own) == "file:/w/d1.db/.sieve"
    ((target, arguments),) = started
    target(*arguments)
    assert roots.of_database("d", lambda: own) == "file:/w/d2.db/.sieve"
    now[0] = 1120.5
    assert roots.of_database("d", lambda: own) == "file:/w/d2.db/.sieve"
    assert (len(asked), len(started)) == (2, 1)
    assert roots.of_database("e", lambda: own) == "file:/w/e3.db/.sieve"
