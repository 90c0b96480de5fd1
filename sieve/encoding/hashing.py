"""64-bit hashes of column values for hash maps; executors and the front end compute equal hashes.

If a column's key codes are exact, a bijection computes the hash from the code, so different values
have different hashes. For strings, binary and decimals of more than 18 digits, the hash is the
XXH64 hash of the value's bytes, as in Spark's function ``xxhash64``. Two different values can have
the same XXH64 hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Hashes

# The seed of Spark SQL's function `xxhash64`.
_SPARK_SEED: Final = 42


def mixed(words: Hashes) -> Hashes:
    """Mixes the bits of each 64-bit word by a bijection: each output bit depends on all input bits.

    Source: the finaliser of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
    Generators", with Stafford's constants.
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def hash_codes(codes: npt.NDArray[np.int64]) -> Hashes:
    """Returns the hashes, uint64[n], of exact key codes, int64[n]."""
    return mixed(np.ascontiguousarray(codes, np.int64).view(np.uint64))


def hash_bytes(values: Sequence[bytes]) -> Hashes:
    """Returns the XXH64 hashes of values given as bytes, uint64[n].

    For decimals, the bytes are the results of `decimal_bytes`.
    """
    # Only the front end needs the package xxhash: executors compute these hashes in the JVM.
    import xxhash

    digest = xxhash.xxh64_intdigest
    return np.fromiter((digest(value, _SPARK_SEED) for value in values), np.uint64, len(values))


def decimal_bytes(unscaled: int) -> bytes:
    """Returns the bytes that Spark hashes for a decimal of more than 18 digits.

    Spark hashes the unscaled number in two's complement, big-endian and as short as possible, as in
    a Java BigInteger.
    """
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
