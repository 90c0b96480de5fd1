"""Tests the list of locations: versions share its parts, and readers detect damage."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sieve.errors import CorruptError
from sieve.indexing.write_file_list import read_list, store_list
from sieve.metadata.file_list import (
    NO_LOCATIONS,
    FileState,
    Locations,
    diff,
    merge,
    parse_locations,
    render_locations,
    states_of,
)
from sieve.metadata.file_ranges import whole_files
from sieve.metadata.manifest import Manifest, render_manifest
from sieve.metadata.records import CreatedBy, LocationsRef
from sieve.metadata.registration import Registration
from sieve.operations.refresh import RefreshMode, refresh_index
from sieve.operations.registered_index import Ready
from sieve.reader.lru_cache import Cache
from sieve.reader.version_reader import open_version, read_locations
from sieve.storage.interface import GoneError
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile
from tests.built_index import PARTS, ROOT, CountingStore, plain_locations, write_version
from tests.fake_spark import without_spark
from tests.unit.metadata.manifest_sample import SAMPLE

N = 100_000
OLD = 1_600_000_000_000
RUN = replace(SAMPLE.runs[0], locations=N, encoder={"type": "bigint"})


def next_version(folder: Path, version: Manifest, now: Locations) -> Manifest:
    """Returns the version that follows `version` and has this list of locations."""
    store = LocalStore()
    store.mkdirs(f"file:{folder}/intents")
    before = read_list(store, f"file:{folder}", version)
    ref, roots = store_list(store, f"file:{folder}", now, (ROOT,), before)
    return replace(version, locations=ref, roots=roots)


def three_parts(folder: Path) -> Manifest:
    """Makes a version of 60 locations, whose list has parts of 64, 8 and 2 rows."""
    base = write_version(folder, [replace(RUN, locations=100)], plain_locations(64))
    some = plain_locations(60)
    times = some.mtimes.copy()
    times[:4] = 7
    second = next_version(folder, base, replace(some, mtimes=times))
    lengths = some.lengths.copy()
    lengths[:2] = 9
    third = next_version(folder, second, replace(some, mtimes=times, lengths=lengths))
    assert [part.rows for part in third.locations.parts] == [64, 8, 2]
    return third


def test_version_shares_the_parts_of_earlier_versions(tmp_path: Path) -> None:
    """Each of three versions writes one part of its list, and each list is read back unchanged."""
    version = three_parts(tmp_path)
    known = read_locations(LocalStore(), f"file:{tmp_path}", version)
    assert sorted(known.paths) == sorted(plain_locations(60).paths)
    facts = dict(zip(known.paths, zip(known.lengths, known.mtimes, strict=True), strict=True))
    assert [facts[f"{ROOT}/{k}"] for k in (0, 1, 2, 3, 4)] == [
        (9, 7),
        (9, 7),
        (1, 7),
        (1, 7),
        (1, 1),
    ]
    assert len(list((tmp_path / "locations").iterdir())) == 3


def test_location_of_a_later_run_gets_a_new_row(tmp_path: Path) -> None:
    """After the removal of a run, the next part of the list gives later locations new slots."""
    base = write_version(tmp_path, [replace(RUN, locations=100)], plain_locations(64))
    slots = np.arange(64)
    slots[60:] -= 8
    moved = next_version(tmp_path, base, replace(plain_locations(64), slots=slots))
    assert [part.rows for part in moved.locations.parts] == [64, 4]
    assert read_locations(LocalStore(), f"file:{tmp_path}", moved).slots.tolist() == slots.tolist()


def test_list_is_written_whole_after_many_removals(tmp_path: Path) -> None:
    """After the removal of over a quarter of the locations, Sieve writes the whole list again."""
    base = write_version(tmp_path, [replace(RUN, locations=100)], plain_locations(100))
    assert [p.rows for p in next_version(tmp_path, base, plain_locations(75)).locations.parts] == [
        100,
        25,
    ]
    assert [p.rows for p in next_version(tmp_path, base, plain_locations(74)).locations.parts] == [
        74
    ]


def test_new_folder_keeps_the_numbers_of_known_folders(tmp_path: Path) -> None:
    """A new folder does not change the numbers of known folders, as older parts use the numbers.

    A complete list names only folders that contain locations.
    """
    store, directory = LocalStore(), f"file:{tmp_path}"
    base = write_version(tmp_path, [replace(RUN, locations=100)], plain_locations(64))
    store.mkdirs(f"{directory}/intents")
    more = replace(plain_locations(65), paths=(*plain_locations(64).paths, "file:/a/x"))
    before = read_list(store, directory, base)
    ref, roots = store_list(store, directory, more, ("file:/a", ROOT), before)
    assert roots == (ROOT, "file:/a")
    now = replace(base, locations=ref, roots=roots)
    assert read_locations(store, directory, now).paths == more.paths
    alone = replace(plain_locations(1), paths=("file:/a/x",))
    ref, roots = store_list(store, directory, alone, ("file:/a",), read_list(store, directory, now))
    assert (len(ref.parts), roots) == (1, ("file:/a",))


@pytest.mark.parametrize("number", range(3))
def test_every_part_is_verified(tmp_path: Path, number: int) -> None:
    """A truncated part, or a part with a flipped bit, is corrupt. A deleted part is missing."""
    version, directory = three_parts(tmp_path), f"file:{tmp_path}"
    path = tmp_path / "locations" / version.locations.parts[number].name
    data = path.read_bytes()
    for damaged in (data[:-1], data[: len(data) // 2], b"", flipped(data)):
        path.write_bytes(damaged)
        for read in (read_locations, read_list, opened):
            with pytest.raises(CorruptError):
                read(LocalStore(), directory, version)
    path.unlink()
    with pytest.raises(GoneError):
        opened(LocalStore(), directory, version)


def flipped(data: bytes) -> bytes:
    """Returns the bytes with one flipped bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def opened(store: LocalStore, directory: str, version: Manifest) -> Locations:
    """Reads the list of locations as a scan does."""
    return open_version(store, directory, version, Cache(1 << 24)).locations()


