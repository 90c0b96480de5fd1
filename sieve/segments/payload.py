"""Payloads: decodes the bytes of segments of all shapes except `map` to entries."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from sieve.errors import UnsupportedError, corrupt_segment
from sieve.segments.blocks import format as blocks
from sieve.segments.entries import Ends, Entries
from sieve.segments.intervals import format as intervals

SHAPES: Final = (blocks.SHAPE_SIEVE, *intervals.CODINGS)
"""The shapes that `decode` accepts. The first byte of a payload is the payload's shape."""
LAYOUT_VERSION: Final = 1
"""The layout version, which is the second byte of every payload."""


def decode(payload: bytes) -> Entries:
    """Decodes a segment to its entries, and validates every field of the payload.

    Raises:
        UnsupportedError: a newer release of Sieve wrote the payload.
        CorruptError: the payload is damaged; Sieve cannot have written it.
    """
    entries: Entries = _shape(payload).entries(payload)
    return entries


def decode_ends(payload: bytes) -> Ends:
    """Decodes a segment to `Ends`; raises the same errors as `decode`."""
    ends: Ends = _shape(payload).ends(payload)
    return ends


def _shape(payload: bytes) -> ModuleType:
    """Returns the module that decodes the shape of a payload."""
    if len(payload) < 2:
        raise corrupt_segment("is too short")
    shape, version = payload[0], payload[1]
    if shape > max(SHAPES) or version > LAYOUT_VERSION:
        raise UnsupportedError(
            "SIEVE_VERSION_TOO_NEW",
            f"a segment has shape {shape}, layout {version}; upgrade Sieve or REFRESH the index",
        )
    if shape not in SHAPES or version != LAYOUT_VERSION:
        raise corrupt_segment(f"claims shape {shape}, layout {version}")
    return blocks if shape == blocks.SHAPE_SIEVE else intervals
