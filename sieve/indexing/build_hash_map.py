"""Hash maps of a run: map each key's hash to its locations, one map per range of hashes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.errors import InvalidInputError
from sieve.indexing import hash_map_tasks
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.column_sample import Sample
from sieve.indexing.partition_keys import partition_keys
from sieve.indexing.seen import Seen
from sieve.indexing.value_columns import encoded_bytes, hash_of_value
from sieve.reader.run_file import SCHEMA
from sieve.segments.hash_map.size import estimate_bytes, fingerprint_for
from sieve.tables.table import LOCATION

_PAIRS_PER_MAP = 1 << 19
"""One task builds one map. With this many keys, the arrays fit in a core's cache during peeling.
Compared with four times as many keys, peeling takes a third less time, and a map takes 1.4 % more
bytes."""
# If files share keys, the size of a map is an estimate.
_CAUTION = 0.97
_WORTHWHILE_BITS = 6
"""With this many fingerprint bits, a look-up of an absent key reads 1.6 % of a file on average."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectedPairs:
    """Pairs of hash and location that the reading step has collected.

    Attributes:
        rows: rows of `hash_map_tasks.PACKED`, persisted by the reading step.
        parts: number of ranges of hashes by which the pairs are packed.
    """

    rows: DataFrame
    parts: int


class SharedPairs:
    """Pairs of each key's hash and location, shared by all maps of a block.

    Args:
        values: the column as ``v``, and `LOCATION`.
        sample: a sample of the column.
        seen: the counts of the column's locations.
        collected: the pairs; with None, the first map reads the column to collect them.
    """

    def __init__(
        self, values: DataFrame, sample: Sample, seen: Seen, collected: CollectedPairs | None
    ) -> None:
        self._n_files = len(seen.rows)
        self._counts: tuple[int, int] | None = None
        self._persists = collected is None
        if collected is not None:
            self._pairs, self._parts = collected.rows, collected.parts
            return
        self._parts = parts_of(int(seen.rows.sum()))
        # Passing bytes from Spark to Python costs time, so Spark passes only the part needed.
        encoder = sample.encoder
        key = sf.col("v") if encoder.exact else hash_of_value()
        zoomed = not encoder.exact and sample.domain_sample is not None
        coded = [encoded_bytes(encoder).alias("v")] if zoomed else []
        keys = values.select(key.alias("key"), LOCATION, *coded)
        proves = ~seen.partial if seen.partial.any() else None
        step = hash_map_tasks.pack_hashes(
            encoder.of_bytes, sample.domain_sample, self._parts, proves
        )
        self._pairs = map_batches(keys, step, hash_map_tasks.PACKED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._persists and self._counts is not None:
            self._pairs.unpersist()

    def map_rows(self, budget: int, worth: float = math.inf) -> DataFrame:
        """Returns the rows of a run file, one per map, to be computed before the block ends.

        Args:
            budget: maximum bytes of all maps.
            worth: the bytes of fingerprints that are justified if a query for an absent key reads
                one location less.

        Raises:
            InvalidInputError: the budget is too small for a map of so many keys; the message names
                a budget that suffices.
        """
        pairs, parts = self._pairs, self._parts
        if self._counts is None:
            if self._persists:
                pairs.persist(StorageLevel.MEMORY_AND_DISK)
            self._counts = _counts(pairs)
        maps, bits = fit_maps(*self._counts, self._n_files, budget, worth)
        # After the pairs are counted, the number of maps can only fall: neighbouring ranges then
        # share a map.
        joined = sf.floor(sf.col("part") * maps / parts).cast("int")
        number = sf.get(sf.lit(partition_keys(maps).tolist()), joined)
        ranges = pairs.withColumn("part", number).drop("smallest")
        ranges = ranges.repartition(maps, "part") if maps > 1 else ranges.coalesce(1)
        step = hash_map_tasks.write_maps(self._n_files, bits)
        return map_batches(ranges, step, SCHEMA)


def parts_of(rows: int) -> int:
    """The number of ranges of hashes by which pairs are packed: the maximum number of maps."""
    return max(1, math.ceil(rows / _PAIRS_PER_MAP))


def _counts(pairs: DataFrame) -> tuple[int, int]:
    """Number of pairs of key and location, and approximate number of distinct keys."""
    merge, schema = hash_map_tasks.merge_sketches, hash_map_tasks.SKETCHES
    of_tasks = pairs.select("pairs", "smallest").repartition(1)
    n, smallest = map_batches(of_tasks, merge, schema).first()
    return n, hash_map_tasks.distinct(n, smallest)


def fit_maps(
    pairs: int, keys: int, n_files: int, budget: int, worth: float = math.inf
) -> tuple[int, int]:
    """The number of maps and the bits per fingerprint that fit the budget.

    Without a fingerprint, a look-up of an absent key returns the locations of another key. Each
    fingerprint bit halves the probability of these wrong locations. An absent key counts as at
    least one location.

    Args:
        pairs: number of pairs of key and location.
        keys: approximate number of distinct keys.
        n_files: number of locations.
        budget: maximum bytes of all maps.
        worth: the bytes of fingerprints that are justified if a query for an absent key reads one
            location less. With infinity, only the budget limits the fingerprints.

    Raises:
        InvalidInputError: the budget is too small for a map of so many keys; the message names a
            budget that suffices.
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
            f"a map of {keys} keys takes about {needed} bytes and the budget leaves it {budget}; "
            f"say OPTIONS (shape = 'map', budget = '{math.ceil(needed * 1.1 / 1024)}KB') or choose "
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
