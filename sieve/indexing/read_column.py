"""The reading step reads the whole column once to make cuts and count rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.indexing import cut_tasks
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.build_hash_map import CollectedPairs, parts_of
from sieve.indexing.column_profile import ColumnProfile
from sieve.indexing.hash_map_tasks import PACKED
from sieve.indexing.probes import Probes
from sieve.indexing.seen import Seen
from sieve.indexing.value_columns import encoded_bytes, hash_of_value
from sieve.metadata.options import IndexOptions
from sieve.segments.intervals import overprovisioned_threshold
from sieve.tables.table import LOCATION


@dataclass(frozen=True, slots=True, eq=False)
class ReadCuts:
    """The result of the reading step.

    Attributes:
        cuts: the cuts of all completely read locations.
        seen: the counts.
        pairs: the pairs for hash maps, or None if none were collected or a location was not read
            completely.
    """

    cuts: DataFrame
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
    """Reads the column once; the results are persisted until the block ends.

    Args:
        probes: the probes to count.
        may_be_empty: bool[n], locations that can rule out a query even if they have no rows; None
            for none.
        with_pairs: whether to collect pairs for hash maps, too; not allowed for the shape
            ``sieve``.

    Raises:
        Py4JJavaError: a file cannot be read; the message names the file.
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
    hashes = [hash_of_value().alias("hash")] if with_pairs and not encoder.exact else []
    values = column_profile.values.select(encoded_bytes(encoder).alias("v"), LOCATION, *hashes)
    lines = map_batches(values, step, cut_tasks.LINES)
    lines.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        shown = np.zeros(column_profile.n_files, np.bool_) if may_be_empty is None else may_be_empty
        seen = _seen(lines, column_profile, len(probes.intervals), shown)
        cuts = lines.where(sf.col("file.cuts").isNotNull()).select("file.location", "file.cuts")
        pairs = None if parts is None else CollectedPairs(_pairs(lines), parts)
        if (whole := seen.whole) is not None:
            cuts = cuts.where(sf.col("location").isin(whole)) if whole else cuts.limit(0)
            pairs = None
        yield ReadCuts(cuts, seen, pairs)
    finally:
        lines.unpersist()


def _pairs(lines: DataFrame) -> DataFrame:
    of_tasks = lines.where(sf.col("pairs").isNotNull())
    return of_tasks.select(*(f"pairs.{name}" for name in PACKED.names))


def _cutting(column_profile: ColumnProfile, options: IndexOptions) -> cut_tasks.Cutting:
    sample = column_profile.sample
    if options.every_key or sample.query_model is None:
        return cut_tasks.Cutting(column_profile.sizes)
    budget = column_profile.intervals_budget(options, options.shape)
    threshold = overprovisioned_threshold(column_profile.n_files, budget)
    if options.automatic:
        # The code assumes one byte per interval; an interval takes at least two bytes.
        threshold = max(threshold, column_profile.payback(options).price)
    return cut_tasks.Cutting(
        column_profile.sizes,
        sample.query_model,
        threshold * column_profile.location_bytes,
        budget,
        sample.shown,
    )


def _seen(
    lines: DataFrame, column_profile: ColumnProfile, n_probes: int, may_be_empty: Flags
) -> Seen:
    """Sums the reading step's counts over all tasks."""
    n = column_profile.n_files
    names = ("rows", "nulls", "nans", "damaged", "n_cuts", "keys")
    counts = {name: np.zeros(n, np.int64) for name in names}
    least, greatest = np.full(n, GREATEST, np.int64), np.full(n, LEAST, np.int64)
    hits = np.zeros((2, n_probes), np.int64)
    grouped = lines.groupBy("file.location", "probe.number").agg(
        *(sf.sum(f"file.{name}") for name in names),
        *(sf.min("file.first"), sf.max("file.last")),
        *(sf.sum("probe.locations"), sf.sum("probe.bytes")),
    )
    for location, probe, *sums, low, high, locations, size in grouped.collect():
        if probe is not None:
            hits[:, probe] = min(locations, n), min(size, column_profile.table_bytes)
        elif location is not None:
            for name, total in zip(names, sums, strict=True):
                counts[name][location] = total
            if low is not None:
                least[location], greatest[location] = low, high
    read = counts["rows"]
    # Queries must always read a file without rows, and a file that was read incompletely. A range
    # without rows can be skipped if its file was read completely. The rows of a corrupt record
    # depend on the columns that a query reads, so its file must be read, too.
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
