"""Shapes of a segment behind one small interface: plan, price, emit, decode."""

from sieve.prices import choose_price, prices_for
from sieve.shapes.layout import Entries, decode
from sieve.shapes.planning import SEGMENT_OVERHEAD, Plan, Segment, fitted, plan

__all__ = [
    "SEGMENT_OVERHEAD",
    "Entries",
    "Plan",
    "Segment",
    "choose_price",
    "decode",
    "fitted",
    "plan",
    "prices_for",
]
