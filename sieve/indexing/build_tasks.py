"""The number of tasks of a build: one for each stretch of the domain."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sieve.indexing import segment_tasks
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.column_sample import Sample
from sieve.indexing.local_rows import LocalRows, Rows
from sieve.segments.query_model import QueryModel

CUTS_PER_TASK: Final = 500_000
"""The number of cuts in a stretch of the domain, which one task writes to one run file."""


def stretches_of(n: int, query_model: QueryModel) -> int:
    """Number of stretches for n cuts; a stretch has at least one key of the sample."""
    return min(math.ceil(n / CUTS_PER_TASK), len(query_model.codes))


def run_files(n: int, sample: Sample) -> int:
    """Number of run files for a column with this many cuts in its sample."""
    return math.ceil(n / sample.share / CUTS_PER_TASK)


def in_stretches(cuts: Rows, query_model: QueryModel, stretches: int) -> Rows:
    """Clips cuts to stretches of the domain; each stretch is contiguous and in one partition."""
    places = np.arange(1, stretches) * len(query_model.codes) // stretches
    borders = query_model.codes[places]
    pieces = map_batches(cuts, segment_tasks.split_cuts(borders), segment_tasks.PIECES)
    if stretches <= 1 or isinstance(pieces, LocalRows):
        pieces = pieces.coalesce(1)
    else:
        pieces = pieces.repartition(stretches, "stretch")
    return pieces.sortWithinPartitions("stretch")
