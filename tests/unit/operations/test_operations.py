"""A refresh lists only the folders that commits name, and misses no changed file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.indexing.reuse import MOST_DELTAS
from sieve.metadata.commit import newest, publish
from sieve.metadata.file_list import FileState, Locations, states_of
from sieve.metadata.manifest import Manifest, render_manifest
from sieve.metadata.records import Commit, CreatedBy, RunId, TableIdentity, VersionId
from sieve.metadata.registration import Registration
from sieve.operations.refresh import RefreshMode, refresh_index
from sieve.operations.registered_index import Ready
from sieve.reader.version_reader import read_locations
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sieve.tables.data_file import Changes, DataFile
from sieve.tables.snapshot import snapshot_since
from sieve.tables.table_info import TableInfo
from tests.built_index import PARTS, ROOT, write_version
from tests.fake_spark import without_spark
from tests.unit.metadata.manifest_sample import SAMPLE


@dataclass
class Commits:
    """A table of file slices; its commits name the folders that they wrote to.

    Attributes:
        slices: all slices of the table.
        written: the names of the folders that commits wrote to; None if these are unknown.
        spelt: the path of the table's folder in the commits' spelling.
        listings: how often the whole table was listed.
        read: the paths that were read.
        added: the numbers of the slices whose appended part can be read alone.
        appended_only: the numbers of the slices for which only the appended part was read.
        empty: true if reading finds no rows.
        broken: true if reading an appended part fails.
        asked: the slices of which the refresh requested only the appended files.
        at: the commit of the Delta table that was listed.
    """

    slices: Sequence[DataFile]
    written: set[str] | None
    spelt: str = ROOT
    listings: int = 0
    read: list[str] = field(default_factory=list)
    instant: str = ""
    added: frozenset[int] = frozenset()
    appended_only: frozenset[int] = frozenset()
    empty: bool = False
    broken: bool = False
    asked: Mapping[int, tuple[int, int, bool]] = field(default_factory=dict)
    at: Commit | None = None

    def __post_init__(self) -> None:
        self.info = TableInfo(
            identity=TableIdentity("spark_catalog", "d", "t", 0, ROOT), provider="hudi",
            malformed=(), format_name="hudi", registrations={},
            columns=(Column(("v",), "bigint"),), partition_columns=(),
            declared={}, fingerprint=SAMPLE.fingerprint, fingerprint_parts=PARTS,
            case_sensitive=False, corrupt_column="", database_location="", persistent=True,
            spark="4.1.4",
        )  # fmt: skip
        self._listed: tuple[DataFile, ...] = ()

    def fingerprint(self) -> str:
        return SAMPLE.fingerprint

    def files(self) -> tuple[DataFile, ...]:
        self.listings += 1
        self._listed = tuple(self.slices)
        return self._listed

    def changes(self, instant: str, _commit: None = None) -> Changes | None:
        self.instant = instant
        if self.written is None:
            return None
        folders = frozenset(f"{self.spelt}/{name}" for name in self.written)
        self._listed = tuple(
            s
            for s in self.slices
            if s.path.removeprefix(f"{ROOT}/").partition("/")[0] in self.written
        )
        return Changes(folders, self._listed)

    write_file = None

    def instant_ms(self) -> int:
        return 1_800_000_000_000

    def commit(self) -> Commit | None:
        return self.at

    def appended(self, files: Mapping[int, tuple[int, int, bool]]) -> frozenset[int]:
        self.asked = dict(files)
        return self.added & files.keys()

    def frame(
        self,
        numbers: Sequence[int],
        _column: object,
        appended_only: frozenset[int],
        _cuts: object = (),
        **_how: object,
    ) -> list[list[int]]:
        self.appended_only = appended_only
        if appended_only and self.broken:
            raise ArithmeticError
        self.read = [self._listed[number].path for number in numbers]
        return [[] if self.empty else [number] for number in numbers]


def slices(*names: str, mtime: int = 0) -> list[DataFile]:
    """Slices of the same size, below the folder of the table."""
    return [DataFile(f"{ROOT}/{name}", 10, mtime) for name in names]


def version(
    folder: Path, known: Sequence[DataFile], runs: Sequence[int], *, maps: bool = False
) -> tuple[Ready, Manifest]:
    """Builds an index of these slices; `runs` has the number of slices in each run."""
    file = replace(SAMPLE.runs[0].files[0], hashes=((0, 9),) if maps else ())
    n = len(known)
    tens = np.full(n, 10)
    listed = Locations(
        tuple(file.path for file in known), states_of(n),
        np.array([file.length for file in known]),
        np.array([file.mtime for file in known]), tens, tens * 0, tens * 0, np.arange(n),
    )  # fmt: skip
    made = [
        replace(
            SAMPLE.runs[0],
            id=RunId(f"{k:032x}"),
            locations=size,
            files=(file,),
            encoder={"type": "bigint"},
        )
        for k, size in enumerate(runs)
    ]
    home = folder / SAMPLE.index
    base = replace(write_version(home, made, listed), next_options=None)
    for name in ("versions", "intents"):
        (home / name).mkdir()
    (home / "versions" / "1.json").write_bytes(render_manifest(base))
    registration = Registration(base.index, base.column, f"file:{folder}")
    return Ready("v", registration, LocalStore(), base), base


def refreshed(
    table: Commits, found: Ready, publishing: Callable[[], object] = lambda: None
) -> set[str]:
    """Refreshes the index; returns the paths in the new version.

    Calls ``publishing`` just before the version is published.
    """
    environment: Any = SimpleNamespace(
        check_cancelled=lambda: None,
        describe_job=lambda _: None,
        range_bytes=1 << 23,
        software=CreatedBy("0", "4.1"),
        changing=publishing,
    )
    with without_spark():
        now = refresh_index(table, found, RefreshMode.INCREMENTAL, environment)  # type: ignore[arg-type]
    return set(read_locations(LocalStore(), found.directory, now).paths)


BEFORE = slices("a/1", "a/2", "b/1", "b/2", "c/1", "c/2")
AFTER = slices("a/1", "a/2", "b/1", "b/3", "c/1", "c/2")


def test_refresh_lists_only_the_written_folder(tmp_path: Path) -> None:
    """If commits wrote to one folder, a refresh lists only this folder.

    The refresh copies the slices of all other folders from the previous version.
    """
    found, base = version(tmp_path, BEFORE, [6])
    table = Commits(AFTER, {"b"})
    assert refreshed(table, found) == {file.path for file in AFTER}
    assert (table.listings, table.read, table.instant) == (0, [f"{ROOT}/b/3"], base.instant)


def test_slices_of_an_emptied_folder_are_removed(tmp_path: Path) -> None:
    """If commits emptied a folder, a refresh removes the folder's slices from the index."""
    found, _ = version(tmp_path, BEFORE, [6])
    table = Commits(BEFORE[:4], {"c"})
    assert refreshed(table, found) == {file.path for file in BEFORE[:4]}
    assert table.listings == 0


