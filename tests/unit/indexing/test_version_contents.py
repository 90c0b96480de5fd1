"""Tests the contents of a version.

If a build may have misread a file, the version lists the file as unproven. An unproven file changed
during the build, or was read only in part.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.environment import Advice
from sieve.errors import UnsupportedError
from sieve.indexing import version_contents
from sieve.indexing.build_run import BuiltRun
from sieve.indexing.tiling import Tiling
from sieve.indexing.version_contents import ReaderChangedError
from sieve.metadata.contents import Contents
from sieve.metadata.file_list import FileState, Locations, parse_locations, states_of
from sieve.metadata.index_options import IndexOptions
from sieve.storage.local import LocalStore
from sieve.tables import snapshot
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile, FileCuts

OLD = 1_600_000_000_000


class Listed:
    """A table that returns a different listing at each call, and records which files are read."""

    write_file = None

    def __init__(self, *listings: Sequence[DataFile], **parts: str) -> None:
        self.listings = [tuple(listing) for listing in listings]
        self.read: list[int] = []
        self.fingerprints = ["0" * 64]
        self.info = SimpleNamespace(
            label="d.t",
            format_name="parquet",
            identity=SimpleNamespace(location="file:/warehouse/t"),
            columns=(Column(("id",), "bigint"),),
            partition_columns=(),
            fingerprint="0" * 64,
            fingerprint_parts={"format": "parquet x"} | parts,
        )

    def fingerprint(self) -> str:
        return self.fingerprints.pop(0)

    def files(self) -> tuple[DataFile, ...]:
        return self.listings.pop(0) if len(self.listings) > 1 else self.listings[0]

    def frame(self, numbers: Sequence[int], *_: object, **_how: object) -> list[int]:
        self.read = list(numbers)
        return self.read

    def cuts(self, numbers: Sequence[int], _least: int) -> list[FileCuts]:
        return [FileCuts((8 << 20, 16 << 20), 700) for _ in numbers]


def data_file(name: str, length: int = 10, mtime: int = OLD) -> DataFile:
    """A data file of the table."""
    return DataFile(f"file:/warehouse/t/{name}", length, mtime)


@contextlib.contextmanager
def building(monkeypatch: pytest.MonkeyPatch, rows: Sequence[int]) -> Iterator[None]:
    """Replaces the reading of files: each file has this many rows; -1 means an unproven file."""

    def build_run(_: Any, __: Any, tiling: Tiling, *_args: Any, **_words: Any) -> BuiltRun:
        assert len(tiling.owners) == len(rows)
        counts = np.array(rows, np.int64)
        return BuiltRun(None, tiling, counts, np.ones_like(counts), np.zeros_like(counts), (), 8.0)

    monkeypatch.setattr(version_contents, "build_run", build_run)
    yield


def build(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    table: Listed,
    rows: Sequence[int],
    sleep: Callable[[float], Any] = time.sleep,
    advice: Advice | None = None,
) -> tuple[Contents, Locations]:
    """Runs a build; returns the contents of the version, and its list of locations."""
    store = LocalStore()
    directory = f"file:{folder}"
    for name in ("locations", "intents"):
        store.mkdirs(f"{directory}/{name}")
    environment = SimpleNamespace(
        check_cancelled=lambda: None,
        describe_job=lambda _: None,
        advice=advice or Advice(),
        range_bytes=1 << 23,
    )
    with building(monkeypatch, rows):
        made = version_contents.build_contents(
            table,  # type: ignore[arg-type]
            Column(("id",), "bigint"),
            IndexOptions(),
            store,
            directory,
            environment,  # type: ignore[arg-type]
            snapshot.stable_snapshot(table.files, store, directory, sleep),
            name="id_sieve",
        )
    (part,) = made.locations.parts
    data = store.read(f"{directory}/locations/{part.name}")
    return made, parse_locations(data, made.roots, part.rows)


def proven(locations: Locations) -> dict[str, bool]:
    """Returns, for each listed file, whether it is proven."""
    names = [path.rpartition("/")[2] for path in locations.paths]
    return dict(zip(names, (locations.states == FileState.READ).tolist(), strict=True))


def test_unchanged_files_are_proven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file is proven if it is the same before and after the build reads it."""
    files = [data_file("a"), data_file("b")]
    made, locations = build(monkeypatch, tmp_path, Listed(files), [3, 4])
    assert proven(locations) == {"a": True, "b": True}
    assert locations.rows.tolist() == [3, 4]
    assert (made.stats.rows, made.stats.nulls, made.stats.files_total) == (7, 2, 2)


