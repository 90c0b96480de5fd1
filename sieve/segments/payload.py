"""Payloads: decodes a segment of any shape, except a map, to entries."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from sieve.errors import UnsupportedError, corrupt_segment
from sieve.segments.blocks import format as blocks
from sieve.segments.entries import Ends, Entries
from sieve.segments.intervals import format as intervals

SHAPES: Final = (blocks.SHAPE_SIEVE, *intervals.CODINGS)
"""First bytes of the payloads that this release decodes."""
LAYOUT_VERSION: Final = 1
"""Second byte of every payload."""


def decode(payload: bytes) -> Entries:
    """Decodes the entries of a segment and validates every field of the layout.

    Raises:
        UnsupportedError: a later version of Sieve wrote the payload.
        CorruptError: Sieve cannot have made this payload.
    """
    entries: Entries = _shape(payload).entries(payload)
    return entries


def decode_ends(payload: bytes) -> Ends:
    """Decodes a segment to `Ends`; raises the same errors as `decode`."""
    ends: Ends = _shape(payload).ends(payload)
    return ends


def _shape(payload: bytes) -> ModuleType:
    """The module of a payload's shape."""
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