def test_refresh_without_a_write_publishes_no_version(tmp_path: Path) -> None:
    """Without new commits, a refresh lists no folder and publishes no version."""
    found, base = version(tmp_path, BEFORE, [6])
    table = Commits(BEFORE, set())
    assert refreshed(table, found) == {file.path for file in BEFORE}
    assert table.listings == 0
    assert len(list((tmp_path / base.index / "versions").iterdir())) == 1


def test_all_is_listed_if_commits_name_no_folders(tmp_path: Path) -> None:
    """If the commits name no folders, the refresh lists all folders."""
    found, _ = version(tmp_path, BEFORE, [6])
    table = Commits(AFTER, None)
    assert refreshed(table, found) == {file.path for file in AFTER}
    assert table.listings > 0


@pytest.mark.parametrize(
    ("theirs", "stays"),
    [
        (Commit("t", 4), False),
        (Commit("t", 5), True),
        (Commit("t", 6), True),
        (Commit("replaced", 6), False),
    ],
)
def test_version_of_a_later_commit_is_kept(tmp_path: Path, theirs: Commit, *, stays: bool) -> None:
    """A refresh does not replace a version of a later Delta commit, even if clocks are wrong."""
    found, base = version(tmp_path, BEFORE, [6])

    def other() -> None:
        made = replace(base, version=2, id=VersionId("f" * 32), parent=base.id, commit=theirs)
        publish(LocalStore(), found.directory, base, lambda _: made)

    known = refreshed(Commits(AFTER, None, at=Commit("t", 5)), found, other)
    now = newest(LocalStore(), found.directory)
    assert now is not None
    assert now.commit == (theirs if stays else Commit("t", 5))
    assert known == {file.path for file in (BEFORE if stays else AFTER)}


