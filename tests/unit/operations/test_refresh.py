"""Tests which files a refresh leaves if it fails, or if another writer overtakes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import ConflictError, UnavailableError, UnknownOutcomeError
from sieve.metadata.commit import newest, publish
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import Commit, VersionId
from sieve.operations import refresh
from sieve.operations.refresh import RefreshMode, refresh_index
from sieve.operations.registered_index import Ready
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from tests.fake_spark import without_spark
from tests.unit.operations.test_operations import AFTER, BEFORE, Commits, refreshed, version

STORE = LocalStore()


def files_of(found: Ready) -> set[str]:
    """The names of existing runs and parts of file lists."""
    home = found.directory
    folders = [entry.name for entry in STORE.list(home) if entry.is_dir]
    return {
        entry.name
        for folder in ("runs", "locations")
        if folder in folders
        for entry in STORE.list(f"{home}/{folder}")
    }


@pytest.mark.parametrize(
    ("error", "stay"),
    [
        (UnknownOutcomeError("SIEVE_X", "no answer"), True),
        (UnavailableError("SIEVE_X", "refused"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_files_stay_if_a_version_may_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, stay: bool
) -> None:
    """If a refresh certainly did not publish a version, it deletes the files that it wrote.

    If the outcome of a refresh is unknown, its files stay. The files of the base version always
    stay.
    """
    found, base = version(tmp_path, BEFORE, [6])
    before = files_of(found)

    def fails(*_: object) -> None:
        assert files_of(found) > before
        raise error

    monkeypatch.setattr(refresh, "publish", fails)
    with pytest.raises(type(error)):
        refreshed(Commits(AFTER, {"b"}), found)
    assert (files_of(found) > before) is stay
    assert files_of(found) >= before
    assert newest(STORE, found.directory) == base


def others(
    found: Ready, base: Manifest, change: Callable[[int, Manifest], Manifest], times: int
) -> Any:
    """Another writer.

    Another writer publishes a version before each attempt of a refresh, up to `times` times.
    """
    published: list[Manifest] = [base]

    def write() -> None:
        if len(published) <= times:
            last = published[-1]
            made = replace(
                last,
                version=last.version + 1,
                id=VersionId(f"{len(published):032x}"),
                parent=last.id,
            )
            made = change(len(published), made)
            publish(STORE, found.directory, last, lambda _: made)
            published.append(made)

    return write


def rebuilt(number: int, made: Manifest) -> Manifest:
    """A rebuilt version.

    A rebuilt version describes the table at the same instant as the previous version, but shares no
    run with it.
    """
    return replace(made, runs=(replace(made.runs[0], id=f"{number:032x}"),), instant=made.instant)


@pytest.mark.parametrize("times", [1, 2])
def test_overtaken_refresh_starts_again_from_the_newest(tmp_path: Path, times: int) -> None:
    """If the index is rebuilt during a refresh, the refresh starts again from the newest version.

    VACUUM can delete files that occur only in versions before the rebuild.
    """
    found, base = version(tmp_path, BEFORE, [6])
    monkey = others(found, base, rebuilt, times)
    assert refreshed(Commits(AFTER, {"b"}), found, monkey) == {file.path for file in AFTER}
    now = newest(STORE, found.directory)
    assert now is not None
    assert now.version == 2 + times
    assert f"{times:032x}" in {run.id for run in now.runs}


def test_always_overtaken_refresh_fails(tmp_path: Path) -> None:
    """If other writers overtake each attempt, a refresh fails. The error counts the attempts."""
    found, base = version(tmp_path, BEFORE, [6])
    monkey = others(found, base, rebuilt, 99)
    with pytest.raises(ConflictError, match=f"rebuilt index .* {refresh._ATTEMPTS} times"):
        refreshed(Commits(AFTER, {"b"}), found, monkey)
    now = newest(STORE, found.directory)
    assert now is not None
    assert now.version == 1 + refresh._ATTEMPTS


def test_refresh_fails_if_the_table_is_renamed(tmp_path: Path) -> None:
    """If the table is renamed during a refresh, the refresh fails.

    The refresh may have read rows of another table before it notices the rename.
    """
    found, base = version(tmp_path, BEFORE, [6])

    def renamed(_: int, made: Manifest) -> Manifest:
        return replace(made, table=replace(made.table, table="other"))

    before = files_of(found)
    with pytest.raises(ConflictError, match="renamed or moved meanwhile"):
        refreshed(Commits(AFTER, {"b"}), found, others(found, base, renamed, 1))
    assert files_of(found) == before


def test_vanished_index_is_not_created_again(tmp_path: Path) -> None:
    """If another driver drops the index during a refresh, the refresh fails."""
    found, base = version(tmp_path, BEFORE, [6])
    plan = refresh._on_top(base, base, found, SimpleNamespace())  # type: ignore[arg-type]
    with pytest.raises(UnavailableError, match="vanished meanwhile"):
        plan(None)


@pytest.mark.parametrize(
    ("newest_at", "made_at", "later"),
    [
        (("2", None), ("1", None), True),
        (("1", None), ("1", None), True),
        (("1", None), ("2", None), False),
        (("1", Commit("t", 5)), ("2", Commit("t", 5)), True),
        (("1", Commit("t", 6)), ("2", Commit("t", 5)), True),
        (("2", Commit("t", 4)), ("1", Commit("t", 5)), False),
        (("2", Commit("u", 4)), ("1", Commit("t", 5)), True),
        (("1", Commit("u", 6)), ("2", Commit("t", 5)), False),
        (("2", None), ("1", Commit("t", 5)), True),
        (("1", Commit("t", 9)), ("2", None), False),
    ],
)
def test_greater_commit_number_is_the_later_version(
    newest_at: tuple[str, Commit | None], made_at: tuple[str, Commit | None], later: bool
) -> None:
    """For a Delta table, the index version with the greater commit number is later.

    Versions of any other table are compared by time.
    """
    one, other = (SimpleNamespace(instant=at, commit=commit) for at, commit in (newest_at, made_at))
    assert refresh._is_as_late(one, other) is later  # type: ignore[arg-type]


@pytest.mark.parametrize("change", ["none", "fingerprint", "type", "options", "damage", "gone"])
def test_invalid_version_is_rebuilt(tmp_path: Path, change: str) -> None:
    """All runs are rebuilt if the reader, type or options changed, or if the list is unreadable."""
    found, base = version(tmp_path, BEFORE, [6])
    table: Any = Commits(BEFORE, set())
    column = Column(("v",), "int" if change == "type" else "bigint")
    if change == "fingerprint":
        table.info = replace(table.info, fingerprint_parts={"spark": "9.9"})
    elif change == "options":
        base = replace(base, next_options=IndexOptions("sieve"))
    elif change in ("damage", "gone"):
        (path,) = (tmp_path / base.index / "locations").iterdir()
        path.unlink() if change == "gone" else path.write_bytes(b"no list")
    known = refresh._still_valid(table, found, base, column)
    assert (known is not None) is (change == "none")


@pytest.mark.parametrize(
    ("mode", "runs", "read"),
    [
        (RefreshMode.INCREMENTAL, [4, 2], 0),
        (RefreshMode.COMPACT, [4, 2], 6),
        (RefreshMode.COMPACT, [6], 0),
        (RefreshMode.FULL, [6], 6),
    ],
)
def test_only_compact_and_full_read_an_unchanged_table(
    tmp_path: Path, mode: RefreshMode, runs: list[int], read: int
) -> None:
    """For an unchanged table, OPTIMIZE merges several runs, and REFRESH FULL reads all files.

    An incremental refresh of an unchanged table does nothing.
    """
    found, base = version(tmp_path, BEFORE, runs)
    table = Commits(BEFORE, set())
    environment: Any = SimpleNamespace(
        check_cancelled=lambda: None, describe_job=lambda _: None, range_bytes=1 << 23,
        software=base.created_by, changing=lambda: None,
    )  # fmt: skip
    with without_spark():
        now = refresh_index(table, found, mode, environment)  # type: ignore[arg-type]
    assert len(table.read) == read
    assert len(now.runs) == (1 if read else len(runs))
    assert (now == base) is (read == 0)
