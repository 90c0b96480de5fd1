"""The first build step on executors reads a column, sorts and cuts its codes, without PySpark.

Reading makes *cuts*: intervals of keys of one location, or one interval per key if the shape needs
that. The later steps (`segment_tasks`) process cuts, which are few, and never rows. All steps
exchange Arrow record batches in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.arrays import dtypes
from sieve.arrays.dtypes import Codes, Counts
from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing import hash_map_tasks
from sieve.indexing.batches import Batches, together
from sieve.indexing.domain_sample import DomainSample
from sieve.indexing.packed_intervals import pack
from sieve.segments.intervals import Intervals, cut_location, overprovisioned_most
from sieve.segments.query_model import QueryModel

KEY, ROWS, NULLS, NANS, PROBE, DAMAGED, PAIRS = range(7)
"""Kinds of output lines of the first step: a cut; a count of a location's rows of a kind; the
number of a task's locations that hold a key of a probe, with their bytes in `keys`; a corrupt
record of a location; or, packed, a task's pairs of hash and location in one range of hashes."""

CUTS_SCHEMA = "kind INT, location INT, first BIGINT, last BIGINT, keys BIGINT, rows BIGINT"
_CUTS = pa.schema(
    [("kind", pa.int32()), ("location", pa.int32())]
    + [(name, pa.int64()) for name in ("first", "last", "keys", "rows")]
)
_PAIRS = ("hashes", "locations", "smallest")
PACKED_SCHEMA = ", ".join([CUTS_SCHEMA, "cuts BINARY", *(f"{name} BINARY" for name in _PAIRS)])
"""Of packed lines: those of cuts have these in `cuts`, their number in `rows`, and their ends;
those of pairs have the columns of `hash_map_tasks`, the range in `location`, the number in `rows`.
"""
_PACKED = pa.schema([*_CUTS, *((name, pa.binary()) for name in ("cuts", *_PAIRS))])
_HELD = 1 << 22
"""Codes buffered before they are sorted and cut: 32 MB."""
_ORDERED = 16
"""Codes per descent (a code below the one before) from which they count as mostly sorted."""


@dataclass(frozen=True, slots=True, eq=False)
class Cutting:
    """The granularity of cuts while a location's keys are read.

    Attributes:
        sizes: int64[n], bytes of each location.
        query_model: the distribution of queries; with None, every key is a cut.
        threshold: minimum bytes that a gap must save an expected query: the gap's skip probability
            times the bytes of its location.
        budget: maximum bytes of the run.
        rows: number of rows of the table.
    """

    sizes: Counts
    query_model: QueryModel | None = None
    threshold: float = 0.0
    budget: int = 0
    rows: int = 0

    def of(self, codes: Codes, rows: npt.NDArray[np.int64], location: int) -> Intervals:
        """The cuts of distinct, ascending keys of a location."""
        if self.query_model is None:
            place = np.full(len(codes), location, np.int32)
            return Intervals(codes, codes, place, np.ones_like(rows), rows)
        most = overprovisioned_most(int(rows.sum()), self.rows, len(self.sizes), self.budget)
        threshold = self.threshold / max(1, int(self.sizes[location]))
        return cut_location(codes, rows, location, self.query_model, threshold, most)


def read_column(
    encoder: Encoder,
    domain_sample: DomainSample | None,
    cutting: Cutting,
    probes: dtypes.Intervals,
    parts: int | None = None,
) -> Callable[[Batches], Batches]:
    """The first step: from (value, location) rows to cuts and counts of each location.

    The row of a corrupt record has -1 minus the location's number; see `LOCATION`.

    Args:
        encoder: the encoder of the column.
        domain_sample: the windows of the domain to index, or None for the whole domain.
        cutting: the granularity of cuts.
        probes: int64[k, 2], intervals of key codes whose true locations are counted.
        parts: number of ranges of hashes for packed pairs of hash maps, which the step then also
            yields, or None for no pairs. Unless the encoder is exact, rows then have the JVM's hash
            in a third column. Not allowed with a domain sample.
    """

    def run(batches: Batches) -> Batches:
        packer = None if parts is None else hash_map_tasks.PairPacker(parts)
        file: _File | None = None
        hits = np.zeros((2, len(probes)), np.int64)
        for batch in batches:
            for location, part in together(batch, 1):
                if location < 0:
                    yield _damaged(-1 - location, part.num_rows)
                    continue
                if file is None or file.location != location:
                    if file is not None:
                        yield from file.finish()
                    file = _File(location, encoder, domain_sample, cutting, probes, hits, packer)
                yield from file.add(part)
        if file is not None:
            yield from file.finish()
        if packer is not None:
            yield from packer.finish()
        if hits.size:
            yield _hits(hits)

    return run


