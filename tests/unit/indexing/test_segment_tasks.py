"""Tests the tasks that make the rows of run files: segments, and the counts of their content."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sieve.indexing.block_tasks import segment_pairs
from sieve.indexing.packed_intervals import pack, unpack
from sieve.indexing.partition_keys import partition_keys
from sieve.indexing.segment_tasks import _stretches, split_cuts, write_whole
from sieve.segments.blocks.format import decode_segment
from sieve.segments.budget import prices_for
from sieve.segments.intervals.cut_gaps import Intervals
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD, plan
from sieve.segments.query_model import QueryModel


def test_a_row_counts_the_keys_rows_and_blocks_of_its_segment() -> None:
    """A row counts its segment's keys, rows and blocks, however batches divide the pairs."""
    codes = np.array([*range(50), *range(1000, 1050), 2000])
    locations = np.resize(np.array([0, 1, 1, 2], np.int32), len(codes))
    rows = np.arange(1, len(codes) + 1)
    whole = pa.RecordBatch.from_arrays(
        [pa.array(codes), pa.array(locations), pa.array(rows)], ["code", "location", "rows"]
    )
    batches = [whole.slice(0, 30), whole.slice(30)]
    made = [row for batch in segment_pairs(5, 500)(iter(batches)) for row in batch.to_pylist()]
    spans = [(0, 49), (1000, 1049), (2000, 2000)]
    assert [(row["first"], row["last"]) for row in made] == spans
    assert sum(row["keys"] for row in made) == len(codes)
    for row, (first, last) in zip(made, spans, strict=True):
        inside = (codes >= first) & (codes <= last)
        segment = decode_segment(row["payload"])
        assert row["shape"] == "sieve"
        assert row["rows"] == rows[inside].sum()
        assert row["blocks"] == len(segment.blocks.offsets) - 1


@pytest.mark.parametrize("order", [[0, 0, 1, 1, 1, 2], [5, 3, 3, 3, 4, 4]])
@pytest.mark.parametrize("cut", [0, 2, 3, 5])
def test_a_stretch_has_its_pieces_from_all_batches(order: list[int], cut: int) -> None:
    """For each part of the domain, a task collects the part's intervals from all batches.

    A batch can end in the middle of a part.
    """
    n = len(order)
    first, one = 10 * np.arange(n), np.ones(n, np.int64)
    pieces = Intervals(first, first + 5, np.arange(n, dtype=np.int32), one, 2 * one)
    packed = [pack(pieces.take(np.array([k]))) for k in range(n)]
    whole = pa.RecordBatch.from_arrays([pa.array(order), pa.array(packed)], ["stretch", "pieces"])
    found = [list(one.first) for one in _stretches(iter([whole.slice(0, cut), whole.slice(cut)]))]
    expected = [
        [10 * k for k in range(n) if order[k] == stretch] for stretch in dict.fromkeys(order)
    ]
    assert found == expected


@pytest.mark.parametrize("budget", [1500, 3000, 6000])
def test_payloads_leave_some_budget_to_page_headers(budget: int) -> None:
    """Segments use most of the budget, but leave bytes for the page headers of the Parquet file."""
    files, pieces, domain = 60, 20, 1 << 20
    rng = np.random.default_rng(budget)
    first = rng.integers(0, domain, files * pieces)
    last = first + rng.integers(0, domain >> 12, len(first))
    location = np.repeat(np.arange(files), pieces)
    ones = np.ones(len(first), np.int64)
    pieces_of_all = Intervals(first, last, location.astype(np.int32), ones, ones)
    columns = [pa.array([0]), pa.array([pack(pieces_of_all)])]
    batch = pa.RecordBatch.from_arrays(columns, ["stretch", "pieces"])
    model = QueryModel.of_sample(np.sort(first))
    step = write_whole(lambda given: plan(given, model), prices_for(files, budget), budget, 1)
    made = pa.Table.from_batches(step(iter([batch])))
    taken = sum(len(p.as_py()) + SEGMENT_OVERHEAD for p in made["payload"])
    assert budget / 2 < taken <= 0.98 * budget


def intervals(*rows: tuple[int, int, int, int, int]) -> Intervals:
    """Converts tuples (first, last, location, keys, rows) to intervals."""
    first, last, location, keys, counts = np.array(rows, np.int64).reshape(-1, 5).T
    return Intervals(first, last, location.astype(np.int32), keys, counts)


def listed(some: Intervals) -> list[tuple[int, ...]]:
    """Converts intervals to tuples."""
    columns = (some.first, some.last, some.location, some.keys, some.rows)
    return [tuple(int(each) for each in row) for row in zip(*columns, strict=True)]


def test_unpacked_cuts_equal_the_packed_cuts() -> None:
    """Packing and unpacking leave cuts unchanged. A packed cut has 36 bytes.

    Several packed values are unpacked to one list.
    """
    far = (-(1 << 63), (1 << 63) - 1, (1 << 31) - 1, 1 << 40, 1 << 50)
    some, more = intervals((1, 2, 3, 4, 5), far), intervals((6, 7, 8, 9, 10))
    assert len(pack(some)) == 72
    assert listed(unpack([pack(some), pack(more)])) == [(1, 2, 3, 4, 5), far, (6, 7, 8, 9, 10)]
    assert listed(unpack([])) == []


def test_the_pieces_of_a_stretch_are_one_value_of_a_batch() -> None:
    """A task divides a batch's cuts by part of the domain, and packs each part to one value."""
    rows = [intervals((0, 25, 1, 9, 9)), intervals((3, 4, 2, 1, 1), (40, 41, 2, 2, 2))]
    columns = [pa.array([1, 2], pa.int32()), pa.array([pack(each) for each in rows])]
    batch = pa.RecordBatch.from_arrays(columns, ["location", "cuts"])
    step = split_cuts(np.array([10, 20, 30]))
    keys = partition_keys(4).tolist()
    made = [row for some in step(iter([batch, batch.slice(2)])) for row in some.to_pylist()]
    assert [(row["stretch"], listed(unpack([row["pieces"]]))) for row in made] == [
        (keys[0], [(0, 9, 1, 9, 9), (3, 4, 2, 1, 1)]),
        (keys[1], [(10, 19, 1, 0, 0)]),
        (keys[2], [(20, 25, 1, 0, 0)]),
        (keys[3], [(40, 41, 2, 2, 2)]),
    ]
