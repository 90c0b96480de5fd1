"""Tests which ranges a query must read if it has MIN, MAX, or ORDER BY with LIMIT."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.errors import CorruptError
from sieve.metadata.file_ranges import whole_files
from sieve.predicate.parse_predicate import Or
from sieve.reader.extents import LocationEnds, extents
from sieve.reader.file_numbering import NumberedVersions
from sieve.reader.flag_slices import gather
from sieve.reader.lru_cache import Cache
from sieve.reader.run_reader import Run
from sieve.reader.top_k import Order
from sieve.segments.blocks.format import CSR, Segment, encode_segment
from tests.built_index import CountingStore, map_row, write_run

ORDER = Order(("x",), descending=False, nulls="never", rows=1, ties=False, against=Or(()))


def needed(type_: str, groups: list[int], sure: list[bool]) -> list[int]:
    """Returns which of six ranges a query for MIN reads.

    Location 0 has the ranges 0 and 1; the locations 1, 2 and 3 have the ranges 2, 3 and 5.
    """
    low, high = np.array([5, 5, 4, 9]), np.array([6, 5, 9, 9])
    no, ones = np.zeros(4, np.bool_), np.ones(4, np.int64)
    ends = LocationEnds(np.stack([low, high, low, high]), np.arange(4), no, no, no)
    version: Any = SimpleNamespace(
        manifest=SimpleNamespace(id="v", format_name="parquet", type=type_),
        encoder=Encoder(type_),
        counts=lambda: whole_files(ones, ones * 0, ones * 0),
        extents=lambda descending: extents(ends, ones) if not descending else None,
        merged_slices=lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64)),
    )
    files: Any = SimpleNamespace(n=6, ordinals={"v": gather(np.array([0, 0, 1, 2, -1, 3]))})
    over = NumberedVersions((version,), files, partial=False)
    found = over.needed(ORDER, np.array(groups), np.array(sure))
    assert found is not None
    assert over.needed(dataclasses.replace(ORDER, descending=True), found * 1, found) is None
    return np.flatnonzero(found).tolist()


def test_range_is_read_if_its_location_is_needed() -> None:
    """A query reads a range if it needs the range's location, or if the range is in no version."""
    assert needed("bigint", [0] * 6, [True] * 6) == [2, 3, 4]
    assert needed("bigint", [0, 0, -1, 0, 0, 0], [True] * 6) == [0, 1, 2, 3, 4]


def test_a_location_counts_if_all_its_ranges_do() -> None:
    """A location gives no bound if any of its ranges can have deleted or hidden rows."""
    assert needed("bigint", [0] * 6, [True, False, False, True, True, True]) == [0, 1, 2, 3, 4]
    assert needed("bigint", [0] * 6, [True, True, False, True, True, True]) == [0, 1, 2, 3, 4]
    for first in (True, False):
        # One of the location's two ranges can have hidden rows.
        sure = [first, not first, False, False, True, True]
        assert needed("bigint", [0] * 6, sure) == [0, 1, 2, 3, 4, 5]
    sure = [True, True, False, False, True, True]
    assert needed("bigint", [0] * 6, sure) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("type_", ["float", "double", "string", "decimal(30,2)"])
def test_equal_codes_of_unequal_values_are_ties(type_: str) -> None:
    """If values such as 0.0 and -0.0 share a code, MIN reads all locations with the least code."""
    assert needed(type_, [0] * 6, [True] * 6) == [0, 1, 2, 3, 4]


def test_the_ends_of_a_run_are_read_without_its_maps(tmp_path: Path) -> None:
    """To compute extents, a reader needs the segments of a run, but not the hash maps.

    A run is damaged if it contains a location number beyond its count of locations.
    """
    block = CSR(np.array([0, 1]), np.array([3], np.int32), np.ones(1, np.int64))
    segment = ("sieve", 0, 9, 1, 1, 1, encode_segment(Segment(0, 9, 10, block)))
    files = [[segment], [map_row([-5, 7], [0, 1], 4)]]
    ref, store = write_run(tmp_path, files, Encoder("bigint"), 4), CountingStore()
    run = Run(store, f"file:{tmp_path}", ref, Cache(1 << 20))
    assert run.entry_bytes == ref.files[0].length < ref.bytes
    assert [ends.location.tolist() for ends in run.ends()] == [[3]]
    assert store.read_names == ["part-00000.parquet"]
    less = dataclasses.replace(ref, locations=3)
    with pytest.raises(CorruptError):
        list(Run(store, f"file:{tmp_path}", less, Cache(1 << 20)).ends())
