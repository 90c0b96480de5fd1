"""Roots: the folders in which the indexes of a database may lie."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import RootRefusedError
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import Settings, parse_settings

DRIVER = SimpleNamespace(
    tables=lambda: SimpleNamespace(databaseLocation=lambda _, name: f"file:/w/{name}.db/")
)


def session() -> Any:
    """The session that the metastore is asked with."""
    return SimpleNamespace()


def settings(**given: str) -> Settings:
    """The settings of a session."""
    return parse_settings({f"spark.sieve.{key}": value for key, value in given.items()})


@pytest.mark.parametrize(
    "root", ["file:/w/d.db/.sieve", "file:///w/d.db//.sieve/", "file:/start", "file:/b", "file:/c"]
)
def test_a_root_that_every_session_knows_is_allowed(root: str) -> None:
    """That of the database, of the driver's start, or in the list; however its URI is spelt."""
    roots, given = Roots(DRIVER, path="file:/start"), settings(roots="file:/b,/c")
    roots.check(root, "d", given, session)
    roots.check_shared(root, "d", given, session)


@pytest.mark.parametrize(
    "root", ["file:/a", "file:/w/a.db/.sieve", "file:/w/d.db", "file:/w/e.db/.sieve", "file:/z"]
)
def test_any_other_root_is_refused(root: str) -> None:
    """A property of the table may name any folder, and also one that sorts before the allowed."""
    roots, given = Roots(DRIVER), settings(path="file:/mine", roots="file:/b")
    for check in (roots.check, roots.check_shared):
        with pytest.raises(RootRefusedError, match=root):
            check(root, "d", given, session)


def test_the_path_of_one_session_is_no_root_for_the_others() -> None:
    """It would use an index there itself, but CREATE refuses one that others could not use."""
    roots, given = Roots(DRIVER), settings(path="file:/mine")
    roots.check("file:/mine", "d", given, session)
    with pytest.raises(RootRefusedError, match="no session but this one"):
        roots.check_shared("file:/mine", "d", given, session)
