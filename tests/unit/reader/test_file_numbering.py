"""Tests how the ranges of a table's files are numbered if scans use several index versions."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.errors import UnsupportedError
from sieve.metadata.file_list import Locations
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.manifest import Manifest
from sieve.metadata.path_list import PathList
from sieve.metadata.records import VersionId
from sieve.predicate.key_ranges import KeyRanges
from sieve.reader import file_numbering
from sieve.reader.file_numbering import (
    FileNumbering,
    FileNumberings,
    NumberedVersions,
    UnreadableIndexError,
)
from sieve.reader.flag_slices import gather
from sieve.reader.lru_cache import FileCache
from sieve.reader.packed_files import Files
from sieve.reader.placement import Bits
from sieve.reader.version_reader import OpenVersion, open_version
from sieve.storage.interface import GoneError
from sieve.storage.local import LocalStore
from tests.built_index import plain_locations, write_version

LENGTH = 1000


def cut(files: list[int], cuts: dict[int, list[int]]) -> Locations:
    """Files with these numbers and cuts; each has 1,000 bytes, and all rows are NULL.

    If file k is cut, its footer has k bytes.
    """
    listed = plain_locations(max(files) + 1).chosen(np.isin(np.arange(max(files) + 1), files))
    starts = [[0, *cuts.get(number, [])] for number in files]
    counts = np.array([len(some) for some in starts], np.int64)
    flat = np.array([start for some in starts for start in some], np.int64)
    footers = np.where(counts > 1, files, 0)
    ones, zeros = np.ones(len(flat), np.int64), np.zeros(len(flat), np.int64)
    return replace(
        listed,
        lengths=np.full(len(files), LENGTH, np.int64),
        rows=counts,
        nulls=counts,
        slots=np.full(len(files), -1, np.int64),
        ranges=FileRanges(counts, footers, flat, ones, ones, zeros),
    )


def opened(folder: Path, name: str, locations: Locations) -> OpenVersion:
    """Opens a version that has this list of locations and no keys."""
    (folder / name).mkdir()
    version: Manifest = replace(
        write_version(folder / name, [], locations), id=VersionId(name * 32)
    )
    return open_version(LocalStore(), f"file:{folder / name}", version, FileCache(1 << 20))


def numbered_ranges(files: FileNumbering) -> list[tuple[str, int]]:
    """Returns the path and start of each numbered range, as the driver reads them."""
    of = files.files.unpacked()
    places = [list(of.paths)[owner] for owner in of.range_owners]
    return list(zip(places, of.range_starts.tolist(), strict=True))


def ordinals(files: FileNumbering, index: OpenVersion) -> list[int]:
    """For each numbered range, returns the location's number in the given version, or -1."""
    return files.ordinals[index.manifest.id].positions().tolist()


def numbered(*indexes: OpenVersion) -> FileNumbering:
    """Makes the numbering that these versions share."""
    return FileNumberings(FileCache(1 << 20)).of(indexes, indexes)


def test_ranges_of_two_versions(tmp_path: Path) -> None:
    """If one of two versions cuts a file into ranges, the shared numbering has the same ranges."""
    one = opened(tmp_path, "a", cut([0, 1], {0: [100, 400]}))
    two = opened(tmp_path, "b", cut([0, 2], {0: [100, 700], 2: [5]}))
    files = numbered(one, two)
    a, b, c = plain_locations(3).paths
    assert numbered_ranges(files) == [
        *((a, start) for start in (0, 100, 400, 700)),
        (b, 0),
        *((c, start) for start in (0, 5)),
    ]
    assert files.n == 7
    assert files.files.unpacked().footers.tolist() == [0, 0, 2]
    assert ordinals(files, one) == [0, 1, 2, 2, 3, -1, -1]
    assert ordinals(files, two) == [0, 1, 1, 2, -1, 3, 4]


@pytest.mark.parametrize("fact", ["mtimes", "lengths"])
def test_replaced_file_gets_another_number(tmp_path: Path, fact: str) -> None:
    """After the replacement of a file, the old file and the new file have different numbers."""
    before = cut([0], {})
    after = replace(before, **{fact: getattr(before, fact) + 7})
    lists = zip("abc", (before, after, before), strict=True)
    indexes = [opened(tmp_path, name, one) for name, one in lists]
    files = numbered(*indexes)
    assert files.n == 2
    assert [ordinals(files, index) for index in indexes] == [[0, -1], [-1, 0], [0, -1]]