def test_all_is_listed_if_folders_are_spelt_differently(tmp_path: Path) -> None:
    """A refresh lists all folders if commits and the table spell folders differently.

    If the refresh listed only folders in the commits, changed files would keep old entries in the
    index.
    """
    found, _ = version(tmp_path, BEFORE, [6])
    table = Commits(AFTER, {"b"}, spelt="/elsewhere")
    assert refreshed(table, found) == {file.path for file in AFTER}
    assert table.listings > 0


@pytest.mark.parametrize("runs", [[8, *([1] * MOST_DELTAS)], [1 + MOST_DELTAS, 7]])
def test_all_is_listed_if_runs_are_merged(tmp_path: Path, runs: list[int]) -> None:
    """If a refresh merges runs or makes a new base run, it lists all folders."""
    known = slices(*(f"p{k}/1" for k in range(8 + MOST_DELTAS)))
    found, _ = version(tmp_path, known, runs)
    now = [*known[8:], *slices("new/1")] if len(runs) == 2 else [*known, *slices("new/1")]
    written = {"new"} | ({f"p{k}" for k in range(8)} if len(runs) == 2 else set())
    table = Commits(now, written)
    assert refreshed(table, found) == {file.path for file in now}
    assert table.listings > 0
    assert len(table.read) > 1


def test_only_appended_files_of_a_slice_are_read(tmp_path: Path) -> None:
    """If files were appended to a slice, a refresh reads only these files of the slice.

    A slice with appended files gets one more slot in the index. If a slice has other changes than
    appended files, a refresh reads the whole slice.
    """
    found, _ = version(tmp_path, BEFORE, [6])
    now = [*slices("a/1"), *slices("a/2", mtime=5), *slices("b/1", mtime=6), *BEFORE[3:]]
    table = Commits(now, {"a", "b"}, added=frozenset({1}))
    assert refreshed(table, found) == {file.path for file in now}
    assert (table.listings, table.read, table.appended_only) == (0, [now[1].path, now[2].path], {1})
    assert table.asked == {1: (10, 0, False), 2: (10, 0, False)}
    after = newest(LocalStore(), found.directory)
    assert after is not None
    known = read_locations(LocalStore(), found.directory, after)
    of = {path: k for k, path in enumerate(known.paths)}
    assert known.places[of[now[1].path]].tolist() == [1, 6]
    assert known.places[of[now[2].path]].tolist() == [7, -1]
    assert known.rows[of[now[1].path]] == 10 + 1
    # While log files are only appended to a slice, the index knows all rows of the slice.
    again = Commits([now[0], *slices("a/2", mtime=7), *now[2:]], {"a"}, added=frozenset({1}))
    refreshed(again, replace(found, manifest=after))
    assert (again.asked, again.appended_only) == ({1: (10, 5, True)}, {1})
    assert {tuple(one) for one in zip(known.paths, known.mtimes.tolist(), strict=True)} == {
        (file.path, file.mtime) for file in now
    }


