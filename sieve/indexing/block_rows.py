"""Makes rows of a run of the shape `sieve`: sorts the keys of all locations, and makes blocks."""

from __future__ import annotations

import math
from typing import Final

from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.block_tasks import PAIRS, segment_pairs, unpack_pairs
from sieve.indexing.local_rows import LocalRows, Rows
from sieve.reader.run_file import SCHEMA

_PAIRS_PER_TASK: Final = 4_000_000
_HOLES_PER_SPAN: Final = 100
"""A segment ends at each gap that is longer than the keys' span divided by this number (Tong et
al., PVLDB 2023)."""


def block_rows(cuts: Rows, n: int, span: int, error: int) -> Rows:
    """Returns the rows of a run of the shape `sieve`.

    Args:
        cuts: n packed cuts, each of which has one key.
        span: the difference between the greatest and the least key code.
        error: error bound of the shrinking cone algorithm.
    """
    partitions = math.ceil(n / _PAIRS_PER_TASK)
    ordered = map_batches(cuts, unpack_pairs, PAIRS)
    if partitions <= 1 or isinstance(ordered, LocalRows):
        ordered = ordered.coalesce(1)
    else:
        ordered = ordered.repartitionByRange(partitions, "code")
    ordered = ordered.sortWithinPartitions("code", "location")
    return map_batches(ordered, segment_pairs(error, max(1, span // _HOLES_PER_SPAN)), SCHEMA)
