"""The reading step of a build on executors: reads a column, sorts its codes, and makes cuts.

A *cut* is an interval of key codes of one location; for the shape `sieve`, a cut is a single key.
The later steps (`segment_tasks`) process cuts instead of rows, because cuts are far fewer. All
steps exchange Arrow record batches, in limited memory, and need no PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sieve.arrays.dtypes import CodeIntervals, Codes, Counts
from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing import hash_map_tasks
from sieve.indexing.batches import Batches, together
from sieve.indexing.domain_sample import DomainSample
from sieve.indexing.packed_intervals import pack
from sieve.segments.intervals.cut_gaps import Intervals, cut_location, overprovisioned_most
from sieve.segments.query_model import QueryModel

FILE = pa.struct(
    [("location", pa.int32())]
    + [(name, pa.int64()) for name in ("rows", "nulls", "nans", "damaged")]
    + [(name, pa.int64()) for name in ("n_cuts", "keys", "first", "last")]
    + [("cuts", pa.binary())]
)
"""The fields of a location: the counts of its rows and corrupt records, and its packed cuts."""
PROBE = pa.struct([("number", pa.int32()), ("locations", pa.int64()), ("bytes", pa.int64())])
"""The fields of a probe: number and bytes of the task's locations that contain a key of the
probe."""
LINES = pa.schema([("file", FILE), ("probe", PROBE), ("pairs", pa.struct(hash_map_tasks.PACKED))])
"""The columns of the reading step's output. Each line has a value in one column, and NULL in all
other columns."""
_HELD = 1 << 22
"""When a task has buffered this many codes (32 MB), it sorts the codes and makes cuts."""
_ORDERED = 16
"""Codes count as mostly sorted if less than ``1 / _ORDERED`` of the codes are below their
predecessor."""


@dataclass(frozen=True, slots=True, eq=False)
class Cutting:
    """How finely the reading step divides a location's keys into cuts.

    Attributes:
        sizes: int64[n], size of each location in bytes.
        query_model: the expected queries. If None, every key is a cut.
        threshold: the least number of bytes that the division of a cut must save per expected
            query. A division at a gap saves the location's bytes, times the probability that a
            query lies in the gap.
        budget: maximum size of the run's intervals in bytes.
    """

    sizes: Counts
    query_model: QueryModel | None = None
    threshold: float = 0.0
    budget: int = 0
    rows: int = 0

    def of(self, codes: Codes, rows: npt.NDArray[np.int64], location: int) -> Intervals:
        """Returns the cuts of a location, given its distinct keys in ascending order."""
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
    probes: CodeIntervals,
    parts: int | None = None,
) -> Callable[[Batches], Batches]:
    """Returns the reading step, which converts rows of value and location to `LINES`.

    For a corrupt record, the input has a row whose location column is -1 minus the location's
    number; see `LOCATION`.

    Args:
        domain_sample: the windows of the domain that the index covers; None for the whole domain.
        cutting: how finely to divide keys into cuts.
        probes: int64[k, 2], intervals of key codes. For each interval, the step counts the
            locations that have a key in the interval.
        parts: number of hash ranges into which the step packs pairs for hash maps. If ``parts`` is
            None, the step yields no pairs; with a domain sample, ``parts`` must be None. If the
            encoder is not exact, the step needs the JVM's hash in a third column to make pairs.
    """

    def run(batches: Batches) -> Batches:
        packer = None if parts is None else hash_map_tasks.PairPacker(parts)
        file: _File | None = None
        hits = np.zeros((2, len(probes)), np.int64)
        for batch in batches:
            for location, part in together(batch, 1):
                if location < 0:
                    yield _of_file(-1 - location, damaged=part.num_rows)
                    continue
                if file is None or file.location != location:
                    if file is not None:
                        yield from file.finish()
                    file = _File(location, encoder, domain_sample, cutting, probes, hits, packer)
                yield from file.add(part)
        if file is not None:
            yield from file.finish()
        if packer is not None:
            yield from map(_of_pairs, packer.finish())
        if hits.size:
            met = np.flatnonzero(hits[0])
            yield _lines("probe", [met, hits[0, met], hits[1, met]])

    return run


def members(kind: str, names: Sequence[str]) -> Callable[[Batches], Batches]:
    """Returns a step that selects the `LINES` of one kind, with some of the fields as columns."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            lines = batch.column(kind).drop_null()
            if len(lines):
                yield pa.RecordBatch.from_arrays([lines.field(name) for name in names], [*names])

    return run


