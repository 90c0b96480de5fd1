"""A build's sample of a column, and its reading of all rows, on frames that replace Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.encoding.hashing import hash_bytes, hash_codes
from sieve.indexing import column_sample
from sieve.indexing.column_profile import ColumnProfile, Profile, column_profile
from sieve.indexing.column_sample import Sample, take_sample
from sieve.indexing.packed_intervals import unpack
from sieve.indexing.probes import Probes
from sieve.indexing.read_column import read_cuts
from sieve.indexing.seen import Seen
from sieve.indexing.tiling import Tiling
from sieve.indexing.value_columns import column_values
from sieve.metadata.index_options import IndexOptions
from sieve.segments.query_model import QueryModel
from sieve.tables.column import Column
from sieve.tables.table import LOCATION
from tests import fake_frames
from tests.fake_frames import Cluster, Frame


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces PySpark's frames."""
    fake_frames.use(monkeypatch)


def values(type_: pa.DataType, *parts: Sequence[tuple[Any, int]]) -> Frame:
    """A frame of values and their locations."""
    rows = [[{"v": value, LOCATION: at} for value, at in part] for part in parts]
    return Frame({"v": type_, LOCATION: pa.int32()}, rows)


def sampled(
    frame: Frame, type_: str, counted: int | None, size: int = 2000, **words: Any
) -> Sample:
    """Draws the sample of a frame with `take_sample`."""
    return take_sample(frame, Column(("v",), type_), counted, size, **words)  # type: ignore[arg-type]


NUMBERS = values(pa.int32(), [(7, 0), (None, 0)], [], [(-3, 1), (7, 1), (9, 2)])


def test_sample_of_a_small_column_is_the_column() -> None:
    """For a small column, the sample is the whole column; NULLs count as rows without a key."""
    found = sampled(NUMBERS, "int", 5)
    assert sorted(found.codes.tolist()) == [-3, 7, 7, 9]
    assert found.hashes.tolist() == hash_codes(found.codes).tolist()
    assert found.query_model is not None
    assert found.query_model.rows.tolist() == [1, 2, 1]
    assert (found.rows, found.shown, found.width, found.share) == (5, 5, 4, 1.0)
    given = Encoder("int")
    assert sampled(NUMBERS, "int", None, encoder=given).encoder is given


def test_text_has_the_width_and_the_hash_of_whole_values() -> None:
    """The sample truncates long texts, but has the widths and hashes of the whole texts.

    NULL has no width.
    """
    text = [f"{'x' * 2000}{k}" for k in range(3)]
    found = sampled(values(pa.string(), [(t, 0) for t in [*text, None]]), "string", 4)
    assert found.width == 2001.0
    assert found.hashes.tolist() == hash_bytes([t.encode() for t in text]).tolist()
    assert not found.encoder.exact
    nothing = sampled(values(pa.string(), [(None, 0)]), "string", 1)
    assert (nothing.width, nothing.query_model, nothing.rows) == (0.0, None, 1)


@pytest.mark.parametrize(("counted", "rows"), [(None, 0), (0, 0), (12, 12)])
def test_sample_without_rows_has_row_count_and_encoder(counted: int | None, rows: int) -> None:
    """A sample without rows has the format's row count and the type's plain encoder."""
    found = sampled(values(pa.int64(), [], []), "bigint", counted)
    assert (found.rows, found.shown, found.width) == (rows, rows, 8)
    assert (found.query_model, len(found.codes), len(found.hashes)) == (None, 0, 0)
    assert found.hashes.dtype == np.uint64
    assert found.encoder == Encoder("bigint")


