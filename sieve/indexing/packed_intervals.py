"""Packed cuts: many intervals as one binary value of a row.

Spark receives, caches, shuffles and returns rows at a cost for each, and a cut is small.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

import numpy as np

from sieve.segments.intervals import Intervals

_CUT: Final = np.dtype(
    [("first", "<i8"), ("last", "<i8"), ("location", "<i4"), ("keys", "<i8"), ("rows", "<i8")]
)


def pack(intervals: Intervals) -> bytes:
    """36 bytes for each interval."""
    packed = np.empty(len(intervals), _CUT)
    for field in fields(Intervals):
        packed[field.name] = getattr(intervals, field.name)
    return packed.tobytes()


def unpack(values: Iterable[bytes]) -> Intervals:
    """The intervals of several values, one after another."""
    packed = np.frombuffer(b"".join(values), _CUT)
    return Intervals(*(np.ascontiguousarray(packed[field.name]) for field in fields(Intervals)))
