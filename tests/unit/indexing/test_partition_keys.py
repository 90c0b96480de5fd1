"""Tests partition keys: numbers that Spark's hash partitioning moves to given partitions."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.indexing.partition_keys import _murmur3, partition_keys

# These are results of SELECT hash(id) on Spark 4.1, where `id` is an INT.
HASHES = {
    0: 933211791, 1: -559580957, 2: 1765031574, 41: -1080649125, 1000003: 45861451, -1: -1604776387,
    -77: 771921660, 2147483647: 133916647, -2147483648: 723455942,
}  # fmt: skip


def test_numbers_hash_as_spark_does() -> None:
    """`_murmur3` returns the same hashes as Spark, even for the least and the greatest int."""
    numbers = np.array(list(HASHES), np.int32)
    assert _murmur3(numbers).view(np.int32).tolist() == list(HASHES.values())


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 1000])
def test_each_partition_gets_one_number(n: int) -> None:
    """Partition key i is the smallest number that Spark moves to partition i."""
    keys = partition_keys(n)
    assert keys.dtype == np.int32
    assert (_murmur3(keys).view(np.int32) % n).tolist() == list(range(n))
    below = np.arange(keys.max(), dtype=np.int32)
    places = _murmur3(below).view(np.int32) % n
    for place in range(min(n, 20)):
        assert not (places[: keys[place]] == place).any()