def with_cuts(whole: Sequence[int] | None) -> Callable[[Batches], Batches]:
    """Returns a step that selects the cuts of locations in `whole`; None selects all cuts."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            has = batch.column("cuts").is_valid()
            if whole is not None:
                known = pa.array(whole, pa.int32())
                has = pc.and_(has, pc.is_in(batch.column("location"), known))
            yield batch.filter(has)

    return run


def counts_of(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yields the counts in one task's `LINES`, in the same form as sums over several tasks."""
    of_file, of_probe = ["location", *names, "first", "last"], ["number", "locations", "bytes"]
    for batch in members("file", of_file)(iter(batches)):
        for location, *counts in zip(*batch.to_pydict().values(), strict=True):
            yield [location, None, *counts, None, None]
    for batch in members("probe", of_probe)(iter(batches)):
        for number, *hits in zip(*batch.to_pydict().values(), strict=True):
            yield [None, number, *(None for _ in of_file[1:]), *hits]


def _lines(name: str, columns: Sequence[object]) -> pa.RecordBatch:
    """Returns output lines with values in one column of `LINES`."""
    kinds = LINES.field(name).type
    arrays = [pa.array(c, kind.type) for c, kind in zip(columns, kinds, strict=True)]
    made = pa.StructArray.from_arrays(arrays, fields=list(kinds))
    return pa.RecordBatch.from_arrays(
        [made if one.name == name else pa.nulls(len(made), one.type) for one in LINES],
        schema=LINES,
    )


def _of_pairs(packed: pa.RecordBatch) -> pa.RecordBatch:
    return _lines("pairs", packed.columns)


def _of_file(
    location: int,
    counts: Sequence[int] = (0, 0, 0),
    cuts: Intervals | None = None,
    damaged: int = 0,
) -> pa.RecordBatch:
    of_cuts: tuple[object, ...] = (0, 0, None, None, None)
    if cuts is not None:
        ends = cuts.first[0], cuts.last[-1]
        of_cuts = len(cuts), int(cuts.keys.sum()), *ends, pack(cuts)
    return _lines("file", [[each] for each in (location, *counts, damaged, *of_cuts)])


class _File:
    """The buffered codes and the counts of one location, while a task reads the location's rows."""

    def __init__(
        self,
        location: int,
        encoder: Encoder,
        domain_sample: DomainSample | None,
        cutting: Cutting,
        probes: CodeIntervals,
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
        self._counts = [0, 0, 0]

    def add(self, batch: pa.RecordBatch) -> Batches:
        """Adds rows. Yields packed pairs; if the buffer is full, also yields lines with cuts."""
        values = batch.column(0)
        encoded = self._encoder.encode(values)
        keys = encoded.codes[encoded.valid & ~encoded.nan]
        found = len(values), int((~encoded.valid).sum()), int(encoded.nan.sum())
        self._counts = [a + b for a, b in zip(self._counts, found, strict=True)]
        if self._zoom is not None:
            keys = self._zoom.codes(keys)
        self._codes.append(keys)
        self._held += len(keys)
        if self._packer is not None and not self._encoder.exact:
            hashes = hash_map_tasks.hashed_once(batch.column(2))
            yield from map(_of_pairs, self._packer.add(hashes, self.location))
        if self._held >= _HELD:
            yield from self.finish()

    def finish(self) -> Batches:
        """Yields the output lines for all rows that were added since the last call."""
        if not any(self._counts):
            return
        cuts = None
        if self._held:
            codes, rows = _distinct(np.concatenate(self._codes))
            self._codes, self._held = [], 0
            start = np.searchsorted(codes, self._probes[:, 0])
            stop = np.searchsorted(codes, self._probes[:, 1], side="right")
            met = np.flatnonzero(start < stop)
            self._hits[0, met] += 1
            self._hits[1, met] += self._cutting.sizes[self.location]
            cuts = self._cutting.of(codes, rows, self.location)
            if self._packer is not None and self._encoder.exact:
                pairs = self._packer.add(hash_codes(codes), self.location)
                yield from map(_of_pairs, pairs)
        yield _of_file(self.location, self._counts, cuts)
        self._counts = [0, 0, 0]


def _distinct(codes: Codes) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Returns the distinct codes, ascending, and how often each code occurs.

    Sorts `codes`, which must not be empty, in place.
    """
    # numpy's stable sort merges sorted sequences. If most codes are in order, as in a file with a
    # few late rows, a stable sort is faster than the default sort.
    falls = np.count_nonzero(codes[1:] < codes[:-1])
    if falls:
        codes.sort(kind="stable" if falls * _ORDERED < len(codes) else None)
    start = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    return codes[start], np.diff(start, append=len(codes))