@pytest.mark.parametrize(
    "after",
    [
        [data_file("a"), data_file("b", length=11)],
        [data_file("a"), data_file("b", mtime=OLD + 1)],
        [data_file("a"), data_file("b", mtime=OLD - 1)],
    ],
    ids=["longer", "later", "earlier"],
)
def test_file_changed_during_the_build_is_unproven(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, after: list[DataFile]
) -> None:
    """A file that changed during the build is unproven.

    The build may have read the file's old bytes, its new bytes, or some of both.
    """
    before = [data_file("a"), data_file("b")]
    _, locations = build(monkeypatch, tmp_path, Listed(before, after), [3, 4])
    assert proven(locations) == {"a": True, "b": False}
    assert locations.rows.tolist() == [3, 0]
    assert locations.nulls.tolist() == [1, 0]


def test_advice_on_damaged_records_is_about_one_index(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Advice on files with damaged records is about the index that the build makes."""
    table, advice = Listed([data_file("a"), data_file("b")]), Advice()
    table.info.format_name = "csv"
    build(monkeypatch, tmp_path, table, [3, -1], advice=advice)
    ((index, sentence),) = advice
    assert index == "id_sieve"
    assert sentence.startswith("1 of 2 files have a damaged record")


def test_file_deleted_during_the_build_is_not_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The version does not list a file that disappeared during the build.

    If a deleted file appears again, the next refresh reads it.
    """
    before = [data_file("a"), data_file("b"), data_file("c")]
    after = [data_file("a"), data_file("c")]
    _, locations = build(monkeypatch, tmp_path, Listed(before, after), [3, 4, 5])
    assert proven(locations) == {"a": True, "c": True}
    assert locations.rows.tolist() == [3, 5]


def test_file_added_during_the_build_is_not_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The version does not list a file that appeared during the build."""
    before = [data_file("a")]
    _, locations = build(monkeypatch, tmp_path, Listed(before, [*before, data_file("b")]), [3])
    assert proven(locations) == {"a": True}


def test_a_file_read_in_part_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If a build read a file only in part, the file is unproven.

    The build then counts fewer rows than the file's metadata reports, or no rows.
    """
    files = [data_file("a"), data_file("b")]
    made, locations = build(monkeypatch, tmp_path, Listed(files), [-1, 4])
    assert proven(locations) == {"a": False, "b": True}
    assert made.stats.rows == 4


def test_a_file_without_rows_may_be_proven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file with 0 rows can be proven. The row count -1 marks an unproven file."""
    files = [data_file("a"), data_file("b")]
    _, locations = build(monkeypatch, tmp_path, Listed(files), [0, 4])
    assert proven(locations) == {"a": True, "b": True}


def test_text_without_a_row_in_the_first_range_is_unproven(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A CSV file whose first range has no row is unproven.

    The header of a CSV file can end after the first range. A scan that skips the first range would
    take the end of the header for a row.
    """
    table = Listed([data_file("a", 24 << 20), data_file("b", 24 << 20)], format="csv x")
    table.info.format_name = "csv"
    _, locations = build(monkeypatch, tmp_path, table, [0, 5, 5, 1, 0, 6])
    assert proven(locations) == {"a": False, "b": True}
    assert locations.rows.tolist() == [0, 7]


def test_file_with_a_future_time_is_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A build lists a file with a future time as racy, and does not wait for or read the file."""

    def no_sleep(seconds: float) -> None:
        pytest.fail(f"waits {seconds} s for a file that will be young for long")

    future = data_file("b", mtime=OLD + 10**13)
    table = Listed([data_file("a"), future, data_file("c")])
    made, locations = build(monkeypatch, tmp_path, table, [3, 4], no_sleep)
    assert table.read == [0, 2]
    assert [path.rpartition("/")[2] for path in locations.paths] == ["a", "c", "b"]
    assert locations.stored_lengths.tolist() == [10, 10, FileState.RACY]
    assert made.stats.files_total == 3


def test_a_table_without_files_has_an_empty_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If a table has no files, its version has no runs and no locations."""
    made, locations = build(monkeypatch, tmp_path, Listed([]), [])
    assert (made.runs, locations.paths, made.stats.rows) == ((), (), 0)


def test_build_fails_if_the_reader_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the fingerprint of the reader changes during a build, the build fails.

    Some rows may have been read with settings that differ from the fingerprint.
    """
    table = Listed([data_file("a")])
    table.fingerprints = ["1" * 64]
    with pytest.raises(ReaderChangedError, match="SIEVE_READER_CHANGED"):
        build(monkeypatch, tmp_path, table, [3])
    assert list((tmp_path / "locations").iterdir()) == []


@pytest.mark.parametrize("handling", ["BACK_TO_DELIMITER", "skip_value"])
def test_csv_is_refused_if_values_depend_on_other_columns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, handling: str
) -> None:
    """The build refuses CSV if an option for stray quotes makes values depend on other columns."""
    parts = {"format": "csv x", "option.unescapedquotehandling": handling}
    with pytest.raises(UnsupportedError, match="unescapedQuoteHandling"):
        build(monkeypatch, tmp_path, Listed([data_file("a")], **parts), [3])


def listed(numbers: Sequence[int], counts: Sequence[int], places: Sequence[int]) -> Locations:
    """Lists these files with these slots; their rows, NULLs and NaNs are multiples of `counts`."""
    each = np.array(counts, np.int64)
    states = states_of(len(numbers))
    paths = tuple(f"file:/t/{number}" for number in numbers)
    slots = np.array(places, np.int64)
    return Locations(paths, states, each * 0 + 10, each * 0, 100 * each, 10 * each, each, slots)


def test_grown_file_has_the_counts_of_both_readings() -> None:
    """The counts of a file with appended rows are sums of its old rows and its appended rows.

    If the build reads a file in part or again, it does not add the counts of the earlier reading.
    """
    known = listed([0, 1, 2, 3], [1, 3, 5, 7], [0, 1, -1, 3])
    news = listed([1, 2, 3, 9], [1, 1, 1, 1], [4, 5, 6, 7])
    news.states[2] = FileState.UNPROVEN
    kept: Any = SimpleNamespace(
        locations=known, appended=frozenset(f"file:/t/{k}" for k in (1, 2, 3))
    )
    found = version_contents._with_appended(kept, news)
    assert [path[-1] for path in found.paths] == ["0", "9", "1", "2"]
    assert found.nans.tolist() == [1, 1, 4, 6]
    assert (found.nulls.tolist(), found.rows.tolist()) == (
        [10, 10, 40, 60],
        [100, 100, 400, 600],
    )
    assert found.places.tolist() == [[0, -1], [7, -1], [1, 4], [5, -1]]


@pytest.mark.parametrize(
    ("places", "packed"),
    [
        ([[-1, 5], [3, -1]], [[5], [3]]),
        ([[0, -1, 2], [-1, -1, 0]], [[0, 2], [0, -1]]),
        ([[-1, -1], [-1, -1]], [[-1], [-1]]),
    ],
)
def test_slots_are_moved_to_the_front(places: list[list[int]], packed: list[list[int]]) -> None:
    """Slots are moved to the front, and columns without slots are removed.

    If no file has keys, one column of slots remains.
    """
    assert version_contents._packed(np.array(places, np.int64)).tolist() == packed
