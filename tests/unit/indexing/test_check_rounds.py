"""CHECK divides a large run into rounds, and checks each key in one of these rounds."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing.check_rounds import _common, by_runs, ordinals_in, rounds_of, shared_rounds
from sieve.indexing.check_task import _shown, look_up_keys
from sieve.metadata.paths import run_file
from sieve.metadata.records import RunFileRef, RunId, RunRef
from sieve.segments.blocks.format import CSR, Segment, encode_segment
from tests.built_index import RUN, Row, map_row, write_run

BIGINT = Encoder("bigint")


def file_ref(
    number: int, codes: list[tuple[int, int]], hashes: list[tuple[int, int]]
) -> RunFileRef:
    """A run file of 100 bytes that covers these ranges of codes and of hashes."""
    return RunFileRef(f"part-{number}.parquet", 100, "0" * 64, tuple(codes), tuple(hashes))


def run_ref(*files: RunFileRef) -> RunRef:
    """A run that consists of these files."""
    return RunRef(RUN, 4, BIGINT.to_json(), files, 1, 1, 1, 1, 100 * len(files))


FILES = run_ref(
    file_ref(0, [(0, 9), (40, 49)], []),
    file_ref(1, [(10, 19)], [(5, 9)]),
    file_ref(2, [(20, 39)], [(-9, 4)]),
    # The last file overlaps the codes of another file. Files of a build's run never overlap, but
    # CHECK must not lose a key even if files overlap.
    file_ref(3, [(45, 60)], []),
)


def test_a_run_of_just_the_limit_is_one_round() -> None:
    """CHECK checks a run of up to the limit's size in one round.

    CHECK checks a larger run in several rounds.
    """
    assert len(rounds_of(FILES, FILES.bytes)) == 1
    assert len(rounds_of(FILES, FILES.bytes - 1)) > 1


def test_a_small_run_is_one_round() -> None:
    """A small run has one round, which contains all codes.

    If the run has maps, the round also contains all hashes.
    """
    (only,) = rounds_of(FILES)
    assert (only.run, only.codes, only.hashes) == (FILES, (LEAST, GREATEST), (LEAST, GREATEST))
    (only,) = rounds_of(run_ref(FILES.files[0]))
    assert only.hashes is None


@pytest.mark.parametrize("limit", [1, 100, 200, 250, 399])
def test_each_code_and_hash_is_checked_in_one_round(limit: int) -> None:
    """If a run is large, each code and each hash is checked in exactly one round.

    The round of a code or hash contains all files whose ranges include this code or hash.
    """
    rounds = rounds_of(FILES, limit)
    assert len(rounds) > 2
    for name in ("codes", "hashes"):
        spans = [getattr(one, name) for one in rounds if getattr(one, name) is not None]
        assert (spans[0][0], spans[-1][1]) == (LEAST, GREATEST)
        assert all(two[0] == one[1] + 1 for one, two in itertools.pairwise(spans))
        for point in [*range(-12, 70), LEAST, GREATEST]:
            (asked,) = [
                one.run.files
                for one in rounds
                if (span := getattr(one, name)) is not None and span[0] <= point <= span[1]
            ]
            around = {
                file.name
                for file in FILES.files
                if any(low <= point <= high for low, high in getattr(file, name))
            }
            assert around <= {file.name for file in asked}


def segment(codes: np.ndarray, location: int) -> Row:
    """A segment with the given keys in one location; each key has its own block."""
    count = len(codes)
    blocks = CSR(np.arange(count + 1), np.full(count, location, np.int32), np.ones(count, np.int64))
    first, last = int(codes[0]), int(codes[-1])
    payload = encode_segment(Segment(first, last, 1, blocks))
    return ("sieve", first, last, count, count, count, payload)


def answers(tmp_path: Path, run: RunRef, limit: int, values: list[int | None]) -> np.ndarray:
    """Checks values; returns the last round's rows, NULLs and NaNs, and all missed rows.

    The run has a single location, with the number 1; its keys are `values`.
    """
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, pa.int64()), pa.array([0] * len(values), pa.int32())], ["v", "location"]
    )
    missed, counts = 0, np.zeros(3, np.int64)
    for asked in rounds_of(run, limit):
        names = [run_file(f"file:{tmp_path}", RUN, file) for file in asked.run.files]
        held = {name: Path(name.removeprefix("file:")).read_bytes() for name in names}
        step = look_up_keys(BIGINT, [asked], f"file:{tmp_path}", [[1]], lambda held=held: held)
        (line,) = pa.Table.from_batches(step(iter([batch, batch.slice(0, 0)]))).to_pylist()
        missed += line["missed"]
        counts = np.array([line[name] for name in ("rows", "nulls", "nans")])
        assert (line["key"] is None) == (line["missed"] == 0)
    return np.append(counts, missed)


@pytest.mark.parametrize("limit", [1, 300, 1800])
def test_runs_are_checked_together_in_the_same_rounds(limit: int) -> None:
    """If several runs are checked together, one round checks a code in all of these runs.

    The round of a code contains all files whose ranges include the code.
    """
    one = run_ref(*(file_ref(k, [(10 * k, 10 * k + 9)], []) for k in range(4)))
    two = run_ref(*(file_ref(k, [(15 * k - 40, 15 * k - 30)], []) for k in range(6)))
    rounds = shared_rounds([one, two, one], limit)
    assert (len(rounds) == 1) == (limit == 1800)
    for point in [*range(-50, 70), LEAST, GREATEST]:
        (asked,) = [held for held in rounds if held[0].codes[0] <= point <= held[0].codes[1]]
        assert {part.codes for part in asked} == {asked[0].codes}
        assert {part.hashes for part in asked} == {None}
        for part, run in zip(asked, [one, two, one], strict=True):
            around = {f.name for f in run.files if any(a <= point <= b for a, b in f.codes)}
            assert around <= {file.name for file in part.run.files}


def test_key_is_missed_only_if_no_run_finds_it(tmp_path: Path) -> None:
    """A key counts as missed if no run of its location finds the location.

    In each run, the location has a different ordinal number.
    """
    keys = np.arange(100)
    runs = []
    for name, some, location in [(RUN, keys[:60], 1), (RunId("ee" * 16), keys[40:90], 0)]:
        runs.append(write_run(tmp_path, [[segment(some, location)]], BIGINT, 2, name))
    (asked,) = shared_rounds(runs)
    held = {
        uri: Path(uri.removeprefix("file:")).read_bytes()
        for run in runs
        for uri in [run_file(f"file:{tmp_path}", run.id, file) for file in run.files]
    }
    batch = pa.RecordBatch.from_arrays(
        [pa.array([5, 45, 70, 95, None], pa.int64()), pa.array([0] * 5, pa.int32())],
        ["v", "location"],
    )

    def missed(*ordinals: int) -> int:
        of_runs = [[ordinal] for ordinal in ordinals]
        step = look_up_keys(BIGINT, asked, f"file:{tmp_path}", of_runs, lambda: held)
        (line,) = pa.Table.from_batches(step(iter([batch]))).to_pylist()
        count: int = line["missed"]
        return count

    assert missed(1, 0) == 1
    assert missed(1, 1) == 2
    assert missed(0, 0) == 2
    assert missed(0, 1) == 4
    assert missed(-1, 0) == 2
    assert missed(1, -1) == 2


def test_corrupt_records_are_counted_only_by_location(tmp_path: Path) -> None:
    """Damaged records are counted for each location.

    Damaged records count neither as rows nor as missed keys.
    """
    batch = pa.RecordBatch.from_arrays(
        [pa.array([None, None, 5], pa.int64()), pa.array([-1, -1, -3], pa.int32())],
        ["v", "location"],
    )
    step = look_up_keys(BIGINT, [], f"file:{tmp_path}", [], dict)
    found = pa.Table.from_batches(step(iter([batch])))
    none = dict.fromkeys(("rows", "nulls", "nans", "missed"), 0)
    none |= dict.fromkeys(("key", "least", "greatest"))
    assert found.to_pylist() == [
        {"location": 0, "damaged": 2, **none},
        {"location": 2, "damaged": 1, **none},
    ]


@pytest.mark.parametrize("limit", [1, 700, 1 << 20])
def test_number_of_rounds_does_not_change_missed_keys(tmp_path: Path, limit: int) -> None:
    """CHECK reports the same missed keys, whatever the number of rounds.

    Some keys of the run belong to another location. The keys 7 and 60 are missing, but only from
    the maps.
    """
    keys = np.arange(100)
    hashed = hash_codes(keys).view(np.int64)
    kept = np.delete(np.arange(100), [7, 60])
    order = kept[np.argsort(hashed[kept])]
    maps = [
        map_row(hashed[part].tolist(), [1] * len(part), 3, bits=16)
        for part in np.array_split(order, 3)
    ]
    files = [[segment(keys[:30], 1)], [segment(keys[30:70], 1), maps[0]], [segment(keys[70:], 1)]]
    run = write_run(tmp_path, [*files, [maps[1]], [maps[2], segment(keys + 200, 2)]], BIGINT, 3)
    rounds = rounds_of(run, limit)
    assert (len(rounds) == 1) == (limit == 1 << 20)
    values: list[int | None] = [*keys.tolist(), None]
    assert answers(tmp_path, run, limit, values).tolist() == [101, 1, 0, 2]
    # CHECK looks up two kinds of keys by code: keys outside of all ranges, and a key of another
    # location. CHECK looks up keys that are in no map by hash.
    sound = [5, 6, 8, 9]
    wrong = [-1, 100, 150, 205, 1000]
    counts = answers(tmp_path, run, limit, sound + wrong)
    assert counts[0] == 9
    # A key counts twice if both its look-up by code and its look-up by hash fail.
    assert counts[3] == (5 if len(rounds) == 1 else 10)


def test_files_of_several_runs_are_looked_up_together() -> None:
    """CHECK looks up a location's keys in each of its runs: one run, several runs, or no run."""
    begins = [0, 4, 6, 9]
    places = np.array([[0, -1], [1, 5], [-1, -1], [3, 8], [4, -1], [2, -1]])
    runs = np.array([[0, -1], [0, 1], [-1, -1], [0, 2], [1, -1], [0, -1]])
    found = {
        tuple(asked): (
            own,
            [ordinals_in(places[own], begins[k], begins[k + 1]).tolist() for k in asked],
        )
        for own, asked in by_runs(runs)
    }
    assert found == {
        (): ([2], []),
        (0,): ([0, 5], [[0, 2]]),
        (1,): ([4], [[0]]),
        (0, 1, 2): ([1, 3], [[1, 3], [1, -1], [-1, 2]]),
    }
    assert list(by_runs(np.zeros((0, 1), np.int64))) == []
    assert shared_rounds([]) == [[]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (pa.scalar(7), "7"),
        (pa.scalar(b"\xab\0"), "ab00"),
        (pa.scalar(b"\xab\0", pa.large_binary()), "ab00"),
        (pa.scalar(1_500_000, pa.timestamp("us", "UTC")), "1970-01-01 00:00:01.500000"),
        (pa.scalar("x" * 100), "x" * 100),
        (pa.scalar("x" * 101), "x" * 100 + "..."),
    ],
)
def test_a_lost_key_is_shown_as_text(value: pa.Scalar, text: str) -> None:
    """CHECK shows a missed key as text: bytes in hex, times in UTC, and long values truncated."""
    assert _shown(value) == text


