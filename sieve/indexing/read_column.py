"""The reading step of a build: reads the whole column once, makes cuts and counts rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import functions as sf

from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.indexing import cut_tasks
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.build_hash_map import CollectedPairs, parts_of
from sieve.indexing.column_profile import ColumnProfile
from sieve.indexing.hash_map_tasks import PACKED
from sieve.indexing.local_rows import MOST, LocalRows, Rows, fetched
from sieve.indexing.probes import Probes
from sieve.indexing.seen import Seen
from sieve.indexing.value_columns import value_columns
from sieve.metadata.index_options import IndexOptions
from sieve.segments.intervals.cut_gaps import overprovisioned_threshold
from sieve.tables.table import LOCATION


@dataclass(frozen=True, slots=True, eq=False)
class ReadCuts:
    """What the reading step of a build yields.

    Attributes:
        cuts: the cuts of all locations that were read completely; `LocalRows` if there are few
            cuts.
        seen: the counts of rows and keys.
        pairs: the pairs of hash and location for hash maps. None if the step collected no pairs, or
            if it did not read a location completely.
    """

    cuts: Rows
    seen: Seen
    pairs: CollectedPairs | None


@contextlib.contextmanager
def read_cuts(
    column_profile: ColumnProfile,
    options: IndexOptions,
    probes: Probes,
    may_be_empty: Flags | None = None,
    *,
    with_pairs: bool = False,
) -> Iterator[ReadCuts]:
    """Reads the column once, and persists the results until the block ends.

    Args:
        probes: the probes. For each probe, the step counts the locations that contain one of the
            probe's keys.
        may_be_empty: bool[n], whether queries can skip a location if the build finds no rows in the
            location. None if queries must read every location without rows.
        with_pairs: whether to collect pairs for hash maps, too; False for the shape ``sieve``.

    Raises:
        Py4JJavaError: Spark cannot read a file; the message names the file.
    """
    sample, encoder = column_profile.sample, column_profile.sample.encoder
    parts = parts_of(sample.rows) if with_pairs else None
    step = cut_tasks.read_column(
        encoder.of_bytes,
        sample.domain_sample,
        _cutting(column_profile, options),
        probes.intervals,
        parts,
    )
    hashes = ["hash"] if with_pairs and not encoder.exact else []
    values = value_columns(column_profile.values, encoder, "v", LOCATION, *hashes)
    lines = map_batches(values, step, cut_tasks.LINES)
    lines.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        shown = np.zeros(column_profile.n_files, np.bool_) if may_be_empty is None else may_be_empty
        seen = _seen(lines, column_profile, len(probes.intervals), shown)
        whole, pairs = seen.whole, None
        if parts is not None and whole is None:
            pairs = CollectedPairs(_members(lines, "pairs", *PACKED.names), parts)
        cuts, write_file = _cuts(lines, whole), column_profile.write_file
        if write_file is not None and 0 < seen.cuts[0] <= MOST and not isinstance(cuts, LocalRows):
            cuts = LocalRows(fetched(cuts), write_file)
        yield ReadCuts(cuts, seen, pairs)
    finally:
        lines.unpersist()


def _members(lines: Rows, kind: str, *names: str) -> Rows:
    """The output lines of one kind, as rows with the given fields."""
    if isinstance(lines, LocalRows):
        return lines.mapped(cut_tasks.members(kind, names))
    return lines.where(sf.col(kind).isNotNull()).select(*(f"{kind}.{name}" for name in names))


def _cuts(lines: Rows, whole: list[int] | None) -> Rows:
    """The cuts of the locations in `whole`, or of all locations if `whole` is None."""
    cuts = _members(lines, "file", "location", "cuts")
    if isinstance(cuts, LocalRows):
        return cuts.mapped(cut_tasks.with_cuts(whole))
    cuts = cuts.where(sf.col("cuts").isNotNull())
    if whole is None:
        return cuts
    return cuts.where(sf.col("location").isin(whole)) if whole else cuts.limit(0)


def _cutting(column_profile: ColumnProfile, options: IndexOptions) -> cut_tasks.Cutting:
    sample = column_profile.sample
    if options.every_key or sample.query_model is None:
        return cut_tasks.Cutting(column_profile.sizes)
    budget = column_profile.intervals_budget(options, options.shape)
    threshold = overprovisioned_threshold(column_profile.n_files, budget)
    if options.automatic:
        # The price assumes that an interval takes one byte. An interval really takes at least two
        # bytes, so the threshold removes no useful cut.
        threshold = max(threshold, column_profile.payback(options).price)
    return cut_tasks.Cutting(
        column_profile.sizes,
        sample.query_model,
        threshold * column_profile.location_bytes,
        budget,
        sample.shown,
    )


def _sums(lines: Rows, names: Sequence[str]) -> Iterable[Sequence[Any]]:
    """Yields a row for each location and each probe: number, summed counts and extreme codes."""
    if isinstance(lines, LocalRows):
        return cut_tasks.counts_of(lines.batches, names)
    grouped = lines.groupBy("file.location", "probe.number").agg(
        *(sf.sum(f"file.{name}") for name in names),
        *(sf.min("file.first"), sf.max("file.last")),
        *(sf.sum("probe.locations"), sf.sum("probe.bytes")),
    )
    sums: Iterable[Sequence[Any]] = grouped.collect()
    return sums


def _seen(lines: Rows, column_profile: ColumnProfile, n_probes: int, may_be_empty: Flags) -> Seen:
    """Adds up the counts of all tasks of the reading step."""
    n = column_profile.n_files
    names = ("rows", "nulls", "nans", "damaged", "n_cuts", "keys")
    counts = {name: np.zeros(n, np.int64) for name in names}
    least, greatest = np.full(n, GREATEST, np.int64), np.full(n, LEAST, np.int64)
    hits = np.zeros((2, n_probes), np.int64)
    for location, probe, *sums, low, high, locations, size in _sums(lines, names):
        if probe is not None:
            hits[:, probe] = min(locations, n), min(size, column_profile.table_bytes)
        elif location is not None:
            for name, total in zip(names, sums, strict=True):
                counts[name][location] += total
            if low is not None:
                least[location] = min(least[location], low)
                greatest[location] = max(greatest[location], high)
    read = counts["rows"]
    # Queries must always read a file if the build found no rows in the file, or read only some of
    # its rows. If the build read a file completely, queries can skip ranges that have no rows. For
    # a corrupt record, Spark returns different rows depending on a query's columns, so queries must
    # always read the record's file.
    owners = column_profile.owners
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    of_files, damaged, allowed = (
        np.add.reduceat(column, firsts) if len(firsts) else column
        for column in (read, counts["damaged"], may_be_empty.astype(np.int64))
    )
    unproven = ((of_files == 0) & (allowed == 0)) | (damaged > 0)
    if column_profile.counted is not None:
        unproven |= of_files != column_profile.counted
    partial = unproven[owners]
    cuts = (
        int(counts["n_cuts"][~partial].sum()),
        int(least[~partial].min(initial=GREATEST)),
        int(greatest[~partial].max(initial=LEAST)),
    )
    return Seen(
        read,
        counts["nulls"],
        counts["nans"],
        least,
        greatest,
        hits,
        partial,
        cuts,
        int(counts["keys"][~partial].sum()),
    )