def test_a_large_column_is_drawn_from_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampled share depends on the format's row count.

    If the format has no row count, the build assumes one row per 20 bytes.
    """
    monkeypatch.setattr(column_sample, "WANTED", 100)
    drawn: list[tuple[float, int]] = []
    sample = Frame.sample

    def noted(self: Frame, fraction: float, seed: int) -> Frame:
        drawn.append((fraction, seed))
        return sample(self, fraction, seed)

    monkeypatch.setattr(Frame, "sample", noted)
    many = values(pa.int64(), [(k, 0) for k in range(1000)])
    found = sampled(many, "bigint", 1000)
    assert drawn == [(0.1, 1)]
    assert found.rows == 1000
    assert 70 < len(found.codes) < 130
    by_bytes = sampled(many, "bigint", None, 20 * 400)
    assert drawn[1] == (0.25, 1)
    assert by_bytes.rows == by_bytes.shown == int(len(by_bytes.codes) / 0.25)
    sampled(NUMBERS, "int", 100)
    sampled(NUMBERS, "int", None, 0)
    assert len(drawn) == 2


def test_the_profile_counts_rows_by_file_before_it_samples() -> None:
    """Before a sample is drawn, a profile counts the rows of each file, even of a cut file."""
    tiling = Tiling(np.array([100, 50, 70]), ((40,), (), ()), np.zeros(3, np.int64))
    of_ranges = Frame(
        {"id": pa.int32(), LOCATION: pa.int32()},
        [[{"id": k, LOCATION: at} for k, at in enumerate([0, 0, 1, 3])]],
    )
    of_files = Frame(
        of_ranges.types, [[{"id": k, LOCATION: at} for k, at in enumerate([0, 0, 0, 2])]]
    )
    jobs: list[str] = []
    words: dict[str, Any] = {"describe_job": jobs.append}
    column = Column(("id",), "int")
    values = column_values(of_ranges, column)  # type: ignore[arg-type]
    found = column_profile(values, column, tiling, counting=of_files, **words)  # type: ignore[arg-type]
    assert jobs == ["counting 3 files", "sampling 3 files"]
    assert found.counted is not None
    assert found.counted.tolist() == [3, 0, 1]
    assert (found.sizes.tolist(), found.owners.tolist()) == ([40, 60, 50, 70], [0, 0, 1, 2])
    assert found.sample.rows == 4
    assert found.values.columns == ["v", LOCATION]
    by_file = found.by_file(of_files, column, tiling)  # type: ignore[arg-type]
    assert (by_file.sizes.tolist(), by_file.owners.tolist()) == ([100, 50, 70], [0, 1, 2])
    assert [row[LOCATION] for row in by_file.values.rows] == [0, 0, 0, 2]  # type: ignore[attr-defined]
    uncounted = column_profile(values, column, tiling, counting=None, **words)  # type: ignore[arg-type]
    assert uncounted.counted is None
    assert uncounted.sample.rows == 4


def test_a_location_has_a_byte_at_least() -> None:
    """Even if all locations are empty, the mean size of a location is at least a byte."""
    sample = sampled(NUMBERS, "int", 5)
    for sizes, each in (([700], 700.0), ([300, 500], 400.0), ([0, 0], 1.0), ([], 1.0)):
        assert Profile(sizes=np.array(sizes, np.int64), sample=sample).location_bytes == each


ROWS = [
    [(1.0, 0), (2.0, 0), (2.0, 0), (None, 0), (float("nan"), 1), (3.0, 1)],
    [(5.0, 3), (None, -3), (None, 4), (8.0, 6), (7.0, 5), (7.5, 5)],
]
"""Location 2 has only a damaged record, and location 4 has no key.