def test_a_round_sends_128_mb() -> None:
    """A round checks at most 128 MB of run files, as docs/sql.md says."""
    half = 64 << 20
    for more, rounds in ((0, 1), (1, 2)):
        sizes = half, half + more
        files = (
            RunFileRef(f"part-{k}.parquet", size, "0" * 64, ((10 * k, 10 * k + 9),), ())
            for k, size in enumerate(sizes)
        )
        run = dataclasses.replace(run_ref(*files), bytes=sum(sizes))
        assert len(rounds_of(run)) == rounds


@pytest.mark.parametrize(("limit", "begins"), [(199, [LEAST, 10]), (200, [LEAST, 20])])
def test_a_round_takes_files_up_to_its_limit(limit: int, begins: list[int]) -> None:
    """With a limit of 200 bytes, a round contains two files of 100 bytes."""
    run = run_ref(*(file_ref(k, [(10 * k, 10 * k + 9)], []) for k in range(3)))
    assert [one.codes[0] for one in rounds_of(run, limit)][:2] == begins


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ((0, 5), (3, 9), (3, 5)),
        ((0, 5), (5, 9), (5, 5)),
        ((5, 9), (0, 5), (5, 5)),
        ((0, 5), (6, 9), None),
        ((2, 3), (0, 9), (2, 3)),
        (None, (0, 9), None),
        ((0, 9), None, None),
    ],
)
def test_two_ranges_can_share_a_single_code(
    one: tuple[int, int] | None, other: tuple[int, int] | None, common: tuple[int, int] | None
) -> None:
    """If two ranges have only one code in common, a round still checks the code."""
    assert _common(one, other) == common
