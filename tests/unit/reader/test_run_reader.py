"""Tests which files look-ups in runs read, how often, and which look-ups fail after damage."""

from __future__ import annotations

import dataclasses
import io
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.encoding.hashing import hash_codes
from sieve.errors import CorruptError, UnsupportedError
from sieve.metadata.records import RunFileRef, RunRef
from sieve.reader import run_file
from sieve.reader.lru_cache import Cache, FileCache
from sieve.reader.run_file import RunFile, describe_run, parse_run_file
from sieve.reader.run_reader import Run
from sieve.segments.blocks.format import CSR, Segment, encode_segment
from sieve.segments.intervals.format import IN_CELLS, Cells, encode
from sieve.segments.intervals.grid import Grid
from sieve.storage.interface import READ_LIMIT, GoneError, Store
from sieve.storage.local import LocalStore
from tests.built_index import RUN, CountingStore, Row, map_row, run_file_bytes, write_run

FILES, EACH = 6, 4
BIGINT = Encoder("bigint")


def segment(first: int, last: int, location: int) -> Row:
    """A segment of one block, which contains one location."""
    one = np.ones(1, np.int64)
    block = CSR(np.array([0, 1]), np.array([location], np.int32), one)
    payload = encode_segment(Segment(first, last, last - first + 1, block))
    return ("sieve", first, last, 1, 1, 1, payload)


def many_files() -> list[list[Row]]:
    """A run whose segment k has the keys 100 k to 100 k + 9, all in location k.

    File f contains the segments f, f + 6, f + 12, and so on.
    """
    return [
        [segment(100 * k, 100 * k + 9, k) for k in range(number, FILES * EACH, FILES)]
        for number in range(FILES)
    ]


def opened(folder: Path, run: RunRef, store: Store, bound: int = 1 << 20) -> Run:
    """Opens the run with an empty cache."""
    return Run(store, f"file:{folder}", run, Cache(bound))


def found(run: Run, *intervals: tuple[int, int]) -> list[int]:
    """Returns the numbers of the locations that can contain a key in the intervals."""
    return np.flatnonzero(run.locations_in(np.array(intervals).reshape(-1, 2))).tolist()


def name(number: int) -> str:
    """The name of a run file."""
    return f"part-{number:05d}.parquet"


def test_point_reads_only_the_file_that_can_have_the_key(tmp_path: Path) -> None:
    """A look-up of one key reads only the file that can contain the key, and reads it once."""
    run, store = write_run(tmp_path, many_files(), BIGINT, FILES * EACH), CountingStore()
    index = opened(tmp_path, run, store)
    assert found(index, (1405, 1405)) == [14]
    assert store.read_names == [name(14 % FILES)]
    # Key 805 is in another segment of the same file. Key 50 is in no file.
    assert found(index, (805, 805)) == [8]
    assert found(index, (50, 50)) == []
    assert store.read_names == [name(14 % FILES)]


def test_intervals_read_only_files_that_can_have_their_keys(tmp_path: Path) -> None:
    """A look-up reads each file that can contain a key of its intervals once, and no other file."""
    run, store = write_run(tmp_path, many_files(), BIGINT, FILES * EACH), CountingStore()
    index = opened(tmp_path, run, store)
    assert found(index, (305, 305), (905, 905), (1600, 1603)) == [3, 9, 16]
    assert store.read_names == [name(3), name(4)]
    assert found(index, (LEAST, 209)) == [0, 1, 2]
    assert sorted(store.read_names) == [name(k) for k in range(5)]
    assert found(index, (LEAST, GREATEST)) == list(range(FILES * EACH))
    assert sorted(store.read_names) == [name(k) for k in range(FILES)]
    assert found(index, (9, 5)) == found(index) == []