def test_index_with_a_map_reads_whole_slices(tmp_path: Path) -> None:
    """If the index has a map, a refresh reads whole slices.

    With a slice in two runs, the other run could contain a key that is missing in the map, and
    CHECK would not report the loss.
    """
    found, _ = version(tmp_path, BEFORE, [6], maps=True)
    table = Commits([*slices("a/1", mtime=5), *BEFORE[1:]], {"a"}, added=frozenset({0}))
    assert refreshed(table, found) == {file.path for file in BEFORE}
    assert (table.read, table.appended_only) == ([BEFORE[0].path], frozenset())


def test_slices_are_read_whole_if_reading_appended_files_fails(tmp_path: Path) -> None:
    """If reading only the appended files fails, a refresh reads whole slices."""
    found, _ = version(tmp_path, BEFORE, [6])
    now = [*slices("a/1", mtime=5), *BEFORE[1:]]
    table = Commits(now, {"a"}, added=frozenset({0}), broken=True)
    assert refreshed(table, found) == {file.path for file in BEFORE}
    assert (table.read, table.appended_only) == ([now[0].path], frozenset())


def test_too_many_grown_slices_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If too many slices have appended files, a refresh reads these slices whole.

    Opening the appended files of many slices would take the driver too long.
    """
    monkeypatch.setattr("sieve.operations.refresh.MOST_ASKED", 1)
    found, _ = version(tmp_path, BEFORE, [6])
    now = [*slices("a/1", "a/2", mtime=5), *BEFORE[2:]]
    table = Commits(now, {"a"}, added=frozenset({0, 1}))
    refreshed(table, found)
    assert (len(table.read), table.appended_only, table.asked) == (2, frozenset(), {})


def test_slice_is_read_again_if_its_appended_part_has_no_rows(tmp_path: Path) -> None:
    """If an appended part has no rows, queries and the next refresh read the part's slice again."""
    found, _ = version(tmp_path, BEFORE, [6])
    now = [*slices("a/1", mtime=5), *BEFORE[1:]]
    table = Commits(now, {"a"}, added=frozenset({0}), empty=True)
    assert refreshed(table, found) == {file.path for file in BEFORE[1:]}
    assert table.appended_only == {0}


def test_unproven_slice_outside_the_folders_is_copied() -> None:
    """An unproven slice outside of the listed folders is copied unchanged."""
    ones = np.ones(2, np.int64)
    paths = (f"{ROOT}/a/1", f"{ROOT}/b/1")
    states = np.array([FileState.UNPROVEN, FileState.READ], np.int8)
    known = Locations(paths, states, np.array([0, 10]), ones, ones, ones, ones, ones)
    table: Any = Commits(slices("b/2"), {"b"})
    found = snapshot_since(table, "2026-01-31T09:30:00.123Z", known)
    assert found is not None
    assert found.files == (*slices("b/2"), DataFile(paths[0], 0, 1))
    assert (found.taken_over, found.instant_ms) == (1, 1_800_000_000_000)


def test_slices_that_grow_in_turn_keep_their_slots(tmp_path: Path) -> None:
    """When slices grow in turn, each slice keeps its slots, and each refresh adds a slot."""
    found, _ = version(tmp_path, BEFORE, [6])
    first = [BEFORE[0], *slices("a/2", mtime=5), *BEFORE[2:]]
    refreshed(Commits(first, {"a"}, added=frozenset({1})), found)
    after = newest(LocalStore(), found.directory)
    assert after is not None
    second = [*first[:2], *slices("b/1", mtime=6), *first[3:]]
    refreshed(Commits(second, {"b"}, added=frozenset({0})), replace(found, manifest=after))
    last = newest(LocalStore(), found.directory)
    assert last is not None
    known = read_locations(LocalStore(), found.directory, last)
    places = dict(zip(known.paths, known.places.tolist(), strict=True))
    assert places[first[1].path] == [1, 6]
    assert places[second[2].path] == [2, 7]
    assert places[BEFORE[0].path] == [0, -1]