def test_list_with_missing_or_wrong_parts_is_corrupt(tmp_path: Path) -> None:
    """A list is corrupt if a part is missing, or if the parts' order or row counts are wrong."""
    version, directory = three_parts(tmp_path), f"file:{tmp_path}"
    first, second, third = version.locations.parts
    lies = [
        LocationsRef((first, third), 60),
        LocationsRef((second, first, third), 60),
        LocationsRef((), 60),
        LocationsRef(version.locations.parts, 61),
        LocationsRef((first, replace(second, rows=9), third), 60),
        LocationsRef((replace(second, rows=4), third), 4),
    ]
    for lie in lies:
        for read in (read_locations, read_list, opened):
            with pytest.raises(CorruptError):
                read(LocalStore(), directory, replace(version, locations=lie))
    few = replace(version, runs=(replace(RUN, locations=59),))
    with pytest.raises(CorruptError, match="unknown place"):
        opened(LocalStore(), directory, few)


@pytest.mark.parametrize("column", ["root", "path", "mtime", "slot"])
def test_a_part_with_a_value_missing_is_corrupt(column: str) -> None:
    """A NULL in a required column makes a part corrupt, even if its checksum is right."""
    table = pq.read_table(io.BytesIO(render_locations(plain_locations(3), (ROOT,))))
    place = table.schema.get_field_index(column)
    values = [*table[column].to_pylist()[:2], None]
    field = table.schema.field(place)
    sink = io.BytesIO()
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), sink)
    with pytest.raises(CorruptError):
        parse_locations(sink.getvalue(), (ROOT,), 3)


def test_new_version_reads_only_its_new_part(tmp_path: Path) -> None:
    """For a new version, a scan reads only the list's new part, as a cache has older parts."""
    version, directory = three_parts(tmp_path), f"file:{tmp_path}"
    store, cache = CountingStore(), Cache(1 << 24)
    open_version(store, directory, version, cache)
    names = [part.name for part in version.locations.parts]
    assert store.read_names == names
    known = read_locations(LocalStore(), directory, version)
    later = next_version(tmp_path, version, known.chosen(np.array([k > 0 for k in range(60)])))
    *_, new = later.locations.parts
    assert len(open_version(store, directory, later, cache).locations().paths) == 59
    assert store.read_names == [*names, new.name]