CHUNKED = [segment(10 * k, 10 * k + 5, k) for k in range(FILES * EACH)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Records the decoded payloads; a chunk of a file of `CHUNKED` has three segments."""
    found: list[bytes] = []
    decode = run_file.decode

    def noting(payload: bytes) -> run_file.Entries:
        found.append(payload)
        return decode(payload)

    monkeypatch.setattr(run_file, "decode", noting)
    monkeypatch.setattr(run_file, "CHUNK_BYTES", 3 * len(CHUNKED[0][-1]))
    return found


def test_only_chunks_that_can_have_the_key_are_decoded(
    tmp_path: Path, decoded: list[bytes]
) -> None:
    """A look-up decodes only the chunks of a file that can contain a wanted key."""
    rows = CHUNKED
    index = opened(tmp_path, write_run(tmp_path, [rows[::-1]], BIGINT, FILES * EACH), LocalStore())
    assert found(index, (41, 41)) == [4]
    assert decoded == [row[-1] for row in rows[3:6]]
    assert found(index, (55, 61)) == [5, 6]
    assert decoded == [row[-1] for row in rows[3:9]]


def test_queries_answered_together_decode_each_chunk_once(
    tmp_path: Path, decoded: list[bytes]
) -> None:
    """Several look-ups in one call decode each chunk once, even without a cache."""
    rows, store = CHUNKED, CountingStore()
    run = write_run(tmp_path, [rows[:12], rows[12:]], BIGINT, FILES * EACH)
    index = opened(tmp_path, run, store, bound=0)
    asked = np.array([[100, 135], [41, 41], [101, 101], [56, 59], [6, 9], [47, 61]])
    each = [np.flatnonzero(flags).tolist() for flags in index.locations_in_each(asked)]
    assert each == [[10, 11, 12, 13], [4], [10], [], [], [5, 6]]
    # The key of one look-up is in a gap between the keys of the first chunk.
    assert decoded == [row[-1] for row in rows[:15]]
    assert store.read_names == [name(0), name(1)]


def long_run(folder: Path, files: int = 2, each: int = 4) -> RunRef:
    """A run; each of its files contains `each` segments.

    In segment k, entry i has the key 100 k + 10 i and the location i.
    """

    def one(k: int) -> Row:
        grid = Grid.of(100 * k, 100 * k + 99, np.zeros(1, np.uint64), np.zeros(1, np.uint8))
        assert grid is not None
        begin = np.arange(0, 100, 10, dtype=np.uint64)
        payload = encode(Cells(grid, begin, begin, np.arange(10, dtype=np.int32)), IN_CELLS)
        return ("intervals", grid.first, grid.last, 10, 10, 10, payload)

    rows = [[one(k) for k in range(each * n, each * (n + 1))] for n in range(files)]
    return write_run(folder, rows, BIGINT, 10)


@pytest.mark.parametrize("room", ["all", "packed"])
def test_run_too_large_for_the_cache_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    """The reader packs the chunks of a run that is too large for the cache.

    For a look-up that needs most chunks of a file, the reader packs all chunks of the file. After a
    file is packed, look-ups use only its packed chunks.
    """
    monkeypatch.setattr(run_file, "CHUNK_BYTES", 1)
    decoded: list[tuple[str, int | None]] = []
    for kind in ("decoded", "packed"):
        real = getattr(RunFile, kind)

        def noted(file: RunFile, number: int | None, kind: str = kind, real: Any = real) -> Any:
            decoded.append((kind, number))
            return real(file, number)

        monkeypatch.setattr(RunFile, kind, noted)
    ref = long_run(tmp_path)
    stored, store = sum(file.length for file in ref.files), CountingStore()
    cache = FileCache(6 * stored - (room == "packed"))
    run = Run(store, f"file:{tmp_path}", ref, cache)
    kind = "packed" if room == "packed" else "decoded"
    assert found(run, (150, 150)) == [5]
    assert found(run, (20, 20), (230, 230)) == [2, 3]
    assert decoded == [(kind, 1), (kind, 0), (kind, 2)]
    decoded.clear()
    # This look-up needs three of a file's four chunks, and one chunk of the next file.
    assert found(run, (0, 0), (110, 110), (220, 220), (490, 490)) == [0, 1, 2, 9]
    assert decoded == ([("packed", None), (kind, 0)] if room == "packed" else [(kind, 0)])
    decoded.clear()
    # Look-ups use packed chunks without reading the file again, even chunks used for the first
    # time.
    cache.invalidate((f"file:{tmp_path}/runs/{RUN}/part-00000.parquet", ref.files[0].sha256))
    store.read_names.clear()
    assert found(run, (330, 330)) == [3]
    assert decoded == ([] if room == "packed" else [(kind, 3)])
    assert store.read_names == ([] if room == "packed" else ["part-00000.parquet"])
    # If a file has only one chunk, the reader packs the chunk, not the file.
    one = long_run(tmp_path / "one", 1, 1)
    decoded.clear()
    assert found(Run(store, f"file:{tmp_path}/one", one, FileCache(1)), (50, 50)) == [5]
    assert decoded == [("packed", 0)]
    # If the cache has no room, packing is useless, so the reader only decodes chunks.
    decoded.clear()
    assert found(Run(store, f"file:{tmp_path}", ref, FileCache(0)), (0, 390)) == list(range(10))
    assert decoded == [("decoded", number) for number in range(4)]


def test_segments_that_cannot_be_packed_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader decodes segments of a shape that it cannot pack.

    If a file names a location that the run does not have, the file is damaged.
    """
    monkeypatch.setattr(run_file, "CHUNK_BYTES", 1)
    run = write_run(tmp_path, [[segment(0, 9, 0), segment(20, 29, 1)]], BIGINT, 2)
    cache = FileCache(run.bytes)
    assert found(opened(tmp_path, run, CountingStore(), run.bytes), (5, 5), (25, 25)) == [0, 1]
    assert cache.nbytes == 0
    ref = dataclasses.replace(long_run(tmp_path / "long"), locations=9)
    with pytest.raises(CorruptError, match="names location 9 of 9"):
        found(Run(CountingStore(), f"file:{tmp_path}/long", ref, FileCache(1)), (0, 350))


def test_error_of_a_damaged_file_is_raised_until_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader reads a damaged file once. Until a retry, each look-up raises the same error."""
    monkeypatch.setattr(run_file, "CHUNK_BYTES", 1)
    ref, store = long_run(tmp_path), CountingStore()
    run = Run(store, f"file:{tmp_path}", ref, FileCache(ref.bytes))
    path = tmp_path / "runs" / RUN / "part-00000.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    for _ in range(2):
        with pytest.raises(CorruptError):
            found(run, (0, 390))
    assert store.read_names == ["part-00000.parquet"]
    path.write_bytes(whole)
    run.retry()
    assert found(run, (0, 390)) == list(range(10))


def test_a_small_cache_reads_again_and_finds_the_same(tmp_path: Path) -> None:
    """If files do not fit into the cache, each look-up reads them again.

    With a small cache, look-ups still find the same locations.
    """
    run, store = write_run(tmp_path, many_files(), BIGINT, FILES * EACH), CountingStore()
    index = opened(tmp_path, run, store, bound=0)
    for _ in range(2):
        assert found(index, (LEAST, GREATEST)) == list(range(FILES * EACH))
    assert len(store.read_names) == 2 * FILES


def test_hash_is_looked_up_only_in_the_map_of_its_range(tmp_path: Path) -> None:
    """A look-up searches only the map whose range of hashes contains the hash."""
    keys = np.arange(40, dtype=np.int64)
    signed = np.sort(hash_codes(keys).view(np.int64))
    halves = [signed[:20].tolist(), signed[20:].tolist()]
    maps = [
        [map_row(half, range(n, n + 20), 40, 20)] for n, half in zip((0, 20), halves, strict=True)
    ]
    run = write_run(tmp_path, [[segment(0, 39, 0)], *maps], BIGINT, 40)
    assert [(f.codes != (), f.hashes != ()) for f in run.files] == [(True, False)] + [
        (False, True)
    ] * 2
    store = CountingStore()
    index = Run(store, f"file:{tmp_path}", run, Cache(1 << 20))
    assert index.has_maps
    for place in (0, 7, 19):
        answer = index.locations_of(signed[place : place + 1].view(np.uint64))
        assert np.flatnonzero(answer).tolist() == [place]
    assert store.read_names == [name(1)]
    both = index.locations_of(signed[[19, 20]].view(np.uint64))
    assert np.flatnonzero(both).tolist() == [19, 20]
    assert store.read_names == [name(1), name(2)]


def test_hashes_may_be_in_any_order(tmp_path: Path) -> None:
    """A look-up accepts its hashes in any order.

    Maps are in the order of signed hashes, but the hashes of an IN list are in unsigned order.
    """
    signed = np.sort(hash_codes(np.arange(40)).view(np.int64))
    maps = [
        [map_row(signed[n : n + 10].tolist(), range(n, n + 10), 40, 20)] for n in range(0, 40, 10)
    ]
    index = Run(
        LocalStore(), f"file:{tmp_path}", write_run(tmp_path, maps, BIGINT, 40), Cache(1 << 20)
    )
    for places in ([5, 35], [35, 5], [25, 35, 5], [39, 20, 0], [35, 25, 15, 5]):
        hashes = signed[places].view(np.uint64)
        assert np.flatnonzero(index.locations_of(hashes)).tolist() == sorted(places)
        assert np.argwhere(index.locations_of_each(hashes)).tolist() == [
            *map(list, enumerate(places))
        ]


def test_a_map_of_more_locations_than_the_run_is_corrupt(tmp_path: Path) -> None:
    """A map with a location outside of the run is corrupt."""
    signed = np.sort(hash_codes(np.arange(3)).view(np.int64))
    rows = [map_row(signed.tolist(), [0, 1, 2], 3)]
    run = write_run(tmp_path, [rows, [segment(0, 2, 0)]], BIGINT, 2)
    index = Run(LocalStore(), f"file:{tmp_path}", run, Cache(1 << 20))
    with pytest.raises(CorruptError, match="location 2 of 2"):
        index.locations_of(signed.view(np.uint64))


# -- failures -------------------------------------------------------------------------------------


def flip_a_bit(folder: Path, number: int) -> bytes:
    """Flips one bit of a run file, and returns the file's original bytes."""
    path = folder / "runs" / RUN / name(number)
    data = path.read_bytes()
    path.write_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
    return data


def test_damaged_file_fails_only_look_ups_that_need_it(tmp_path: Path) -> None:
    """If a file is damaged, only look-ups that need this file fail."""
    index = opened(tmp_path, write_run(tmp_path, many_files(), BIGINT, FILES * EACH), LocalStore())
    flip_a_bit(tmp_path, 2)
    assert found(index, (305, 305)) == [3]
    for asked in [(205, 205), (805, 805), (LEAST, GREATEST)]:
        with pytest.raises(CorruptError, match=name(2)):
            found(index, asked)
    assert found(index, (305, 305), (405, 405)) == [3, 4]


def test_failed_file_is_not_read_again_before_a_retry(tmp_path: Path) -> None:
    """Before a retry, look-ups do not read the failed file again.

    If a retry of the failed file succeeds, look-ups can use this file.
    """
    store = CountingStore()
    index = opened(tmp_path, write_run(tmp_path, many_files(), BIGINT, FILES * EACH), store)
    whole = flip_a_bit(tmp_path, 2)
    for _ in range(3):
        with pytest.raises(CorruptError, match=name(2)):
            found(index, (205, 205))
    assert store.read_names == [name(2)]
    index.retry()
    with pytest.raises(CorruptError, match=name(2)):
        found(index, (205, 205))
    assert store.read_names == [name(2)] * 2
    (tmp_path / "runs" / RUN / name(2)).write_bytes(whole)
    index.retry()
    index.retry()
    assert found(index, (205, 205)) == [2]
    assert store.read_names == [name(2)] * 3


def test_missing_and_damaged_files_raise_different_errors(tmp_path: Path) -> None:
    """A missing file and a damaged file raise different errors, even if the look-up is repeated."""
    index = opened(tmp_path, write_run(tmp_path, many_files(), BIGINT, FILES * EACH), LocalStore())
    (tmp_path / "runs" / RUN / name(0)).unlink()
    for _ in range(2):
        with pytest.raises(GoneError, match=name(0)):
            found(index, (5, 5))


def test_cached_bytes_are_used_after_their_file_is_gone(tmp_path: Path) -> None:
    """Look-ups use verified bytes from the cache even if the file is gone."""
    index = opened(tmp_path, write_run(tmp_path, many_files(), BIGINT, FILES * EACH), LocalStore())
    assert found(index, (5, 5)) == [0]
    (tmp_path / "runs" / RUN / name(0)).unlink()
    assert found(index, (5, 5)) == [0]


@dataclass(frozen=True, slots=True)
class SlowStore(CountingStore):
    """A store whose reads wait until the test lets them continue."""

    started: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        self.started.set()
        assert self.go.wait(30)
        return CountingStore.read(self, uri, limit)


@pytest.mark.parametrize("damaged", [False, True])
def test_concurrent_scans_read_a_file_once(tmp_path: Path, damaged: bool) -> None:
    """Scans that need a file at the same time all get the result or error of one read."""
    run, store = write_run(tmp_path, many_files(), BIGINT, FILES * EACH), SlowStore()
    if damaged:
        flip_a_bit(tmp_path, 2)
    index = opened(tmp_path, run, store)

    def ask() -> list[int] | str:
        try:
            return found(index, (205, 205))
        except CorruptError as error:
            return error.condition

    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(ask) for _ in range(6)]
        assert store.started.wait(30)
        store.go.set()
        answers = [one.result(30) for one in asked]
    assert answers == ["SIEVE_INDEX_CORRUPT" if damaged else [2]] * 6
    assert store.read_names == [name(2)]


