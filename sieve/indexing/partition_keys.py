"""Partition keys: numbers by which Spark puts each stretch of a domain into its own partition.

`DataFrame.repartition(n, column)` hashes the column. If the numbers of two stretches were 0 and 1,
both stretches could be in the same partition, and a core would be idle. `repartitionByRange` would
read the rows once more to sample them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

_SEED: Final = 42


def partition_keys(n: int) -> npt.NDArray[np.int32]:
    """Returns n numbers: Spark's hash partitioning puts number k into partition k.

    Spark's `HashPartitioning` applies MurmurHash3 (32 bits) to an INT.
    """
    keys = np.full(n, -1, np.int32)
    start = 0
    while (keys < 0).any():
        numbers = np.arange(start, start + 8 * n, dtype=np.int32)
        partition = _murmur3(numbers).view(np.int32) % n
        # If several numbers belong to a partition, numpy stores the last one. The code reverses
        # their order, so that numpy stores the first.
        missing = keys[partition] < 0
        keys[partition[missing][::-1]] = numbers[missing][::-1]
        start += 8 * n
    return keys


def _murmur3(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    mixed = _rotated(numbers.view(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    state = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(4)  # The length of an INT in bytes.
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


def _rotated(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
