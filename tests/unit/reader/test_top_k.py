"""Tests which locations can contain one of the first rows of a query with ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sieve.arrays.dtypes import Codes, Counts
from sieve.metadata.file_ranges import whole_files
from sieve.predicate.parse_predicate import Or
from sieve.reader.extents import LocationEnds, extents
from sieve.reader.top_k import Order, needed

# Each row describes a location: least key, greatest key, rows with a key, NULLs, and NaNs. Location
# 3 has no keys.
LOCATIONS = [
    (0, 9, 10, 0, 0),
    (10, 19, 10, 2, 0),
    (15, 40, 5, 0, 3),
    (0, 0, 0, 4, 1),
    (20, 30, 6, 1, 0),
]
ALL = len(LOCATIONS)


def uncertain(low: Codes, high: Codes, locations: Counts) -> LocationEnds:
    """Makes one entry for each location.

    The ends of an entry may be no keys.
    """
    no = np.zeros(len(low), np.bool_)
    return LocationEnds(np.stack([low, high, low, high]), locations, no, no, no)


def needed_locations(
    rows: int,
    *,
    descending: bool = False,
    nulls: str = "last",
    ties: bool = True,
    groups: Sequence[int] = (0,) * ALL,
    unsure: Sequence[int] = (),
    one_value: bool = True,
) -> list[int] | None:
    """Returns the locations that can have one of the first `rows` rows; None if no bound exists."""
    low, high, keyed, null, nan = np.array(LOCATIONS, np.int64).T
    there = np.flatnonzero(keyed)
    ends = uncertain(low[there], high[there], there)
    found = extents(ends.falling() if descending else ends, keyed)
    counts = whole_files(keyed + null + nan, null, nan)
    order = Order(("x",), descending, nulls, rows, ties, Or(()))
    sure = ~np.isin(np.arange(ALL), unsure)
    flags = needed(order, found, counts, np.array(groups), sure, one_value=one_value)
    return None if flags is None else np.flatnonzero(flags).tolist()


@pytest.mark.parametrize(
    ("rows", "options", "locations"),
    [
        (1, {}, [0]),
        (10, {}, [0]),
        (11, {}, [0, 1, 2]),
        (20, {}, [0, 1, 2]),
        (21, {}, [0, 1, 2, 4]),
        # All locations together have 31 keys, 4 NaNs and 7 NULLs.
        (31, {}, [0, 1, 2, 4]),
        (32, {}, [0, 1, 2, 3, 4]),
        (42, {}, [0, 1, 2, 3, 4]),
        (43, {}, None),
        (35, {"nulls": "never"}, [0, 1, 2, 3, 4]),
        (36, {"nulls": "never"}, None),
        (7, {"nulls": "first"}, [1, 3, 4]),
        (8, {"nulls": "first"}, [0, 1, 3, 4]),
        (17, {"nulls": "first"}, [0, 1, 3, 4]),
        (18, {"nulls": "first"}, [0, 1, 2, 3, 4]),
        (4, {"descending": True}, [2, 3]),
        (5, {"descending": True}, [2, 3, 4]),
        (10, {"descending": True}, [2, 3, 4]),
        (11, {"descending": True}, [1, 2, 3, 4]),
        (15, {"descending": True}, [1, 2, 3, 4]),
        (16, {"descending": True}, [1, 2, 3, 4]),
        (25, {"descending": True}, [1, 2, 3, 4]),
        (26, {"descending": True}, [0, 1, 2, 3, 4]),
        (1, {"descending": True, "nulls": "first"}, [1, 3, 4]),
        (8, {"descending": True, "nulls": "first"}, [1, 2, 3, 4]),
    ],
)
def test_rows_are_counted_class_by_class(
    rows: int, options: dict[str, object], locations: list[int] | None
) -> None:
    """The count goes class by class (NULLs, NaNs, keys) until there are enough rows."""
    assert needed_locations(rows, **options) == locations  # type: ignore[arg-type]


def test_rows_that_may_be_missing_do_not_count() -> None:
    """A location with possibly deleted or hidden rows gives no bound, but a scan may need it."""
    assert needed_locations(10, unsure=[0]) == [0, 1, 2]
    assert needed_locations(10, unsure=[0, 1]) == [0, 1, 2, 4]
    assert needed_locations(4, descending=True, unsure=[3]) == [2, 3, 4]
    assert needed_locations(1, unsure=range(ALL)) is None
    assert needed_locations(5, nulls="first", unsure=[3]) == [0, 1, 3, 4]


def test_each_group_has_its_own_first_rows() -> None:
    """Each group of locations has its own bound.

    A location without a group gives no bound, and the scan does not skip it.
    """
    assert needed_locations(3, groups=[0, 1, 1, 1, 0]) == [0, 1, 2]
    assert needed_locations(3, groups=[0, 1, 0, 1, 1]) == [0, 1]
    assert needed_locations(3, groups=[-1, 0, 0, 0, 0]) == [0, 1, 2]
    assert needed_locations(11, groups=[0, 0, 1, 1, 1]) == [0, 1, 2, 4]
    assert needed_locations(3, groups=[-1] * ALL) is None


def test_a_group_with_fewer_rows_is_needed_whole() -> None:
    """If a group has fewer keys than LIMIT, a scan needs all locations of the group.

    For example, the MIN of a group is NULL if all its values are NULL (datafusion#23684).
    """
    assert needed_locations(2, nulls="never", groups=[0, 0, 0, 1, 0]) == [0, 3]
    assert needed_locations(7, nulls="never", groups=[0, 0, 0, 0, 1]) == [0, 4]


TIED = [(5, 5), (5, 9), (4, 6), (5, 5)]


@pytest.mark.parametrize(
    ("ties", "one_value", "locations"),
    [(False, True, [0, 2]), (True, True, [0, 1, 2, 3]), (False, False, [0, 1, 2, 3])],
)
def test_second_location_of_the_bound_is_not_needed(
    ties: bool, one_value: bool, locations: list[int]
) -> None:
    """A scan without ties needs only one of the locations whose least key is the bound.

    The bound of the query is the key 5, which one location certainly contains.
    """
    low, high = np.array(TIED, np.int64).T
    n = np.arange(len(TIED))
    found = extents(uncertain(low, high, n), np.ones(len(n), np.int64))
    counts = whole_files(np.ones(len(n), np.int64), n * 0, n * 0)
    order = Order(("x",), False, "never", 1, ties, Or(()))
    flags = needed(order, found, counts, n * 0, n >= 0, one_value=one_value)
    assert flags is not None
    assert np.flatnonzero(flags).tolist() == locations
