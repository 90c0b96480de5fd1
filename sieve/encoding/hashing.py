"""64-bit hashes of column values, the keys of a map: the same on executors and in the front end.

Where key codes are exact, a hash is a bijection of the code: different values have different
hashes. Other values (strings, binary, decimals of more than 18 digits) have the XXH64 of their
bytes, which is what Spark's function ``xxhash64`` of one column yields; two may share a hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

# Spark's constant in the `xxhash64` of its SQL.
_SPARK_SEED: Final = 42


def mixed(words: Hashes) -> Hashes:
    """A bijection of 64-bit words after which every bit depends on all bits.

    Source: the finaliser of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
    Generators", with Stafford's constants.
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def hash_codes(codes: npt.NDArray[np.int64]) -> Hashes:
    """Hashes of exact key codes, uint64[n] of int64[n]."""
    return mixed(np.ascontiguousarray(codes, np.int64).view(np.uint64))


def hash_bytes(values: Sequence[bytes]) -> Hashes:
    """Hashes of values by their bytes, uint64[n]; a decimal's are those of `decimal_bytes`."""
    # Only the front end calls this: executors hash in the JVM and need not have the package.
    import xxhash

    digest = xxhash.xxh64_intdigest
    return np.fromiter((digest(value, _SPARK_SEED) for value in values), np.uint64, len(values))


def decimal_bytes(unscaled: int) -> bytes:
    """The bytes that Spark hashes for a decimal of more than 18 digits: Java's big integer.

    The unscaled number in two's complement, most significant byte first, without spare bytes.
    """
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