def pack_cuts(lines: Batches) -> Batches:
    """A step that packs the cuts of each batch of `read_column` into one row."""
    for batch in lines:
        none = pa.nulls(batch.num_rows, pa.binary())
        if batch.schema.equals(hash_map_tasks.PACKED):
            kinds = pa.array(np.full(batch.num_rows, PAIRS, np.int32))
            zeros = pa.array(np.zeros(batch.num_rows, np.int64))
            part, pairs, *packed = batch.columns
            columns = [kinds, part, zeros, zeros, zeros, pairs, none, *packed]
            yield pa.RecordBatch.from_arrays(columns, schema=_PACKED)
        elif batch.num_rows == 0 or batch.column(0)[0].as_py() != KEY:
            columns = [*batch.columns, none, none, none, none]
            yield pa.RecordBatch.from_arrays(columns, schema=_PACKED)
        else:
            location, first, last, keys, rows = (batch.column(k).to_numpy() for k in range(1, 6))
            cuts = Intervals(first, last, location, keys, rows)
            line = (KEY, location[0], first[0], last[-1], keys.sum(), len(cuts), pack(cuts))
            yield _line((*line, None, None, None), _PACKED)


def _line(values: Sequence[object], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array([v], field.type) for v, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _damaged(location: int, records: int) -> pa.RecordBatch:
    return _line((DAMAGED, location, 0, 0, 0, records), _CUTS)


def _hits(hits: Counts) -> pa.RecordBatch:
    met = np.flatnonzero(hits[0])
    none = pa.array(np.zeros(len(met), np.int64))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(len(met), PROBE, np.int32)),
            pa.array(met, pa.int32()),
            *(none, none, pa.array(hits[1, met]), pa.array(hits[0, met])),
        ],
        schema=_CUTS,
    )


class _File:
    """One file's codes and counts while its rows are read."""

    def __init__(
        self,
        location: int,
        encoder: Encoder,
        domain_sample: DomainSample | None,
        cutting: Cutting,
        probes: dtypes.Intervals,
        hits: Counts,
        packer: hash_map_tasks.PairPacker | None,
    ) -> None:
        self.location = location
        self._encoder = encoder
        self._packer = packer
        self._zoom = domain_sample
        self._cutting = cutting
        self._probes, self._hits = probes, hits
        self._codes: list[Codes] = []
        self._held = 0
        self._counts = {ROWS: 0, NULLS: 0, NANS: 0}

    def add(self, batch: pa.RecordBatch) -> Batches:
        values = batch.column(0)
        encoded = self._encoder.encode(values)
        keys = encoded.codes[encoded.valid & ~encoded.nan]
        self._counts[ROWS] += len(values)
        self._counts[NULLS] += int(np.count_nonzero(~encoded.valid))
        self._counts[NANS] += int(np.count_nonzero(encoded.nan))
        if self._zoom is not None:
            keys = self._zoom.codes(keys)
        self._codes.append(keys)
        self._held += len(keys)
        if self._packer is not None and not self._encoder.exact:
            yield from self._packer.add(hash_map_tasks.hashed_once(batch.column(2)), self.location)
        if self._held >= _HELD:
            yield from self._flush()

    def finish(self) -> Batches:
        if self._held:
            yield from self._flush()
        kinds = list(self._counts)
        none, counts = np.zeros(len(kinds), np.int64), np.array(list(self._counts.values()))
        yield self._batch(kinds, none, none, none, counts)

    def _flush(self) -> Batches:
        codes, rows = _distinct(np.concatenate(self._codes))
        self._codes, self._held = [], 0
        start = np.searchsorted(codes, self._probes[:, 0])
        stop = np.searchsorted(codes, self._probes[:, 1], side="right")
        met = np.flatnonzero(start < stop)
        self._hits[0, met] += 1
        self._hits[1, met] += self._cutting.sizes[self.location]
        cuts = self._cutting.of(codes, rows, self.location)
        kinds = np.full(len(cuts), KEY, np.int32)
        if self._packer is not None and self._encoder.exact:
            yield from self._packer.add(hash_codes(codes), self.location)
        yield self._batch(kinds, cuts.first, cuts.last, cuts.keys, cuts.rows)

    def _batch(self, kinds: object, *columns: npt.NDArray[np.int64]) -> pa.RecordBatch:
        kind = pa.array(kinds, pa.int32())
        location = pa.array(np.full(len(kind), self.location, np.int32))
        return pa.RecordBatch.from_arrays(
            [kind, location, *(pa.array(column, pa.int64()) for column in columns)], schema=_CUTS
        )


def _distinct(codes: Codes) -> tuple[Codes, npt.NDArray[np.int64]]:
    """The distinct codes, ascending, and their counts; sorts the argument (not empty) in place."""
    # Merging sorted runs is faster if most codes are in order, as in a file with a few late rows.
    falls = np.count_nonzero(codes[1:] < codes[:-1])
    if falls:
        codes.sort(kind="stable" if falls * _ORDERED < len(codes) else None)
    start = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    return codes[start], np.diff(start, append=len(codes))