Locations 5 and 6 are ranges of one file.
"""
SIZES = [10, 20, 30, 40, 50, 60, 70, 80]
OWNERS = [0, 1, 2, 3, 4, 5, 5, 6]


def read(
    counted: Sequence[int] | None, may_be_empty: Sequence[int] = (), shape: str = "sieve"
) -> tuple[list[dict[str, Any]], Seen, Cluster]:
    """Reads `ROWS`; returns their cuts, their counts, and the cluster of the frames."""
    frame = values(pa.float64(), *ROWS)
    encoder = Encoder("double")
    codes = encoder.encode(pa.array([1.0, 2.0, 3.0, 5.0, 7.0, 7.5, 8.0])).codes
    sample = Sample(encoder, QueryModel.of_sample(codes), codes, hash_codes(codes), 11, 8, 11)
    profile = ColumnProfile(
        sizes=np.array(SIZES), sample=sample, values=frame,  # type: ignore[arg-type]
        owners=np.array(OWNERS), counted=None if counted is None else np.array(counted),
    )  # fmt: skip
    ends = encoder.encode(pa.array([2.0, 2.0, 2.5, 7.2, 9.0, 9.5])).codes.reshape(-1, 2)
    probes = Probes(ends, np.zeros(3, np.int64), np.zeros(3, np.uint64))
    empty = np.isin(np.arange(8), may_be_empty)
    with read_cuts(profile, IndexOptions(shape), probes, empty) as read:
        assert frame.cluster.calls.count("unpersist") == 0
        assert read.pairs is None
        rows = read.cuts.rows  # type: ignore[attr-defined]
    assert frame.cluster.calls.count("unpersist") == 1
    return rows, read.seen, frame.cluster


EXACT = [4, 2, 0, 1, 1, 3, 0]


def test_every_kind_of_row_is_counted() -> None:
    """For each location, the reading counts rows, NULLs and NaNs, and finds the ends of the keys.

    For each probe, the reading counts the matching locations and their bytes.
    """
    _, seen, _ = read(EXACT)
    assert seen.rows.tolist() == [4, 2, 0, 1, 1, 2, 1, 0]
    assert seen.nulls.tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    assert seen.nans.tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert seen.hits.tolist() == [[1, 3, 0], [10, 20 + 40 + 60, 0]]
    code = dict(
        zip((1.0, 2.0, 3.0, 5.0, 7.0, 7.5, 8.0),
            Encoder("double").encode(pa.array([1.0, 2.0, 3.0, 5.0, 7.0, 7.5, 8.0])).codes.tolist(),
            strict=True)
    )  # fmt: skip
    none, all_ = GREATEST, LEAST
    least = [code[1.0], code[3.0], none, code[5.0], none, code[7.0], code[8.0], none]
    greatest = [code[2.0], code[3.0], all_, code[5.0], all_, code[7.5], code[8.0], all_]
    assert (seen.least.tolist(), seen.greatest.tolist()) == (least, greatest)


@pytest.mark.parametrize(
    ("counted", "may_be_empty", "partial", "cuts", "keys"),
    [
        (EXACT, (), [2, 7], 7, 7),
        (None, (), [2, 7], 7, 7),
        (None, (7,), [2], 7, 7),
        (None, (2, 7), [2], 7, 7),
        ([4, 3, *EXACT[2:]], (), [1, 2, 7], 6, 6),
        ([4, 1, *EXACT[2:]], (), [1, 2, 7], 6, 6),
        ([*EXACT[:5], 4, 0], (), [2, 5, 6, 7], 4, 4),
        ([0] * 7, (7,), list(range(7)), 0, 0),
    ],
)
def test_partly_read_location_has_no_cuts(
    counted: list[int] | None, may_be_empty: Sequence[int], partial: list[int], cuts: int, keys: int
) -> None:
    """If a location has a damaged record, or an unexpected number of rows, it has no cuts."""
    found, seen, _ = read(counted, may_be_empty)
    assert np.flatnonzero(seen.partial).tolist() == partial
    left = sorted({0, 1, 3, 5, 6} - set(partial))
    assert sorted({row["location"] for row in found}) == left
    assert all(list(row) == ["location", "cuts"] for row in found)
    unpacked = unpack(row["cuts"] for row in found)
    assert (len(unpacked), seen.cuts[0], seen.keys) == (cuts, cuts, keys)
    some = [k for k in left if seen.least[k] <= seen.greatest[k]]
    ends = (min(seen.least[some]), max(seen.greatest[some])) if some else (GREATEST, LEAST)
    assert seen.cuts[1:] == ends
    assert unpacked.rows.sum() == sum({0: 3, 1: 1, 3: 1, 5: 2, 6: 1}[k] for k in left)


@pytest.mark.parametrize("type_name", ["int", "string"])
def test_pairs_are_read_with_the_cuts(type_name: str) -> None:
    """If the build reads files whole, one reading collects the cuts and the pairs of maps.

    The pairs for maps are divided into one part for each possible map.
    """
    text = type_name == "string"
    rows = [(str(k) if text else k, k % 2) for k in range(10)]
    frame = values(pa.string() if text else pa.int32(), rows[:6], rows[6:])
    encoder = Encoder(type_name)
    codes = np.sort(encoder.encode(pa.array([v for v, _ in rows], frame.types["v"])).codes)
    sample = Sample(encoder, QueryModel.of_sample(codes), codes, hash_codes(codes), 10, 8, 10)
    probes = Probes(np.empty((0, 2), np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))
    for counted, collects in ((None, True), ([5, 4], False)):
        profile = ColumnProfile(
            sizes=np.array([7, 7]), sample=sample, values=frame,  # type: ignore[arg-type]
            owners=np.arange(2), counted=None if counted is None else np.array(counted),
        )  # fmt: skip
        with read_cuts(profile, IndexOptions(), probes, with_pairs=True) as read:
            assert read.seen.rows.tolist() == [5, 5]
            assert (read.pairs is not None) == collects
            if read.pairs is not None:
                assert read.pairs.parts == 1
                pairs: Any = read.pairs.rows
                assert pairs.columns == ["part", "pairs", "hashes", "locations", "smallest"]
                assert [row["pairs"] for row in pairs.rows] == [6, 4]
                assert {row["part"] for row in pairs.rows} == {0}


def test_scattered_keys_have_neighbours_elsewhere() -> None:
    """The share of scattered keys: how many pairs of neighbouring keys have no common location.

    Each key counts once. With only one key, the share is 0.
    """
    for pairs, share in (
        ([], 0.0),
        ([(1, 0)], 0.0),
        ([(1, 0), (2, 0), (3, 0), (7, 1), (8, 1)], 0.25),
        ([(9, 0), (1, 0), (3, 0), (2, 1), (None, 5)], 2 / 3),
        ([(1, 0), (1, 1), (1, 2)], 0.0),
    ):
        frame = values(pa.int32(), pairs)
        assert sampled(frame, "int", max(1, len(pairs))).scattered == pytest.approx(share)


def test_keys_are_cut_only_at_gaps_for_intervals() -> None:
    """With the shape intervals, a cut can contain many keys, and ends at a gap between keys.

    Even if cuts contain many keys, the distinct keys are counted exactly.
    """
    found, seen, _ = read(EXACT, shape="intervals")
    assert seen.keys == 7
    assert all(list(row) == ["location", "cuts"] for row in found)
    cuts = unpack([row["cuts"] for row in found])
    assert len(cuts) == seen.cuts[0]
    assert cuts.keys.sum() == 7
    assert cuts.rows.sum() == 8
    assert (cuts.first <= cuts.last).all()
    assert {row["location"] for row in found} == set(cuts.location.tolist())
    for row in found:
        assert set(unpack([row["cuts"]]).location.tolist()) == {row["location"]}