def test_later_part_does_not_change_an_old_list(tmp_path: Path) -> None:
    """A new part of a list does not change the lists of older versions.

    The new part lists removed paths with the state `REMOVED`.
    """
    version, directory = three_parts(tmp_path), f"file:{tmp_path}"
    older = replace(version, locations=LocationsRef(version.locations.parts[:1], 64))
    known = read_locations(LocalStore(), directory, older)
    assert known.paths == plain_locations(64).paths
    stored = read_list(LocalStore(), directory, version)
    assert sum(int((part.states == FileState.REMOVED).sum()) for part in stored.parts) == 4


class Listed:
    """A table of files, each with one key."""

    def __init__(self, files: list[DataFile]) -> None:
        self._files = tuple(files)
        self.info = SimpleNamespace(
            label="d.t", format_name="parquet", identity=SimpleNamespace(location=ROOT),
            fingerprint=SAMPLE.fingerprint, fingerprint_parts=PARTS,
            columns=[Column(("v",), "bigint")], partition_columns=(),
            column_of=lambda key: Column(key, "bigint"),
        )  # fmt: skip

    write_file = None

    def fingerprint(self) -> str:
        return SAMPLE.fingerprint

    def files(self) -> tuple[DataFile, ...]:
        return self._files

    def changes(self, _instant: str, _commit: None) -> None:
        return None

    def appended(self, files: object) -> frozenset[int]:
        assert not files
        return frozenset()

    def frame(
        self, numbers: list[int], _column: object, _news: object = (), **_how: object
    ) -> list[list[int]]:
        return [[number] for number in numbers]


def in_folder(folder: Path) -> dict[Path, int]:
    """Returns the bytes of each file below a folder."""
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def test_refresh_of_few_files_writes_few_bytes(tmp_path: Path) -> None:
    """If ten of 100,000 files change, a refresh writes less than 1 % of the index's bytes."""
    names = [hashlib.md5(b"%d" % k).hexdigest() for k in range(N)]
    paths = tuple(
        f"{ROOT}/day={k % 365}/part-{k:05d}-{name}.parquet" for k, name in enumerate(names)
    )
    ones = np.ones(N, np.int64)
    known = Locations(paths, states_of(N), ones, ones * OLD, ones, ones * 0, ones * 0, np.arange(N))
    folder = tmp_path / SAMPLE.index
    base = replace(write_version(folder, [RUN], known), next_options=None)
    whole = sum(in_folder(folder).values())
    for name in ("versions", "intents"):
        (folder / name).mkdir()
    (folder / "versions" / "1.json").write_bytes(render_manifest(base))
    before = in_folder(folder)
    files = [DataFile(path, 1, OLD) for path in paths]
    files[500:510] = [DataFile(f"{path}.new", 1, OLD) for path in paths[500:510]]
    registration = Registration(base.index, base.column, f"file:{tmp_path}")
    index = Ready("v", registration, LocalStore(), base)
    environment: Any = SimpleNamespace(
        check_cancelled=lambda: None,
        describe_job=lambda _: None,
        range_bytes=1 << 23,
        software=CreatedBy("0", "4.1"),
        changing=lambda: None,
    )
    with without_spark():
        now = refresh_index(Listed(files), index, RefreshMode.INCREMENTAL, environment)  # type: ignore[arg-type]
    assert (now.version, now.locations.count) == (2, N)
    assert [part.rows for part in now.locations.parts] == [N, 20]
    written = sum(size for path, size in in_folder(folder).items() if path not in before)
    assert 0 < written < whole / 100
    again = read_locations(LocalStore(), f"file:{folder}", now)
    assert set(again.paths) == {file.path for file in files}


