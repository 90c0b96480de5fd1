"""Packed cuts: many intervals, stored as one binary value of a row.

Spark takes time for each row, so one row contains many small cuts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

import numpy as np

from sieve.segments.intervals.cut_gaps import Intervals

_CUT: Final = np.dtype(
    [("first", "<i8"), ("last", "<i8"), ("location", "<i4"), ("keys", "<i8"), ("rows", "<i8")]
)


def pack(intervals: Intervals) -> bytes:
    """Packs each interval into 36 bytes."""
    packed = np.empty(len(intervals), _CUT)
    for field in fields(Intervals):
        packed[field.name] = getattr(intervals, field.name)
    return packed.tobytes()


def unpack(values: Iterable[bytes]) -> Intervals:
    """Unpacks the intervals of several values, one after another."""
    packed = np.frombuffer(b"".join(values), _CUT)
    return Intervals(*(np.ascontiguousarray(packed[field.name]) for field in fields(Intervals)))