# -- what a file is allowed to contain -------------------------------------------------------------


def described_run_file(rows: Sequence[Row]) -> tuple[bytes, RunFileRef]:
    """A run file, and how a manifest describes it."""
    data = run_file_bytes(rows)
    run = describe_run(RUN, 1, BIGINT, [(name(0), data)])
    assert run is not None
    return data, run.files[0]


def altered(rows: list[Row], number: int, payload: bytes) -> tuple[bytes, RunFileRef]:
    """A run file with one replaced payload, and the description of the original file."""
    _, file = described_run_file(rows)
    rows = [(*r[:-1], payload if k == number else r[-1]) for k, r in enumerate(rows)]
    return run_file_bytes(rows), file


def test_neighbouring_segments_form_one_range() -> None:
    """Neighbouring segments of a file form one range in the manifest.

    If a segment of another file lies between two segments, the two segments are in two ranges.
    """
    first = run_file_bytes([segment(0, 9, 0), segment(20, 29, 0), segment(60, 69, 0)])
    other = run_file_bytes([segment(50, 51, 0), segment(-5, -5, 0), segment(40, 49, 0)])
    run = describe_run(RUN, 1, BIGINT, [("a", first), ("b", other), ("c", run_file_bytes([]))])
    assert run is not None
    assert [file.codes for file in run.files] == [((0, 29), (60, 69)), ((-5, -5), (40, 51))]
    assert [file.hashes for file in run.files] == [(), ()]
    assert (run.segments, run.keys, run.rows, run.blocks) == (6, 6, 6, 6)
    assert run.bytes == sum(file.length for file in run.files) == len(first) + len(other)
    assert describe_run(RUN, 1, BIGINT, [("c", run_file_bytes([]))]) is None


