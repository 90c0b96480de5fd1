"""Rows of run files, and what they tell of the segments in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sieve.indexing.segment_tasks import _stretches, segment_pairs, write_whole
from sieve.segments.blocks.format import decode_segment
from sieve.segments.budget import prices_for
from sieve.segments.query_model import QueryModel
from sieve.segments.shapes.planner import SEGMENT_OVERHEAD, plan


def test_a_row_counts_the_keys_rows_and_blocks_of_its_segment() -> None:
    """Each pair once; the segments of all batches are those of their pairs together."""
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
    """Stretches follow each other, in any order, and a batch may end within one."""
    names = ["stretch", "location", "first", "last", "keys", "rows"]
    n = len(order)
    columns = [order, list(range(n)), [10 * k for k in range(n)], [10 * k + 5 for k in range(n)]]
    whole = pa.RecordBatch.from_arrays([pa.array(c) for c in (*columns, [1] * n, [2] * n)], names)
    found = [list(one.first) for one in _stretches(iter([whole.slice(0, cut), whole.slice(cut)]))]
    expected = [
        [10 * k for k in range(n) if order[k] == stretch] for stretch in dict.fromkeys(order)
    ]
    assert found == expected


@pytest.mark.parametrize("budget", [1500, 3000, 6000])
def test_a_whole_column_leaves_some_of_its_budget_to_pages(budget: int) -> None:
    """Payloads take most of it, and not all: the pages of the file have headers."""
    files, pieces, domain = 60, 20, 1 << 20
    rng = np.random.default_rng(budget)
    first = rng.integers(0, domain, files * pieces)
    last = first + rng.integers(0, domain >> 12, len(first))
    location = np.repeat(np.arange(files), pieces)
    ones = np.ones(len(first), np.int64)
    columns = [0 * ones, location.astype(np.int32), first, last, ones, ones]
    names = ["stretch", "location", "first", "last", "keys", "rows"]
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names)
    model = QueryModel.of_sample(np.sort(first))
    step = write_whole(lambda given: plan(given, model), prices_for(files, budget), budget, 1)
    made = pa.Table.from_batches(step(iter([batch])))
    taken = sum(len(p.as_py()) + SEGMENT_OVERHEAD for p in made["payload"])
    assert budget / 2 < taken <= 0.98 * budget
