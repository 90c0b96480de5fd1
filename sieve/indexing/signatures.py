"""Signatures of a substring index: decides whether they pay back, and adds them to a run.

A key of a substring index has 4 bytes. Texts of random digits, such as UUIDs and IP addresses, have
nearly all keys of 4 digits in each location, so their keys select no locations. A signature tells
which longer sequences a location's texts contain. The decision compares the bytes of the signatures
with the bytes that queries for a text of `TEXT_BYTES` bytes read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.arrays.dtypes import Counts, Numbers
from sieve.index_key import GRAM_BYTES, LONG_GRAM_BYTES
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.column_profile import Profile
from sieve.indexing.partition_keys import partition_keys
from sieve.indexing.signature_tasks import (
    CUT,
    DENSITIES,
    cut_signatures,
    densities,
    write_signatures,
)
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import SIGNED, Expected
from sieve.reader.run_file import SCHEMA
from sieve.segments.signatures import LEAST_BITS, MOST_BITS, PIECES
from sieve.segments.stopping_rule import MOST_OF_TABLE, Payback
from sieve.tables.table import LOCATION, SIGNATURE

TEXT_BYTES: Final = 12
"""Sieve judges a substring index by queries for texts of this length, such as the last part of a
UUID."""
_BITS: Final = TEXT_BYTES - LONG_GRAM_BYTES + 1
"""The number of long grams in a text of `TEXT_BYTES` bytes."""
_FILE_BYTES: Final = 1 << 20
"""A run has about one file for each of these bytes of signatures, and at most `PIECES` files."""


def signature_bits(sizes: Counts, options: IndexOptions) -> int:
    """The binary logarithm of the size of a signature in bits; 0 if the build makes no signatures.

    The signature of a typical location takes the part of the location that an index may take. In a
    mean with the sizes as weights, small locations count little; their signatures are folded.

    Args:
        sizes: int64[n], the size of each location in bytes.
    """
    weights = sizes.astype(np.float64)
    most = 8 * float(np.sum(weights**2)) / max(1.0, float(weights.sum())) / MOST_OF_TABLE
    if options.shape != "auto" or most < 1 << LEAST_BITS:
        return 0
    return min(MOST_BITS, int(math.log2(most)))


@dataclass(frozen=True, slots=True)
class Signing:
    """The signatures that pay back.

    Attributes:
        most: the maximum size of a signature in bytes.
        bytes: the size of all signatures.
        expected: the expected reads of a query for one bit.
    """

    most: int
    bytes: int
    expected: Expected


class Signatures:
    """The signatures of a column's locations.

    Args:
        frame: rows with the columns `LOCATION` and `SIGNATURE`.
        profile: the sizes of the run's locations.
    """

    def __init__(self, frame: DataFrame, profile: Profile, options: IndexOptions) -> None:
        self._rows = frame.where(sf.col(SIGNATURE).isNotNull()).select(LOCATION, SIGNATURE)
        self._profile, self._options = profile, options

    def size(self, index_bytes: int, expected: Sequence[Expected], keys: Counts) -> Signing | None:
        """Chooses the size of the signatures; returns None if signatures do not pay back.

        Args:
            index_bytes: the size of the run without signatures.
            expected: the expected reads of queries for one key.
            keys: int64[n], the number of keys of each location.
        """
        found = map_batches(self._rows, densities, DENSITIES).collect()
        if not found or all(one.kind != "present" for one in expected):
            return None
        profile = self._profile
        places, sizes, bits = (np.array([row[k] for row in found], np.int64) for k in range(3))
        (keyed,) = (one.files for one in expected if one.kind == "present")
        n = max(1, profile.n_files)
        # A location with twice as many keys as another has a given key twice as probably.
        has_key = np.minimum(1.0, keyed * keys[places] / max(1, int(keys.sum())))
        by_keys = has_key ** (TEXT_BYTES - GRAM_BYTES + 1)
        # The sample, and thus the index, can be of a part of the domain; signatures are not.
        share = profile.sample.share
        payback = Payback(n, profile.table_bytes, self._options.payback)
        left = (profile.budget(self._options) - index_bytes) / share
        best, least = None, payback.cost(0, {"present": 1 + float(by_keys.sum())})
        most = int(sizes.max())
        while 8 * most >= 1 << LEAST_BITS:
            bytes_ = int(np.minimum(sizes, most).sum())
            dense = folded_density(sizes, bits, most)
            by_bits = dense**_BITS
            alike = np.minimum(by_keys, by_bits)
            cost = payback.cost(bytes_, {"present": 1 + float(alike.sum())})
            if cost < least and bytes_ <= left:
                best, least = (most, bytes_, float(by_bits.sum() / n) ** (1 / _BITS)), cost
            most //= 2
        if best is None:
            return None
        most, bytes_, set_ = best
        reads = Expected(SIGNED, set_ * n, 0.0, n, set_ * profile.table_bytes, 0.0)
        return Signing(most, bytes_, reads)

    def rows(self, most: int) -> DataFrame:
        """The signature segments, as rows of a run.

        Args:
            most: the maximum size of a signature in bytes.
        """
        n = self._profile.n_files
        files = min(PIECES, math.ceil(n * most / _FILE_BYTES))
        cut = map_batches(self._rows, cut_signatures(most), CUT)
        number = sf.floor(sf.col("piece") * files / PIECES).cast("int")
        key = sf.get(sf.lit(partition_keys(files).tolist()), number)
        joined = cut.repartition(files, key) if files > 1 else cut.coalesce(1)
        return map_batches(joined, write_signatures(n), SCHEMA)


def folded_density(sizes: Counts, bits: Counts, most: int) -> Numbers:
    """The share of set bits in each signature, after larger signatures are folded to `most` bytes.

    Args:
        sizes: int64[n], the size of each signature in bytes.
        bits: int64[n], the number of set bits in each signature.
    """
    folds = np.maximum(1, sizes // most)
    density: Numbers = 1 - (1 - bits / (8 * sizes)) ** folds
    return density