def test_scan_reads_the_ranges_of_unknown_files(tmp_path: Path) -> None:
    """A scan reads all ranges of a file that the version does not know.

    A version makes a scan skip only files that the version knows.
    """
    one = opened(tmp_path, "a", cut([0], {0: [10]}))
    two = opened(tmp_path, "b", cut([1], {1: [10, 20]}))
    files = numbered(one, two)
    nowhere = KeyRanges(np.empty((0, 2), np.int64))
    kept = NumberedVersions((one,), files, partial=False).keep(nowhere)
    assert kept.tolist() == [False, False, True, True, True]


def test_random_cuts(tmp_path: Path) -> None:
    """For any cuts of files, a numbered range never extends over two ranges of a version."""
    draw = random.Random(5)
    for turn in range(20):
        lists = []
        for _ in range(3):
            files = sorted(draw.sample(range(6), draw.randint(1, 6)))
            cuts = {
                n: sorted(draw.sample(range(1, LENGTH), draw.choice([0, 0, 1, 4]))) for n in files
            }
            lists.append(cut(files, cuts))
        (tmp_path / str(turn)).mkdir()
        indexes = [
            opened(tmp_path / str(turn), name, one) for name, one in zip("abc", lists, strict=True)
        ]
        files_of = numbered(*indexes)
        numbers = numbered_ranges(files_of)
        assert len(numbers) == files_of.n
        for index, listed in zip(indexes, lists, strict=True):
            every = listed.every_range
            starts = [
                (listed.paths[owner], int(start))
                for owner, start in zip(every.owners, every.starts, strict=True)
            ]
            assert set(starts) <= set(numbers)
            for (path, start), place in zip(numbers, ordinals(files_of, index), strict=True):
                held = [k for k, (p, s) in enumerate(starts) if p == path and s <= start]
                assert place == (held[-1] if held else -1)


class Version:
    """A version of three locations, in which look-ups find one location."""

    def __init__(self, name: str, kept: int, all_rows: list[bool]) -> None:
        self.manifest = SimpleNamespace(id=name)
        self._kept = np.arange(3) == kept
        self._all_rows = np.array(all_rows)

    def keep(self, _: KeyRanges) -> np.ndarray:
        return self._kept.copy()

    def placement(self) -> SimpleNamespace:
        return SimpleNamespace(all_rows=Bits.of(self._all_rows))


def test_partly_indexed_file_with_hidden_rows_is_read() -> None:
    """If a file may have rows that no version has indexed, a scan reads the file."""
    one: Any = Version("a", 0, [True, False, True])
    two: Any = Version("b", 2, [False, True, True])
    none = np.zeros(4, np.int64)
    # There are four files. The first version does not list the last file, and the second version
    # does not list the first file.
    where: Any = {"a": gather(np.array([0, 1, 2, -1])), "b": gather(np.array([-1, 0, 1, 2]))}
    of = Files(PathList.of(["w", "x", "y", "z"]), none, none, none, none, none[:0])
    files = FileNumbering("n", of.packed(), where)
    nowhere = KeyRanges(np.empty((0, 2), np.int64))
    kept = {
        (partial, *names): NumberedVersions(versions, files, partial=partial).keep(nowhere).tolist()
        for partial in (False, True)
        for names, versions in (("a", (one,)), ("ab", (one, two)))
    }
    yes, no = True, False
    assert kept == {
        (False, "a"): [yes, no, no, yes],
        (True, "a"): [yes, yes, no, yes],
        (False, "a", "b"): [yes, no, no, yes],
        (True, "a", "b"): [yes, yes, no, yes],
    }
    assert NumberedVersions((one,), files, partial=True).knows_all_rows().tolist() == [
        yes, no, yes, no,
    ]  # fmt: skip
    assert NumberedVersions((one, two), files, partial=True).knows_all_rows().tolist() == [
        yes, no, yes, yes,
    ]  # fmt: skip


def test_numbering_with_all_requested_versions_is_reused(tmp_path: Path) -> None:
    """The reader reuses the most recent numbering with all requested versions.

    With a reused numbering, the driver reads no other list of files.
    """
    one, two, three = (
        opened(tmp_path, name, cut([0, 1], {0: [at]}))
        for name, at in zip("123", (5, 6, 7), strict=True)
    )
    numberings = FileNumberings(FileCache(1 << 20))
    alone = numberings.of([one], [one])
    both = numberings.of([one, two], [two, one])
    assert alone.name != both.name
    a, b = plain_locations(2).paths
    assert numbered_ranges(both) == [(a, 0), *((a, k) for k in (5, 6)), (b, 0)]
    assert numberings.of([one], [one, three]) is both
    assert numberings.of([two], [two]) is both
    assert numberings.by_name(alone.name) is alone
    third = numberings.of([three], [three, one])
    assert set(third.ordinals) == {three.manifest.id, one.manifest.id}
    assert numberings.of([one], [one]) is third
    again = FileNumberings(FileCache(1 << 20)).of([two, one], [one, two])
    assert again.name == both.name


