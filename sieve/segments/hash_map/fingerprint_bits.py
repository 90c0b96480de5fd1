"""Estimates a map segment's size before its build, to choose the bits per fingerprint for a budget.

A key takes about 1.13 cells, and a cell consists of fingerprint bits and value bits. Each
fingerprint bit halves the number of files that a query for an absent key reads. Therefore a build
uses as many fingerprint bits as fit the budget.
"""

from __future__ import annotations

import math
from typing import Final

from sieve.arrays.bit_packing import ARRAY_HEAD_BYTES, EXCEPTION_BYTES
from sieve.segments.hash_map.format import CHECK_BYTES, HEAD
from sieve.segments.hash_map.fuse_function import Layout
from sieve.segments.hash_map.lookup import value_bits

MOST_WORTHWHILE: Final = 16
"""The maximum number of fingerprint bits. With further bits, queries for absent keys would not read
measurably less."""


def estimate_bytes(
    n_keys: int, n_locations: int, fingerprint_bits: int, n_lists: int = 0, postings: int = 0
) -> int:
    """Estimates the size of a map in bytes.

    The size of the cells is exact if the first attempt to construct them succeeds. The size of the
    posting lists is a rough estimate.

    Args:
        n_keys: number of distinct hashes.
        n_locations: number of locations of the run.
        n_lists: number of distinct posting lists, each of two locations or more. As an upper bound,
            callers can pass the number of keys that are in several locations. With the upper bound,
            the estimate may assume too many bits per cell.
        postings: total number of locations in all posting lists.
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
    """Returns the most fingerprint bits, up to MOST_WORTHWHILE, that fit a budget in bytes.

    Returns None if no map fits the budget. With 0 fingerprint bits, a query for an indexed key
    still reads only the key's locations. But a query for an absent key reads the locations of an
    arbitrary value.
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
    """Estimates how many bits a packed number takes on average, given the mean of the numbers."""
    # The numbers are assumed to be distributed geometrically, like gaps between random positions.
    # Numbers that need more than the packed bits are stored as exceptions.
    again = mean / (1 + mean)
    return min(bits + 8 * EXCEPTION_BYTES * again ** (1 << bits) for bits in range(33))
