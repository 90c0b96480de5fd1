"""Estimates the files that a query would read: evaluates its predicate on an estimated index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import Encoder
from sieve.indexing.column_profile import ColumnProfile
from sieve.indexing.column_sample import Sample
from sieve.indexing.seen import Seen
from sieve.indexing.tiling import Tiling
from sieve.predicate.evaluate import LocationIndex, evaluate
from sieve.predicate.key_ranges import KeyRanges
from sieve.predicate.parse_predicate import Predicate
from sieve.reader.run_reader import Run
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile


@dataclass(frozen=True, slots=True)
class Asked:
    """The predicate and the files of a query; the module estimates how much the query reads.

    Attributes:
        files: paths of the files that remain for the query after partition pruning.
    """

    predicate: Predicate
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reads:
    """How many files and bytes a query reads.

    Attributes:
        total: number of files that the query reads without an index.
        files: number of files that the query reads with the index.
        bytes: bytes that the query reads with the index.
        understood: whether the index can evaluate at least a part of the predicate.
    """

    total: int
    files: int
    bytes: int
    understood: bool


def ends(asked: Asked | None, column: Column, of: ColumnProfile) -> npt.NDArray[np.int64]:
    """Returns the intervals of key codes that a query would look up in an index on the column."""
    gathered = _Gathered(of.sample.encoder, of.counted is not None, of.n_files)
    if asked is not None:
        evaluate(asked.predicate, {column.key: gathered}, of.n_files)
    everything = [wanted.intervals for wanted in gathered.wanted]
    return np.unique(np.concatenate([np.empty((0, 2), np.int64), *everything]), axis=0)


class _Gathered:
    """Stands in for an index in the evaluation of a predicate, and records the key ranges."""

    def __init__(self, encoder: Encoder, null_proof: bool, n: int) -> None:
        self.encoder = encoder
        self.null_proof = null_proof
        self.wanted: list[KeyRanges] = []
        self._n = n

    def keep(self, key_ranges: KeyRanges) -> Flags:
        self.wanted.append(key_ranges)
        return np.ones(self._n, np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """Stands in for an index in the evaluation of a predicate; looks up keys in a run in memory."""

    sample: Sample
    null_proof: bool
    seen: Seen
    run: Run

    @property
    def encoder(self) -> Encoder:
        return self.sample.encoder

    def keep(self, key_ranges: KeyRanges) -> Flags:
        domain_sample, seen = self.sample.domain_sample, self.seen
        intervals = (
            key_ranges.intervals
            if domain_sample is None
            else domain_sample.intervals(key_ranges.intervals)
        )
        keep = seen.partial.copy()
        found = self.run.locations_in(intervals)
        if self.run.has_maps and key_ranges.hashes is not None:
            found &= self.run.locations_of(key_ranges.hashes)
        keep |= found
        if key_ranges.null:
            keep |= seen.nulls > 0
        if key_ranges.nan:
            keep |= seen.nans > 0
        return keep


def reads(
    asked: Asked,
    column: Column,
    files: Sequence[DataFile],
    tiling: Tiling,
    of: ColumnProfile,
    seen: Seen,
    run: Run,
) -> Reads:
    """Estimates how many files and bytes of a table a query reads with an index.

    Args:
        asked: the query.
        of: the column's profile.
        seen: rows, NULLs and NaNs per location, counted while the column was read.
    """
    left = np.array([file.path in asked.files for file in files], np.bool_)
    index: LocationIndex = _Shown(of.sample, of.counted is not None, seen, run)
    verdict = evaluate(asked.predicate, {column.key: index}, of.n_files)
    kept = verdict.keep & left[tiling.owners]
    opened = len(np.unique(tiling.owners[kept]))
    return Reads(int(left.sum()), opened, int(tiling.sizes[kept].sum()), bool(verdict.used))