def test_least_recently_used_numbering_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there are too many numberings, the least recently used numbering is removed.

    A request that names a removed numbering fails, and the driver repeats the request. If the cache
    has evicted a numbering's list, the reader makes the numbering again.
    """
    monkeypatch.setattr(file_numbering, "MAX_NUMBERINGS", 2)
    versions = [opened(tmp_path, name, cut([0], {0: [5]})) for name in "1234"]
    cache = FileCache(1 << 20)
    numberings = FileNumberings(cache)
    names = [numberings.of([one], [one]).name for one in versions[:2]]
    numberings.of([versions[0]], [versions[0]])
    numberings.of([versions[2]], [versions[2]])
    assert numberings.by_name(names[0]).name == names[0]
    with pytest.raises(UnsupportedError, match="SIEVE_DICTIONARY_GONE"):
        numberings.by_name(names[1])
    cache.resize(0)
    assert numbered_ranges(numberings.by_name(names[0])) == [("file:/t/0", 0), ("file:/t/0", 5)]


def test_missing_list_fails_only_scans_that_need_it(tmp_path: Path) -> None:
    """If a version's list is missing, only scans that need this version get no numbering."""
    one, two = (opened(tmp_path, name, cut([0], {0: [5]})) for name in "12")
    numberings = FileNumberings(FileCache(0))
    both = numberings.of([one, two], [one, two])
    for path in (tmp_path / "2" / "locations").iterdir():
        path.unlink()
    two.cache.resize(0)
    with pytest.raises(GoneError):
        numberings.by_name(both.name)
    with pytest.raises(UnreadableIndexError) as failed:
        numberings.of([one, two], [one, two])
    assert failed.value.manifest is two.manifest
    alone = numberings.of([one], [one, two])
    assert set(alone.ordinals) == {one.manifest.id}
    assert numbered_ranges(numberings.by_name(alone.name)) == numbered_ranges(alone)
    with pytest.raises(UnsupportedError):
        numberings.by_name(both.name)


def test_a_version_without_files_contains_no_range(tmp_path: Path) -> None:
    """A version without files knows no range of the other versions' files."""
    none = opened(tmp_path, "a", cut([0], {}).chosen(np.zeros(1, np.bool_)))
    two = opened(tmp_path, "b", cut([0, 1], {1: [10]}))
    files = numbered(none, two)
    assert ordinals(files, none) == [-1, -1, -1]
    assert ordinals(files, two) == [0, 1, 2]


def test_whole_files_of_one_version_are_unknown_to_the_other(tmp_path: Path) -> None:
    """If only one of two versions lists a file, the file has the number -1 in the other version."""
    one = opened(tmp_path, "a", cut([0, 2], {}))
    two = opened(tmp_path, "b", cut([1, 2], {}))
    files = numbered(one, two)
    a, b, c = plain_locations(3).paths
    assert numbered_ranges(files) == [(a, 0), (c, 0), (b, 0)]
    assert ordinals(files, one) == [0, 1, -1]
    assert ordinals(files, two) == [-1, 1, 0]


def test_versions_of_equal_lists_share_the_numbering_of_one(tmp_path: Path) -> None:
    """Versions with equal lists share one numbering, which needs no additional memory.

    A third version's list has one more cut, so all three versions share a numbering with this cut.
    """
    one, two, other = (
        opened(tmp_path, name, cut([0, 1], {0: at}))
        for name, at in zip("abc", ([5], [5], [5, 6]), strict=True)
    )
    files = numbered(one, two)
    assert files.files is one.placement().files
    assert ordinals(files, one) == ordinals(files, two) == [0, 1, 2]
    files = numbered(one, two, other)
    assert ordinals(files, two) == [0, 1, 1, 2]
    assert ordinals(files, other) == [0, 1, 2, 3]
    assert files.nbytes == files.files.nbytes + sum(
        gathered.nbytes for gathered in files.ordinals.values()
    )


def test_file_listed_twice_has_one_number(tmp_path: Path) -> None:
    """A file that is listed twice has one number, for its last location."""
    listed = plain_locations(3)
    paths = (listed.paths[0], listed.paths[1], listed.paths[0])
    twice = replace(listed, paths=paths, slots=np.full(3, -1))
    index = opened(tmp_path, "a", twice)
    files = numbered(index)
    assert numbered_ranges(files) == [(listed.paths[0], 0), (listed.paths[1], 0)]
    assert ordinals(files, index) == [2, 1]
    # A file with the same path but another time counts as another file.
    times = replace(twice, mtimes=np.array([1, 1, 2]))
    other = opened(tmp_path, "b", times)
    assert ordinals(numbered(other), other) == [0, 1, 2]
