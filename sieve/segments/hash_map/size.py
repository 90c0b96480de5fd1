"""Estimates the bytes of a map segment before its build, to choose fingerprints for a budget.

A key takes about 1.13 cells of (fingerprint bits + value bits). Each fingerprint bit halves the
number of files that a query for an absent key reads. Therefore a build uses the widest fingerprint
that fits the budget.
"""

from __future__ import annotations

import math
from typing import Final

from sieve.arrays.bit_packing import ARRAY_HEAD_BYTES, EXCEPTION_BYTES
from sieve.segments.hash_map.format import CHECK_BYTES, HEAD
from sieve.segments.hash_map.fuse_function import Layout
from sieve.segments.hash_map.lookup import value_bits

MOST_WORTHWHILE: Final = 16
"""The number of fingerprint bits beyond which queries for absent keys save nothing measurable."""


def estimate_bytes(
    n_keys: int, n_locations: int, fingerprint_bits: int, n_lists: int = 0, postings: int = 0
) -> int:
    """Estimates the bytes of a map: exactly for the first attempt's cells, roughly for the lists.

    Args:
        n_keys: distinct hashes.
        n_locations: number of locations of the run.
        n_lists: number of distinct sets of two locations or more. The number of keys in several
            locations is a safe upper bound, but can lead to more bits per cell than needed.
        postings: number of locations in all these sets.
    """
    width = fingerprint_bits + value_bits(n_locations, n_lists)
    cells = (Layout.of(n_keys).n_cells * width + 7) // 8
    bits = 0.0
    if n_lists:
        size = postings / n_lists
        bits += n_lists * (_bits_each(n_locations / n_lists) + _bits_each(max(size - 2, 0)))
        widest = (n_locations - 1).bit_length()
        bits += (postings - n_lists) * min(_bits_each(n_locations / size), widest)
    return HEAD.size + cells + 3 * ARRAY_HEAD_BYTES + math.ceil(bits / 8) + CHECK_BYTES


def fingerprint_for(
    budget: int, n_keys: int, n_locations: int, n_lists: int = 0, postings: int = 0
) -> int | None:
    """The most fingerprint bits, up to MOST_WORTHWHILE, that fit a budget in bytes.

    The result is None if no map fits the budget. Even with 0 bits, a query for an indexed key reads
    only the key's locations. A query for an absent key then reads an arbitrary location.
    """
    return next(
        (
            bits
            for bits in range(MOST_WORTHWHILE, -1, -1)
            if estimate_bytes(n_keys, n_locations, bits, n_lists, postings) <= budget
        ),
        None,
    )


def _bits_each(mean: float) -> float:
    """Estimates the mean bits per packed number, for numbers with a given mean and no limit."""
    # The numbers are distributed geometrically, like gaps between random places. Numbers of 2^bits
    # or more are stored in full.
    again = mean / (1 + mean)
    return min(bits + 8 * EXCEPTION_BYTES * again ** (1 << bits) for bits in range(33))
