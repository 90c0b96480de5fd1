"""Rows of run files, and what they tell of the segments in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sieve.indexing.segment_tasks import segment_pairs
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