@pytest.mark.parametrize("outside", [(9, 20), (-1, 9), (30, 30), (-9, -8), (15, 16)])
def test_segments_outside_of_the_ranges_are_corrupt(outside: tuple[int, int]) -> None:
    """A segment outside of the manifest's ranges is corrupt, because no look-up would find it."""
    rows = [segment(0, 9, 0), segment(20, 29, 1)]
    other = describe_run(
        RUN, 2, BIGINT, [("a", run_file_bytes(rows)), ("b", run_file_bytes([segment(12, 13, 0)]))]
    )
    assert other is not None
    data = run_file_bytes([rows[0], segment(*outside, 1)])
    with pytest.raises(CorruptError, match="does not tell"):
        parse_run_file(data, other.files[0])


def test_hashes_outside_the_ranges_are_corrupt() -> None:
    """If a map has hashes outside of the manifest's ranges, the map is corrupt."""
    data, file = described_run_file([map_row([-5, 7], [0, 1], 2)])
    assert file.hashes == ((-5, 7),)
    assert parse_run_file(data, file).maps[0].n_keys == 2
    with pytest.raises(CorruptError, match="does not tell"):
        parse_run_file(run_file_bytes([map_row([-6, 7], [0, 1], 2)]), file)


@pytest.mark.parametrize(
    "ends", [[(0, 9), (9, 12)], [(-9, -3), (0, 5), (5, 12)], [(-9, 0), (0, 5), (6, 12)]]
)
def test_overlapping_segments_are_corrupt(ends: list[tuple[int, int]]) -> None:
    """Overlapping segments of a file are corrupt, because a look-up searches only one segment."""
    data, _ = described_run_file(
        [segment(first, last, k % 2) for k, (first, last) in enumerate(ends)]
    )
    file = RunFileRef(name(0), len(data), "", ((-9, 12),), ())
    with pytest.raises(CorruptError, match="overlap"):
        parse_run_file(data, file)