def test_number_of_roots_in_a_list_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of roots in a list is limited, even if each partition has its own root."""
    n, most = 60, 64
    monkeypatch.setattr("sieve.indexing.write_file_list.MAX_ROOTS", most)

    def days(first: int) -> tuple[Locations, tuple[str, ...]]:
        roots = tuple(f"file:/day/{day}" for day in range(first, first + n))
        paths = tuple(f"{root}/f" for root in roots)
        return replace(plain_locations(n), paths=paths, slots=np.full(n, -1)), roots

    store, home = LocalStore(), f"file:{tmp_path}"
    store.mkdirs(f"{home}/intents")
    version = write_version(tmp_path, [RUN], plain_locations(n))
    longest = 0
    for first in range(1, 3 * n):
        listed, roots = days(first)
        ref, roots = store_list(store, home, listed, roots, read_list(store, home, version))
        version = replace(version, locations=ref, roots=roots)
        longest = max(longest, len(roots))
    assert sorted(read_locations(store, home, version).paths) == sorted(listed.paths)
    assert n < longest <= most


@pytest.mark.parametrize(
    ("before", "now"),
    [([0, 1], [1]), ([0, 1], [0]), ([1], [1, 2]), ([1], [0, 1]), ([0, 1], [1, 2])],
)
def test_changed_part_has_all_rows_of_a_path_listed_twice(
    before: list[int], now: list[int]
) -> None:
    """If one of a path's two rows changes, the list's new part contains both rows."""

    def listed(times: list[int]) -> Locations:
        one = plain_locations(len(times))
        facts = np.array(times)
        return replace(one, paths=(f"{ROOT}/p",) * len(times), mtimes=facts, slots=facts)

    made = merge([listed(before), diff(listed(before), listed(now))])
    assert sorted(made.mtimes.tolist()) == now


def test_state_of_a_file_is_stored_as_a_negative_length() -> None:
    """As in earlier releases, a negative length stores the state of a file.

    If a list contains an unknown state, it is damaged.
    """
    some = replace(plain_locations(4), states=np.array([0, -1, -2, -3], np.int8))
    assert [FileState(state).name for state in some.states] == [
        "READ", "UNPROVEN", "RACY", "REMOVED",
    ]  # fmt: skip
    data = render_locations(some, (ROOT,))
    assert pq.read_table(io.BytesIO(data))["length"].to_pylist() == [1, -1, -2, -3]
    again = parse_locations(data, (ROOT,), 4)
    assert (again.states.tolist(), again.lengths.tolist()) == ([0, -1, -2, -3], [1, 0, 0, 0])
    with pytest.raises(CorruptError, match="unknown state"):
        parse_locations(
            render_locations(replace(some, states=some.states - np.int8(1)), (ROOT,)), (ROOT,), 4
        )


def test_invalid_list_is_not_written() -> None:
    """A list refuses a path outside of all roots.

    A path with several slots cannot also have ranges. A list with too many slots for a path is
    refused.
    """
    some = plain_locations(2)
    with pytest.raises(ValueError, match="lies below none of"):
        render_locations(some, ("file:/other", f"{ROOT}/0"))
    roots = (ROOT[:-1], ROOT)
    assert parse_locations(render_locations(some, roots), roots, 2).paths == some.paths
    also = np.arange(128).reshape(2, 64)
    most = replace(some, also=also)
    again = parse_locations(render_locations(most, (ROOT,)), (ROOT,), 2)
    assert again.also is not None
    assert again.also.tolist() == also.tolist()
    uneven = np.array([[7, -1], [8, 9]], np.int64)
    again = parse_locations(render_locations(replace(some, also=uneven), (ROOT,)), (ROOT,), 2)
    assert again.also is not None
    assert again.also.tolist() == uneven.tolist()
    more = render_locations(replace(some, also=np.arange(130).reshape(2, 65)), (ROOT,))
    with pytest.raises(CorruptError, match="a location has too many places"):
        parse_locations(more, (ROOT,), 2)
    with pytest.raises(ValueError, match="never both"):
        render_locations(replace(most, ranges=whole_files(*[some.rows] * 3)), (ROOT,))


@pytest.mark.parametrize("root", [-1, 1])
def test_root_number_without_a_root_is_damage(root: int) -> None:
    """A list is damaged if it refers to the number of a root that does not exist."""
    table = pq.read_table(io.BytesIO(render_locations(plain_locations(2), (ROOT,))))
    sink = io.BytesIO()
    numbers = pa.array([0, root], pa.int32())
    pq.write_table(table.set_column(0, table.schema.field(0), numbers), sink)
    with pytest.raises(CorruptError, match="names an unknown root"):
        parse_locations(sink.getvalue(), (ROOT,), 2)


def test_an_empty_list_needs_no_root() -> None:
    """If a list has no files, it names no root."""
    again = parse_locations(render_locations(NO_LOCATIONS, ()), (), 0)
    assert len(again.paths) == 0
