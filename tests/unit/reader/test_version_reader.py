"""Tests the opening of versions, and the detection of files that the manifest does not describe."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.errors import CorruptError, UnsupportedError
from sieve.indexing.reuse import is_one_run
from sieve.metadata.file_list import render_locations
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import LocationsRef, PartRef, RunId, RunRef
from sieve.predicate.key_ranges import KeyRanges
from sieve.reader.lru_cache import Cache
from sieve.reader.version_reader import OpenVersion, open_version
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.storage.interface import GoneError
from sieve.storage.local import LocalStore
from tests.built_index import RUN, CountingStore, plain_locations, write_run, write_version

N = 5
KEY_23 = KeyRanges(np.array([[23, 23]], np.int64))
EVERY_KEY = KeyRanges(np.array([[LEAST, GREATEST]], np.int64))


def run_of(folder: Path, first: int, run_id: RunId = RUN) -> RunRef:
    """Writes a run of five files, numbered from `first` on; file k has the keys 10 k to 10 k+9."""
    keys = np.arange(10 * first, 10 * (first + N), dtype=np.int64)
    pairs = (keys, (keys // 10 - first).astype(np.int32), np.ones_like(keys))
    segments = list(cut_segments(iter([pairs]), error=1, hole=1000))
    rows = [("sieve", s.first, s.last, 0, 0, 0, encode_segment(s)) for s in segments]
    return write_run(folder, [rows], Encoder("bigint"), N, run_id)


@pytest.fixture
def version(tmp_path: Path) -> Manifest:
    """Writes a version of five files, its list of locations, and its run."""
    return write_version(tmp_path, [run_of(tmp_path, 0)], plain_locations(N))


def opened(version: Manifest, folder: Path) -> OpenVersion:
    """Opens the version with an empty cache."""
    return open_version(LocalStore(), f"file:{folder}", version, Cache(1 << 20))


def answer(version: Manifest, folder: Path) -> list[bool]:
    """Reads all files again; returns, for each location, whether a look-up of key 23 finds it."""
    return opened(version, folder).keep(KEY_23).tolist()


def reader_of(number: int, version: Manifest, folder: Path) -> Callable[[], object]:
    """Returns a function that reads one of the version's two files again whenever it is called.

    This function opens the version to read the list, or looks up a key to read the run.
    """
    if number == 0:
        return lambda: opened(version, folder)
    index = opened(version, folder)
    return lambda: index.keep(KEY_23)


def files(folder: Path) -> list[Path]:
    """Returns the paths of the list of locations and of the run file."""
    return sorted(folder.rglob("*.parquet"))


def test_undamaged_version_finds_the_file_with_the_key(version: Manifest, tmp_path: Path) -> None:
    """If a version is undamaged, a look-up finds the file that contains the key."""
    assert answer(version, tmp_path) == [False, False, True, False, False]


@pytest.mark.parametrize("number", [0, 1])
def test_every_truncated_file_is_corrupt(version: Manifest, tmp_path: Path, number: int) -> None:
    """A list or run file that is truncated to any length is corrupt."""
    path = files(tmp_path)[number]
    data, read = path.read_bytes(), reader_of(number, version, tmp_path)
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptError):
            read()


@pytest.mark.parametrize("number", [0, 1])
def test_every_file_with_a_flipped_bit_is_corrupt(
    version: Manifest, tmp_path: Path, number: int
) -> None:
    """A list or run file with one flipped bit is corrupt."""
    path = files(tmp_path)[number]
    data, read = path.read_bytes(), reader_of(number, version, tmp_path)
    rng = random.Random(1)
    for _ in range(1500):
        place, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        with pytest.raises(CorruptError):
            read()


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_file_is_gone(version: Manifest, tmp_path: Path, number: int) -> None:
    """The error for a missing file differs from the error for a damaged file."""
    files(tmp_path)[number].unlink()
    with pytest.raises(GoneError):
        answer(version, tmp_path)


def test_version_cannot_be_opened_without_its_list(version: Manifest, tmp_path: Path) -> None:
    """If the list of locations is missing, the version cannot be opened."""
    files(tmp_path)[0].unlink()
    with pytest.raises(GoneError):
        opened(version, tmp_path)


def test_list_with_slots_outside_of_all_runs_is_corrupt(version: Manifest, tmp_path: Path) -> None:
    """A list with slots outside of all runs is corrupt, even if its checksum is right."""
    listed = dataclasses.replace(plain_locations(1), slots=np.array([N]))
    short = render_locations(listed, ("file:/t",))
    path = tmp_path / "locations" / f"{'ef' * 16}.parquet"
    path.write_bytes(short)
    made = PartRef(path.name, len(short), hashlib.sha256(short).hexdigest(), 1)
    other = dataclasses.replace(version, locations=LocationsRef((made,), 1))
    with pytest.raises(CorruptError, match="unknown place"):
        answer(other, tmp_path)


def test_look_up_of_all_keys_reads_no_run(version: Manifest, tmp_path: Path) -> None:
    """A look-up of all keys reads no run, because counts show which locations have keys.

    A location has no keys if each of its rows is NULL or NaN.
    """
    ten, none = np.full(N, 10), np.zeros(N, np.int64)
    nulls, nans = np.array([0, 10, 3, 0, 9]), np.array([0, 0, 7, 10, 0])
    folder = tmp_path / "other"
    listed = dataclasses.replace(
        plain_locations(N), lengths=ten, mtimes=none, nulls=nulls, nans=nans
    )
    counted = write_version(folder, version.runs, listed)
    index = open_version(LocalStore(), f"file:{folder}", counted, Cache(1 << 20))
    assert index.keep(EVERY_KEY).tolist() == [True, False, False, False, True]
    with_nan = dataclasses.replace(EVERY_KEY, nan=True)
    assert index.keep(with_nan).tolist() == [True, False, True, True, True]
    nowhere = KeyRanges(np.empty((0, 2), np.int64), null=True)
    assert index.keep(nowhere).tolist() == [False, True, True, False, True]


def test_range_over_all_runs_counts_as_all_keys(version: Manifest, tmp_path: Path) -> None:
    """A range counts as all keys if it contains the least and the greatest key of all runs."""
    index = open_version(LocalStore(), f"file:{tmp_path}", version, Cache(1 << 20))
    spans = [run.span for run in index.runs]
    least, greatest = min(low for low, _ in spans), max(high for _, high in spans)
    for first, last, every in (
        (least, greatest, True),
        (least - 1, greatest + 1, True),
        (least + 1, greatest, False),
        (least, greatest - 1, False),
        (least + 1, greatest - 1, False),
    ):
        assert index._every_key(KeyRanges(np.array([[first, last]]))) is every
    both = np.array([[least, greatest], [greatest + 2, greatest + 3]])
    assert not index._every_key(KeyRanges(both))


def test_each_run_is_searched_for_its_own_locations(tmp_path: Path) -> None:
    """A look-up searches each run for the run's own locations.

    A range can contain all keys of one run, but not all keys of the version.
    """
    runs = [run_of(tmp_path, 0), run_of(tmp_path, N, RunId("ee" * 16))]
    index = opened(write_version(tmp_path, runs, plain_locations(2 * N)), tmp_path)

    def kept_locations(*intervals: tuple[int, int]) -> list[int]:
        return np.flatnonzero(index.keep(KeyRanges(np.array(intervals, np.int64)))).tolist()

    assert kept_locations((44, 61)) == [4, 5, 6]
    assert kept_locations((3, 3), (99, 99)) == [0, 9]
    assert kept_locations((0, 49)) == list(range(N))
    assert kept_locations((50, 99)) == list(range(N, 2 * N))
    assert kept_locations((0, 99)) == list(range(2 * N))


def test_a_location_may_be_in_several_runs(tmp_path: Path) -> None:
    """If a location has slots in several runs, each of the runs can find the location."""
    runs = [run_of(tmp_path, 0), run_of(tmp_path, N, RunId("ee" * 16))]
    also = np.full((N, 2), -1)
    also[1], also[3, 0] = [N + 2, N + 4], N
    listed = dataclasses.replace(plain_locations(N), also=also)
    index = opened(write_version(tmp_path, runs, listed), tmp_path)

    def kept_locations(*intervals: tuple[int, int]) -> list[int]:
        return np.flatnonzero(index.keep(KeyRanges(np.array(intervals, np.int64)))).tolist()

    assert [kept_locations((10 * k, 10 * k)) for k in range(2 * N)] == [
        [0], [1], [2], [3], [4], [3], [], [1], [], [1],
    ]  # fmt: skip
    assert kept_locations((45, 55)) == [3, 4]


def test_list_with_a_wrong_further_slot_is_corrupt(tmp_path: Path) -> None:
    """A list is corrupt if a further slot of a location is outside of all runs."""
    runs = [run_of(tmp_path, 0), run_of(tmp_path, N, RunId("ee" * 16))]
    listed = dataclasses.replace(plain_locations(N), also=np.full((N, 1), 2 * N))
    with pytest.raises(CorruptError, match="unknown place"):
        opened(write_version(tmp_path, runs, listed), tmp_path)


def test_version_of_the_same_files_adds_no_memory(version: Manifest, tmp_path: Path) -> None:
    """A second version of the same files, as after ALTER, opens without further reads."""
    store, cache = CountingStore(), Cache(1 << 20)
    kept = open_version(store, f"file:{tmp_path}", version, cache).keep(KEY_23)
    read, held = len(store.read_names), cache.nbytes
    later = dataclasses.replace(version, version=2, parent=version.id)
    again = open_version(store, f"file:{tmp_path}", later, cache).keep(KEY_23)
    assert again.tolist() == kept.tolist()
    assert (len(store.read_names), cache.nbytes) == (read, held) == (2, held)


def test_runs_with_other_codes_are_too_new(version: Manifest, tmp_path: Path) -> None:
    """If the runs of a version have different encoders, the version is too new for this release.

    One look-up of a predicate can search only runs with the same encoder.
    """
    other = dataclasses.replace(version.runs[0], encoder={"type": "int"})
    mixed = dataclasses.replace(version, runs=(*version.runs, other))
    with pytest.raises(UnsupportedError, match="different"):
        opened(mixed, tmp_path)


@pytest.mark.parametrize("parts", [1, 2])
def test_versions_around_a_rename_share_cached_parts(tmp_path: Path, parts: int) -> None:
    """The versions before and after a rename share the cached parts of their list.

    For each version, the paths are below the version's own root.
    """
    before = write_version(tmp_path, [run_of(tmp_path, 0)], plain_locations(N))
    if parts == 2:
        changed = dataclasses.replace(plain_locations(1), rows=np.array([7]))
        data = render_locations(changed, before.roots)
        name = f"{'ef' * 16}.parquet"
        (tmp_path / "locations" / name).write_bytes(data)
        part = PartRef(name, len(data), hashlib.sha256(data).hexdigest(), 1)
        before = dataclasses.replace(
            before, locations=LocationsRef((*before.locations.parts, part), N)
        )
    after = dataclasses.replace(before, roots=("file:/renamed",))
    cache, store = Cache(1 << 20), LocalStore()
    for version in (before, after, before):
        index = open_version(store, f"file:{tmp_path}", version, cache)
        for paths in (index.locations().paths, index.placement().files.unpacked().paths):
            assert {path.rpartition("/")[0] for path in paths} == {*version.roots}
        assert sum(index.locations().rows.tolist()) == 10 * N - 3 * (parts - 1)


def test_each_range_of_a_file_is_looked_up_separately(tmp_path: Path) -> None:
    """Look-ups find each range of a cut file separately, for keys and for NULL."""
    zeros, ones = np.zeros(N, np.int64), np.ones(N, np.int64)
    nulls = np.array([0, 0, 1, 0, 0], np.int64)
    listed = dataclasses.replace(
        plain_locations(2),
        lengths=np.array([300, 200], np.int64),
        rows=np.array([3, 2], np.int64),
        nulls=np.array([1, 0], np.int64),
        nans=zeros[:2],
        slots=np.array([0, 3], np.int64),
        ranges=FileRanges(
            np.array([3, 2], np.int64),
            np.zeros(2, np.int64),
            np.array([0, 100, 200, 0, 100], np.int64),
            ones,
            nulls,
            zeros,
        ),
    )
    index = opened(write_version(tmp_path, [run_of(tmp_path, 0)], listed), tmp_path)
    for k in range(N):
        kept = index.keep(KeyRanges(np.array([[10 * k + 3] * 2], np.int64)))
        assert np.flatnonzero(kept).tolist() == [k]
    nulls_alone = KeyRanges(np.empty((0, 2), np.int64), null=True)
    assert np.flatnonzero(index.keep(nulls_alone)).tolist() == [2]
    assert is_one_run(index.manifest, index.locations())
