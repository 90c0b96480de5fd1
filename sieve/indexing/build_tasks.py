"""Stretches: ranges of key codes that together cover the domain; one task writes each stretch."""

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
"""The approximate number of cuts in a stretch. One task writes a stretch to one run file."""


def stretches_of(n: int, query_model: QueryModel) -> int:
    """Returns the number of stretches for n cuts; each contains at least one sampled key."""
    return min(math.ceil(n / CUTS_PER_TASK), len(query_model.codes))


def run_files(n: int, sample: Sample) -> int:
    """Returns how many run files a whole column needs if its sampled part has n cuts."""
    return math.ceil(n / sample.share / CUTS_PER_TASK)


def in_stretches(cuts: Rows, query_model: QueryModel, stretches: int) -> Rows:
    """Splits cuts at the borders of stretches; all pieces of a stretch are adjacent rows."""
    places = np.arange(1, stretches) * len(query_model.codes) // stretches
    borders = query_model.codes[places]
    pieces = map_batches(cuts, segment_tasks.split_cuts(borders), segment_tasks.PIECES)
    if stretches <= 1 or isinstance(pieces, LocalRows):
        pieces = pieces.coalesce(1)
    else:
        pieces = pieces.repartition(stretches, "stretch")
    return pieces.sortWithinPartitions("stretch")
