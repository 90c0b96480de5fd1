"""The step of a build that reads a column: what it counts in any order of the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sieve.encoding.encoder import Encoder
from sieve.indexing import cut_tasks
from sieve.indexing.read_column import Seen
from sieve.segments.query_model import QueryModel

NO_PROBES = np.empty((0, 2), np.int64)
SIZES = np.array([100, 200, 300, 400])


def codes_in(order):
    """A file's keys, some of them more than once."""
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(-4_000, 4_000, 10_000))
    if order == "mostly ascending":
        codes[::100] = rng.permutation(codes[::100])
    elif order == "any":
        rng.shuffle(codes)
    return codes


@pytest.mark.parametrize("order", ["ascending", "mostly ascending", "any"])
def test_distinct_keys_are_counted_in_any_order(order):
    """Each distinct key is one cut with its rows, in order, however the file has them."""
    codes = codes_in(order)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(codes), pa.array(np.full(len(codes), 3, np.int32))], names=["v", "location"]
    )
    step = cut_tasks.read_column(
        Encoder.for_type("bigint"), None, cut_tasks.Cutting(SIZES), NO_PROBES
    )
    lines = pa.Table.from_batches(step(iter([rows])))
    cuts = lines.filter(pc.equal(lines["kind"], cut_tasks.KEY))
    distinct, counts = np.unique(codes, return_counts=True)
    assert np.array_equal(cuts["first"], distinct)
    assert np.array_equal(cuts["rows"], counts)


def test_a_damaged_record_is_a_line_of_its_own_and_no_row():
    """The row that stands for it, with -1 less its location's number, counts as nothing else."""
    rows = pa.RecordBatch.from_arrays(
        [pa.array([5, 6, None, 7]), pa.array([0, 0, -3, 1], pa.int32())], names=["v", "location"]
    )
    step = cut_tasks.read_column(
        Encoder.for_type("bigint"), None, cut_tasks.Cutting(SIZES), NO_PROBES
    )
    lines = pa.Table.from_batches(step(iter([rows]))).to_pylist()
    damaged = [
        (line["location"], line["rows"]) for line in lines if line["kind"] == cut_tasks.DAMAGED
    ]
    assert damaged == [(2, 1)]
    counted = {line["location"]: line["rows"] for line in lines if line["kind"] == cut_tasks.ROWS}
    assert counted == {0: 2, 1: 1}
    assert not any(line["rows"] for line in lines if line["kind"] == cut_tasks.NULLS)


@pytest.mark.parametrize(
    ("partial", "whole"), [([0, 0, 0], None), ([0, 1, 0], [0, 2]), ([1, 1, 1], [])]
)
def test_locations_that_were_read_whole_are_told(partial: list[int], whole: list[int] | None):
    """None stands for all of them, so that nothing is asked of each."""
    none = np.zeros(3, np.int64)
    flags = np.array(partial, np.bool_)
    seen = Seen(none, none, none, none, none, none, flags, (0, 0, 0), 0)
    assert seen.whole == whole


def test_large_locations_are_cut_more_finely():
    """A gap counts by the bytes that it saves: of the same keys the large file has more cuts."""
    keys = np.concatenate([np.arange(100), np.arange(1_000, 1_100), np.arange(50_000, 50_100)])
    model = QueryModel.of_sample(keys)
    cutting = cut_tasks.Cutting(np.array([10, 10_000, 0]), model, 20.0, 1 << 20, 600)
    cuts = [cutting.of(keys, np.ones_like(keys), location) for location in range(3)]
    assert [len(some) for some in cuts] == [1, 3, 1]


def test_probes_count_the_locations_that_hold_a_key_and_their_bytes():
    """A line for each probe with a match; sums over tasks give both."""
    rows = pa.RecordBatch.from_arrays(
        [pa.array([5, 6, 7, 6, 9]), pa.array([0, 0, 2, 3, 3], pa.int32())], names=["v", "location"]
    )
    probes = np.array([[6, 6], [8, 8], [5, 9]])
    step = cut_tasks.read_column(Encoder.for_type("bigint"), None, cut_tasks.Cutting(SIZES), probes)
    lines = pa.Table.from_batches(step(iter([rows]))).to_pylist()
    met = {
        line["location"]: (line["rows"], line["keys"])
        for line in lines
        if line["kind"] == cut_tasks.PROBE
    }
    assert met == {0: (2, 500), 2: (3, 800)}
