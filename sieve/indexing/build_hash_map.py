"""Hash maps of a run: each map finds the locations of keys whose hashes are in one range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from pyspark import StorageLevel
from pyspark.sql import functions as sf

from sieve.errors import InvalidInputError
from sieve.indexing import hash_map_tasks
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.column_sample import Sample
from sieve.indexing.local_rows import LocalRows, Rows
from sieve.indexing.partition_keys import partition_keys
from sieve.indexing.seen import Seen
from sieve.indexing.value_columns import value_columns
from sieve.reader.run_file import SCHEMA
from sieve.segments.hash_map.fingerprint_bits import estimate_bytes, fingerprint_for
from sieve.tables.table import LOCATION

_PAIRS_PER_MAP = 1 << 19
"""Number of pairs in a map, which one task builds. With this number of pairs, the arrays of the
construction ("peeling") fit into a core's cache. Compared with four times as many pairs, peeling
takes a third less time, and the maps have 1.4 % more bytes."""
# If keys are in several files, a map can become larger than estimated. So the build plans maps for
# only this share of the budget.
_CAUTION = 0.97
_WORTHWHILE_BITS = 6
"""If fingerprints have this many bits, a query for an absent key reads 1.6 % of a file on
average."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectedPairs:
    """The pairs of hash and location that the reading step has collected.

    Attributes:
        rows: rows of `hash_map_tasks.PACKED`, which the reading step has persisted.
        parts: number of hash ranges by which the pairs are grouped.
    """

    rows: Rows
    parts: int


class SharedPairs:
    """The pairs of key hash and location from which a build makes runs with hash maps.

    Args:
        values: all rows, with the columns ``v`` (the indexed column) and `LOCATION`; see
            `value_columns`.
        sample: a sample of the column.
        seen: the counts of the reading step.
        collected: the pairs that the reading step has collected. If None, the first call of
            `map_rows` reads the column.
    """

    def __init__(
        self, values: Rows, sample: Sample, seen: Seen, collected: CollectedPairs | None
    ) -> None:
        self._values, self._sample, self._seen = values, sample, seen
        self._collected = collected
        self._pairs: Rows | None = None
        self._counts = (0, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pairs is not None and self._collected is None:
            self._pairs.unpersist()

    def _packed(self) -> CollectedPairs:
        """Returns the pairs of the reading step.

        If the reading step collected no pairs, the method reads the column again.
        """
        if self._collected is not None:
            return self._collected
        sample, seen = self._sample, self._seen
        parts = parts_of(int(seen.rows.sum()))
        # The transfer of rows from Spark to Python takes time, so Spark passes only the needed
        # columns.
        encoder = sample.encoder
        zoomed = not encoder.exact and sample.domain_sample is not None
        names = ["v" if encoder.exact else "hash", LOCATION, *(["v"] if zoomed else [])]
        proves = ~seen.partial if seen.partial.any() else None
        step = hash_map_tasks.pack_hashes(encoder.of_bytes, sample.domain_sample, parts, proves)
        keys = value_columns(self._values, encoder, *names)
        pairs = map_batches(keys, step, hash_map_tasks.PACKED)
        return CollectedPairs(pairs.persist(StorageLevel.MEMORY_AND_DISK), parts)

    def map_rows(self, budget: int, worth: float = math.inf) -> Rows:
        """Returns a run's rows, one for each map. The rows are valid until the `with` block ends.

        Args:
            budget: maximum size of all maps together, in bytes.
            worth: the number of bytes that fingerprints may take if they save each query for an
                absent key one location.

        Raises:
            InvalidInputError: the budget is too small for the number of keys. The message names a
                budget that is large enough.
        """
        if self._pairs is None:
            packed = self._packed()
            self._pairs, self._parts = packed.rows, packed.parts
            self._counts = _counts(packed.rows)
        pairs, n_files = self._pairs, len(self._seen.rows)
        maps, bits = fit_maps(*self._counts, n_files, budget, worth)
        step = hash_map_tasks.write_maps(n_files, bits)
        if isinstance(pairs, LocalRows):
            return map_batches(pairs, step, SCHEMA)
        # If there are fewer maps than hash ranges, a map contains several neighbouring ranges.
        joined = sf.floor(sf.col("part") * maps / self._parts).cast("int")
        number = sf.get(sf.lit(partition_keys(maps).tolist()), joined)
        ranges = pairs.withColumn("part", number).drop("smallest")
        ranges = ranges.repartition(maps, "part") if maps > 1 else ranges.coalesce(1)
        return map_batches(ranges, step, SCHEMA)


def parts_of(rows: int) -> int:
    """Returns the number of hash ranges for pairs; a run has at most this many hash maps."""
    return max(1, math.ceil(rows / _PAIRS_PER_MAP))


def _counts(pairs: Rows) -> tuple[int, int]:
    """Returns the number of pairs of key and location, and the approximate number of keys."""
    merge, schema = hash_map_tasks.merge_sketches, hash_map_tasks.SKETCHES
    of_tasks = pairs.select("pairs", "smallest").repartition(1)
    ((n, smallest),) = map_batches(of_tasks, merge, schema).collect()
    return n, hash_map_tasks.distinct(n, smallest)


def fit_maps(
    pairs: int, keys: int, n_files: int, budget: int, worth: float = math.inf
) -> tuple[int, int]:
    """Returns the number of maps, and the number of bits per fingerprint that the budget allows.

    If a map has no fingerprints, a look-up of an absent key returns the locations of some other
    key. Each fingerprint bit halves the probability that a look-up of an absent key returns
    locations. The cost model assumes that a query for an absent key reads at least one location.

    Args:
        pairs: number of pairs of key and location.
        keys: approximate number of distinct keys.
        n_files: number of locations.
        budget: maximum size of all maps together, in bytes.
        worth: the number of bytes that fingerprints may take if they save each query for an absent
            key one location. If ``worth`` is infinite, only the budget limits the fingerprints.

    Raises:
        InvalidInputError: the budget is too small for the number of keys. The message names a
            budget that is large enough.
    """
    parts = max(1, math.ceil(pairs / _PAIRS_PER_MAP))
    keys = min(keys, pairs)
    shared = min(keys, pairs - keys)
    each = (math.ceil(keys / parts), n_files)
    lists = (math.ceil(shared / parts), math.ceil((pairs - keys + shared) / parts))
    bits = fingerprint_for(int(_CAUTION * budget) // parts, *each, *lists)
    if bits is None:
        needed = parts * estimate_bytes(*each, _WORTHWHILE_BITS, *lists)
        raise InvalidInputError(
            "SIEVE_BUDGET_TOO_SMALL",
            f"a map of {keys} keys takes about {needed} bytes, and the budget leaves {budget} for "
            f"it; use OPTIONS (shape = 'map', budget = '{math.ceil(needed * 1.1 / 1024)}KB') or "
            "another shape",
        )
    if worth < math.inf:
        read = pairs / max(1, keys)
        costs = [
            parts * estimate_bytes(*each, some, *lists) + worth * max(1.0, read / (1 << some))
            for some in range(bits + 1)
        ]
        bits = costs.index(min(costs))
    return parts, bits
