"""Tests the build step that reads a column.

This step returns cuts, counts, hits of probes, and pairs.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_bytes
from sieve.indexing import cut_tasks, hash_map_tasks
from sieve.indexing.packed_intervals import unpack
from sieve.indexing.seen import Seen
from sieve.segments.query_model import QueryModel

NO_PROBES = np.empty((0, 2), np.int64)
SIZES = np.array([100, 200, 300, 400])


def lines_of(kind, batches):
    """The rows of one kind in the output of the step."""
    return [row[kind] for batch in batches for row in batch.to_pylist() if row[kind] is not None]


def codes_in(order):
    """The keys of a file, in this order; some keys occur more than once."""
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(-4_000, 4_000, 10_000))
    if order == "mostly ascending":
        codes[::100] = rng.permutation(codes[::100])
    elif order == "any":
        rng.shuffle(codes)
    return codes


@pytest.mark.parametrize("order", ["ascending", "mostly ascending", "any"])
def test_distinct_keys_are_counted_in_any_order(order):
    """For keys in any order, each distinct key becomes one cut, with its number of rows."""
    codes = codes_in(order)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(codes), pa.array(np.full(len(codes), 3, np.int32))], names=["v", "location"]
    )
    step = cut_tasks.read_column(
        Encoder.for_type("bigint"), None, cut_tasks.Cutting(SIZES), NO_PROBES
    )
    (line,) = lines_of("file", step(iter([rows])))
    cuts = unpack([line["cuts"]])
    distinct, counts = np.unique(codes, return_counts=True)
    assert np.array_equal(cuts.first, distinct)
    assert np.array_equal(cuts.rows, counts)
    assert (line["n_cuts"], line["first"], line["last"]) == (len(cuts), codes.min(), codes.max())


def test_damaged_record_is_counted_but_not_as_a_row():
    """A damaged record counts as damaged, and not as a row.

    The input marks a damaged record by the number -1 minus its location's number.
    """
    rows = pa.RecordBatch.from_arrays(
        [pa.array([5, 6, None, 7]), pa.array([0, 0, -3, 1], pa.int32())], names=["v", "location"]
    )
    step = cut_tasks.read_column(
        Encoder.for_type("bigint"), None, cut_tasks.Cutting(SIZES), NO_PROBES
    )
    counted = [
        tuple(line[name] for name in ("location", "rows", "nulls", "damaged"))
        for line in lines_of("file", step(iter([rows])))
    ]
    assert sorted(counted) == [(0, 2, 0, 0), (1, 1, 0, 0), (2, 0, 0, 1)]


@pytest.mark.parametrize(
    ("partial", "whole"), [([0, 0, 0], None), ([0, 1, 0], [0, 2]), ([1, 1, 1], [])]
)
def test_whole_lists_the_completely_read_locations(partial: list[int], whole: list[int] | None):
    """`whole` lists the locations read in full. The value None means all locations."""
    none = np.zeros(3, np.int64)
    flags = np.array(partial, np.bool_)
    seen = Seen(none, none, none, none, none, none, flags, (0, 0, 0), 0)
    assert seen.whole == whole


def test_large_locations_are_cut_more_finely():
    """A large file gets more cuts, because each gap between its cuts saves more bytes."""
    keys = np.concatenate([np.arange(100), np.arange(1_000, 1_100), np.arange(50_000, 50_100)])
    model = QueryModel.of_sample(keys)
    cutting = cut_tasks.Cutting(np.array([10, 10_000, 0]), model, 20.0, 1 << 20, 600)
    cuts = [cutting.of(keys, np.ones_like(keys), location) for location in range(3)]
    assert [len(some) for some in cuts] == [1, 3, 1]


def test_probes_count_matching_locations_and_their_bytes():
    """For each probe, a task counts the matching locations and their bytes."""
    rows = pa.RecordBatch.from_arrays(
        [pa.array([5, 6, 7, 6, 9]), pa.array([0, 0, 2, 3, 3], pa.int32())], names=["v", "location"]
    )
    probes = np.array([[6, 6], [8, 8], [5, 9]])
    step = cut_tasks.read_column(Encoder.for_type("bigint"), None, cut_tasks.Cutting(SIZES), probes)
    met = [tuple(line.values()) for line in lines_of("probe", step(iter([rows])))]
    assert met == [(0, 2, 500), (2, 3, 800)]


@pytest.mark.parametrize("type_name", ["bigint", "string"])
def test_pairs_are_collected_in_the_same_reading(type_name: str, monkeypatch: pytest.MonkeyPatch):
    """Pairs of hash and location that the reading collects equal the pairs of a separate step.

    NULLs and damaged records add no pairs.
    """
    monkeypatch.setattr(cut_tasks, "_HELD", 3)
    text, encoder = type_name == "string", Encoder.for_type(type_name)
    given = [["a", "b", None, "a"], ["c", "a", "d"], [None], ["d"]]
    batches = []
    for location, values in ((0, given[0]), (0, ["b"]), (1, given[1]), (-3, [None]), (3, given[3])):
        some = [value and (value if text else ord(value)) for value in values]
        hashed = [value and hash_bytes([value.encode()])[0].astype(np.int64) for value in values]
        columns = [pa.array(some, pa.string() if text else pa.int64())]
        columns.append(pa.array(np.full(len(values), location, np.int32)))
        columns += [pa.array(hashed, pa.int64())] if text else []
        names = ["v", "location", "hash"][: len(columns)]
        batches.append(pa.RecordBatch.from_arrays(columns, names))
    cutting, probes = cut_tasks.Cutting(SIZES), np.empty((0, 2), np.int64)
    step = cut_tasks.read_column(encoder, None, cutting, probes, 2)
    made = list(step(iter(batches)))
    without = cut_tasks.read_column(encoder, None, cutting, probes)(iter(batches))
    assert lines_of("file", made) == lines_of("file", without)
    keys = [batch.select(["hash" if text else "v", "location"]) for batch in batches]
    alone = hash_map_tasks.pack_hashes(encoder, None, 2, None)(iter(keys))
    wanted = {
        (row["part"], *pair)
        for batch in alone
        for row in batch.to_pylist()
        for pair in zip(
            np.frombuffer(row["hashes"], np.int64).tolist(),
            np.frombuffer(row["locations"], np.int32).tolist(),
            strict=True,
        )
    }
    found = set()
    lines = lines_of("pairs", made)
    for line in lines:
        hashes, locations = (
            np.frombuffer(line[name], kind).tolist()
            for name, kind in (("hashes", np.int64), ("locations", np.int32))
        )
        assert line["pairs"] == len(hashes)
        assert len(line["smallest"]) in (0, 8 * sum(r["pairs"] for r in lines))
        found |= {(line["part"], *pair) for pair in zip(hashes, locations, strict=True)}
    assert found == wanted
    assert len(wanted) == 6
