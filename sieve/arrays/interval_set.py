"""Operations on sets of integers, each stored as an array of closed intervals.

Both ends of an interval are inclusive, so an interval can contain the least and the greatest 64-bit
integer. A set of k intervals is an int64[k, 2] array: each row has an interval's first and last
integer. Most functions need a *merged* set: ascending intervals without overlap, as `merge` returns
them. Flat arrays can contain the sets of several owners, such as the files of a table, sorted by
owner and first integer.

Example: ``merge([[7, 9], [1, 3], [2, 5]])`` is ``[[1, 5], [7, 9]]``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Integers, Places


def merge(intervals: Integers, *, touching: bool = False) -> Integers:
    """Returns the same integers as ascending intervals that do not overlap.

    Args:
        intervals: int64[k, 2] in any order; an interval is empty if its first integer is above its
            last integer.
        touching: whether to merge also adjacent intervals, which have no integer between them.
    """
    intervals = intervals[intervals[:, 0] <= intervals[:, 1]]
    if _apart(intervals[:, 0], intervals[:, 1], touching=touching).all():
        return intervals
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    begin = starts(intervals[:, 0], intervals[:, 1], touching=touching)
    last = np.maximum.reduceat(intervals[:, 1], begin)
    return np.stack([intervals[begin, 0], last], axis=1)


def starts(
    first: Integers,
    last: Integers,
    owner: npt.NDArray[np.integer] | None = None,
    *,
    touching: bool = False,
) -> Places:
    """Returns the position of the first input interval in each merged interval, for ``reduceat``.

    Args:
        first: int64[n], the first integer of each interval, ascending within each owner.
        last: int64[n], the last integer of each interval, at or above its first integer.
        owner: integers[n], the owner of each interval, ascending, 0 or more. If None, all intervals
            belong to the same owner.
        touching: whether to merge also adjacent intervals, which have no integer between them.

    Returns:
        intp[m], the position of the first input interval of each merged interval.
    """
    if owner is None:
        apart = _apart(first, np.maximum.accumulate(last), touching=touching)
    else:
        apart = _apart(first, _running_max(last, owner), touching=touching)
        apart |= owner[1:] != owner[:-1]
    return np.flatnonzero(np.append(True, apart)[: len(first)])


def _apart(first: Integers, reach: Integers, *, touching: bool) -> npt.NDArray[np.bool_]:
    """For each interval after the first, returns whether all earlier intervals end before it."""
    apart = first[1:] > reach[:-1]
    if touching:
        # `first - 1` wraps around only if `first` is the least integer. The result for the least
        # integer is False anyway, because it is never above `reach`.
        apart &= first[1:] - 1 > reach[:-1]
    return apart


def _running_max(values: Integers, owner: npt.NDArray[np.integer]) -> Integers:
    """Returns, for each position, the greatest value of the same owner up to this position."""
    # An owner's number and a value do not fit into one int64. An owner's number and the rank of a
    # value do fit.
    distinct, rank = np.unique(values, return_inverse=True)
    highest = np.maximum.accumulate(owner.astype(np.int64) * len(distinct) + rank)
    reach: Integers = distinct[highest % max(1, len(distinct))]
    return reach


def intersect(one: Integers, other: Integers) -> Integers:
    """Returns the integers that two merged sets have in common, as a merged set."""
    start, stop = meeting(other, one[:, 0], one[:, 1])
    stop = np.maximum(start, stop)
    left, right = np.repeat(np.arange(len(one)), stop - start), spelled_out(start, stop)
    both = np.empty((len(left), 2), np.int64)
    np.maximum(one[left, 0], other[right, 0], out=both[:, 0])
    np.minimum(one[left, 1], other[right, 1], out=both[:, 1])
    return both


def meeting(wanted: Integers, first: Integers, last: Integers) -> tuple[Places, Places]:
    """Finds the intervals of a merged set that overlap each given interval: ``set[start:stop]``.

    Args:
        wanted: int64[k, 2], a merged set.
        first: int64[n], first integer of each given interval.
        last: int64[n], last integer of each given interval.

    Returns:
        Two arrays of positions in the set, start and stop, intp[n] each. If start is not below
        stop, no interval of the set overlaps the given interval.
    """
    start = np.searchsorted(wanted[:, 1], first, side="left")
    return start, np.searchsorted(wanted[:, 0], last, side="right")


def locate(
    first: Integers, last: Integers, values: Integers
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Finds, for each value, the last interval of a merged set that begins at or below the value.

    Args:
        first: int64[k], first integer of each interval of the set.
        last: int64[k], last integer of each interval of the set.
        values: int64[n], the values to locate.

    Returns:
        Two arrays. The first array, intp[n], contains the position of each value's interval; -1 if
        all intervals begin above the value. The second array, bool[n], tells whether the found
        interval contains the value.
    """
    place = np.searchsorted(first, values, side="right") - 1
    if len(first) == 0:
        return place, np.zeros(len(values), np.bool_)
    return place, (place >= 0) & (values <= last[place])


def spelled_out(begin: npt.NDArray[np.integer], end: npt.NDArray[np.integer]) -> Integers:
    """Concatenates the numbers of the half-open ranges ``begin:end``.

    Example: the ranges 3:5 and 8:10 expand to 3, 4, 8, 9.
    """
    sizes = end - begin
    skipped = begin - (np.cumsum(sizes) - sizes)
    numbers: Integers = np.arange(int(sizes.sum())) + np.repeat(skipped, sizes)
    return numbers
