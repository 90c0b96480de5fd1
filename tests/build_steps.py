"""Runs the steps of an index build in this process instead of on Spark's executors."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from unittest import mock

import numpy as np
import pyarrow as pa

from sieve.arrays.interval_set import merge
from sieve.encoding.encoder import Encoder
from sieve.indexing import block_tasks, cut_tasks, hash_map_tasks, segment_tasks
from sieve.indexing.packed_intervals import unpack
from sieve.reader.entry_table import Chunk, assemble
from sieve.segments.budget import choose_price, prices_for
from sieve.segments.entries import Ends
from sieve.segments.hash_map.format import decode_map
from sieve.segments.hash_map.lookup import MapSegment
from sieve.segments.intervals.cut_gaps import overprovisioned_threshold
from sieve.segments.intervals.plan_segments import plan
from sieve.segments.payload import decode, decode_ends
from sieve.segments.query_model import QueryModel
from sieve.segments.stopping_rule import KINDS, Payback, Stop
from sieve.segments.weights import weights_of

SHAPES = ("sieve", "intervals", "map", "auto")


@dataclass(frozen=True)
class Built:
    """A run and, for each file, the counts of rows, NULLs and NaNs."""

    encoder: Encoder
    chunk: Chunk
    maps: list[MapSegment]
    rows: np.ndarray
    nulls: np.ndarray
    nans: np.ndarray
    ends: list[Ends]

    def keep(self, wanted):
        """Looks up key ranges in memory; returns the files that can contain a matching value."""
        found = self.locations_in(wanted.intervals)
        if self.maps and wanted.hashes is not None:
            found &= np.logical_or.reduce([one.locations_of(wanted.hashes) for one in self.maps])
        return found | (wanted.null & (self.nulls > 0)) | (wanted.nan & (self.nans > 0))

    def locations_in(self, intervals):
        """Returns the files that can contain a key code of at least one interval."""
        found = np.zeros(len(self.rows), np.bool_)
        self.chunk.mark(merge(intervals), found)
        return found


def build(
    files,
    encoder,
    shape,
    budget,
    *,
    hashes=None,
    batch=1 << 20,
    tasks_a_file=1,
    borders=(),
    bits=4,
    payback=None,
    sizes=None,
):
    """Builds the run of some files.

    Args:
        files: one Arrow array per file.
        encoder: the encoder for the arrays' type.
        shape: one of `SHAPES`.
        budget: the maximum number of bytes.
        hashes: the hashes of each file's values. A map needs hashes if the key codes are not exact.
        batch: the number of rows per batch. A task buffers the same number of values.
        tasks_a_file: the number of tasks that share the batches of each file.
        borders: the key codes that divide the domain. Each part of the domain gets its own
            segments.
        bits: the number of bits of a map's fingerprints.
        payback: the gain that each byte of the run must bring. With None, the run uses the whole
            budget.
        sizes: the size of each file in bytes; None means files of equal size.
    """
    encoded = [encoder.encode(values) for values in files]
    keys = np.concatenate([e.codes[e.valid & ~e.nan] for e in encoded])
    query_model = QueryModel.of_sample(keys) if len(keys) else None
    sizes = np.full(len(files), 100) if sizes is None else np.array(sizes)
    cutting = cut_tasks.Cutting(sizes)
    if shape != "sieve" and query_model is not None:
        threshold = overprovisioned_threshold(len(files), budget)
        cutting = cut_tasks.Cutting(
            sizes, query_model, threshold * sizes.mean(), budget, sum(map(len, files))
        )
    rows = list(_batches(files, batch))
    with mock.patch("sieve.indexing.cut_tasks._HELD", batch):
        step = cut_tasks.read_column(encoder, None, cutting, np.empty((0, 2), np.int64))
        made = [step(iter(rows[number::tasks_a_file])) for number in range(tasks_a_file)]
        lines = pa.Table.from_batches(itertools.chain(*made), cut_tasks.LINES)
    lines = pa.Table.from_struct_array(lines["file"])
    counts = {kind: np.zeros(len(files), np.int64) for kind in ("rows", "nulls", "nans")}
    for kind, sums in counts.items():
        np.add.at(sums, lines["location"].to_numpy(), lines[kind].to_numpy())
    cuts = lines.filter(lines["cuts"].is_valid()).select(["location", "cuts"])
    stop = (
        None
        if payback is None or query_model is None
        else _stop(query_model, len(files), budget, payback)
    )
    payloads = (
        _payloads(cuts, query_model, shape, budget, sizes, borders, stop) if query_model else []
    )
    maps = []
    if shape == "map" and query_model is not None:
        keys = rows if encoder.exact else _batches(_hashed(files, hashes), batch)
        maps = _maps(keys, encoder, len(files), bits)
    ends = [decode_ends(payload) for payload in payloads]
    return Built(encoder, assemble(map(decode, payloads)), maps, *counts.values(), ends)


def _stop(query_model, n_files, budget, payback):
    """A stopping rule of a build, for files of 100 bytes and for probes that match no file."""
    points = np.stack([query_model.codes, query_model.codes], axis=1)
    price = Payback(n_files, 100 * n_files, payback).price
    return Stop(price, budget, 0, (points, points, points), dict.fromkeys(KINDS, 0.0))


def _payloads(cuts, query_model, shape, budget, sizes, borders, stop):
    """The encoded segments of a run."""
    if shape == "sieve":
        cuts = _table(block_tasks.unpack_pairs(iter(cuts.to_batches())), block_tasks.PAIRS)
        cuts = cuts.sort_by([("code", "ascending"), ("location", "ascending")])
        pairs = cuts.combine_chunks().to_batches()
        made = block_tasks.segment_pairs(2, 1 << 40)(iter(pairs))
        return _table(made)["payload"].to_pylist()
    if shape == "map":
        query_model = query_model.of_ranges
    n_files = len(sizes)
    planner = partial(plan, query_model=query_model, weights=weights_of(sizes))
    borders = np.unique(np.array(borders, np.int64))
    n_cuts = len(unpack(cuts["cuts"].to_pylist()))
    pieces = _table(segment_tasks.split_cuts(borders)(iter(cuts.to_batches())))
    pieces = pieces.sort_by("stretch").combine_chunks().to_batches()
    if stop is not None:
        return _until(pieces, planner, n_files, borders, stop)
    prices = prices_for(n_files, budget)
    if len(borders) == 0:
        whole = segment_tasks.write_whole(planner, prices, budget, 1.0)
        return _table(whole(iter(pieces)))["payload"].to_pylist()
    weighed = segment_tasks.weigh_stretches(planner, prices, budget / n_cuts)(iter(pieces))
    curve = _table(weighed)
    sizes = np.bincount(curve["price"].to_numpy(), curve["bytes"].to_numpy(), len(prices))
    price = choose_price(prices, sizes, budget)
    return _table(segment_tasks.write_stretches(planner, price)(iter(pieces)))[
        "payload"
    ].to_pylist()


def _until(pieces, planner, n_files, borders, stop):
    prices = stop.prices(n_files)
    if len(borders) == 0:
        made = segment_tasks.write_until(planner, prices, stop, 1.0)(iter(pieces))
        return _table(made)["payload"].to_pylist()

    def trial(price):
        tried = _table(segment_tasks.try_stretches(planner, price, stop)(iter(pieces)))
        size, *reads = (sum(column.to_pylist()) for column in tried.columns)
        return size, reads

    trials = [partial(trial, price) for price in prices.tolist()]
    price = float(prices[stop.choose(trials)])
    return _table(segment_tasks.write_stretches(planner, price)(iter(pieces)))[
        "payload"
    ].to_pylist()


def _maps(keys, encoder, n_files, bits):
    """Builds two hash maps: each contains the hashes in one half of the hash range."""
    pairs = list(hash_map_tasks.pack_hashes(encoder, None, 2, None)(iter(keys)))
    made = hash_map_tasks.write_maps(n_files, bits)(iter(pairs))
    return [decode_map(row["payload"]) for batch in made for row in batch.to_pylist()]


def _hashed(files, hashes):
    """For each file, the hashes of the values; the hash of NULL is NULL."""
    pairs = zip(files, hashes, strict=True)
    return [
        pa.array(np.asarray(given, np.uint64).view(np.int64), mask=np.asarray(values.is_null()))
        for values, given in pairs
    ]


def _batches(files, size):
    """Arrow batches with two columns: values (or their hashes), and file numbers."""
    for number, values in enumerate(files):
        columns = [values, pa.array(np.full(len(values), number, np.int32))]
        whole = pa.RecordBatch.from_arrays(columns, names=["key", "location"])
        yield from (whole.slice(at, size) for at in range(0, len(values), size))


def _table(batches, schema=None):
    return pa.Table.from_batches(list(batches), schema)
