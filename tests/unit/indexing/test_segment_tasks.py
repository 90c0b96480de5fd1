"""Rows of run files, and what they tell of the segments in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sieve.indexing.segment_tasks import _stretches, segment_pairs
from sieve.segments.blocks.format import decode_segment


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