@pytest.mark.parametrize("payload", [b"", bytes(5), b"\x00\x01" + bytes(40)])
def test_impossible_payloads_are_corrupt(payload: bytes) -> None:
    """Payloads that no encoder writes are corrupt, even with a right checksum."""
    with pytest.raises(CorruptError):
        parse_run_file(*altered([segment(0, 9, 0), segment(20, 29, 1)], 1, payload))


@pytest.mark.parametrize("head", [b"\x06\x01", b"\x01\x02", b"\x04\x02"])
def test_a_later_shape_or_layout_is_too_new(head: bytes) -> None:
    """A payload of a later shape or layout is too new, whatever bytes follow."""
    with pytest.raises(UnsupportedError):
        parse_run_file(*altered([segment(0, 9, 0), segment(20, 29, 1)], 1, head + b"\xff" * 90))


def test_other_files_are_corrupt() -> None:
    """If a run file is not Parquet, is empty, or has no column of payloads, it is corrupt."""
    data, file = described_run_file([segment(0, 9, 0)])
    sink = io.BytesIO()
    pq.write_table(pa.table({"payload": [1, 2]}), sink)
    numbers = sink.getvalue()
    for wrong in (b"", b"PAR1", data[:-9], run_file_bytes([]), numbers):
        with pytest.raises(CorruptError):
            parse_run_file(wrong, file)
