"""Sets of integers as closed intervals, many at once.

Both ends of an interval are in it, so that the least and the greatest 64-bit integer can be. A set
is an int64[k, 2] array of first and last; most functions want them ascending and apart, as `merge`
makes them. Sets of several owners, such as the keys of each file, lie in flat arrays in order of
owner and first.

Example: ``merge([[7, 9], [1, 3], [2, 5]])`` is ``[[1, 5], [7, 9]]``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Integers, Places


def merge(intervals: Integers, *, touching: bool = False) -> Integers:
    """The same integers as ascending intervals that do not overlap.

    Args:
        intervals: int64[k, 2] in any order; one whose first is above its last holds nothing.
        touching: make one of intervals without an integer between them, too.
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
    """Where each interval of the merged set begins: the places to reduce at.

    Args:
        first: int64[n], ascending for each owner.
        last: int64[n], not below `first`.
        owner: integers[n], ascending, not below 0; None: all are of one.
        touching: make one of intervals without an integer between them, too.

    Returns:
        intp[m], the first one 0 if there is any.
    """
    if owner is None:
        apart = _apart(first, np.maximum.accumulate(last), touching=touching)
    else:
        apart = _apart(first, _running_max(last, owner), touching=touching)
        apart |= owner[1:] != owner[:-1]
    return np.flatnonzero(np.append(True, apart)[: len(first)])


def _apart(first: Integers, reach: Integers, *, touching: bool) -> npt.NDArray[np.bool_]:
    """bool[n - 1]: which intervals lie above all before them."""
    apart = first[1:] > reach[:-1]
    if touching:
        # `first - 1` cannot wrap where it counts: there `first` is above another integer.
        apart &= first[1:] - 1 > reach[:-1]
    return apart


def _running_max(values: Integers, owner: npt.NDArray[np.integer]) -> Integers:
    """Greatest value so far of the same owner."""
    # Ranks fit above the owner's number in one integer, which the values would not.
    distinct, rank = np.unique(values, return_inverse=True)
    highest = np.maximum.accumulate(owner.astype(np.int64) * len(distinct) + rank)
    reach: Integers = distinct[highest % max(1, len(distinct))]
    return reach


def intersect(one: Integers, other: Integers) -> Integers:
    """The integers that are in both of two merged sets, as a merged set."""
    start, stop = meeting(other, one[:, 0], one[:, 1])
    stop = np.maximum(start, stop)
    left, right = np.repeat(np.arange(len(one)), stop - start), spelled_out(start, stop)
    both = np.empty((len(left), 2), np.int64)
    np.maximum(one[left, 0], other[right, 0], out=both[:, 0])
    np.minimum(one[left, 1], other[right, 1], out=both[:, 1])
    return both


def meeting(asked: Integers, first: Integers, last: Integers) -> tuple[Places, Places]:
    """For each of some intervals those of a merged set that meet it, as places ``start:stop``.

    Args:
        asked: int64[k, 2], the set.
        first: int64[n], the intervals' first integers.
        last: int64[n], their last ones.

    Returns:
        intp[n] each; none of the set meets an interval where start is not below stop.
    """
    start = np.searchsorted(asked[:, 1], first, side="left")
    return start, np.searchsorted(asked[:, 0], last, side="right")


def locate(
    first: Integers, last: Integers, values: Integers
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """The last interval of a merged set that begins at each value or below, and whether it has it.

    Args:
        first: int64[k], of the set.
        last: int64[k].
        values: int64[n].

    Returns:
        intp[n], -1 where none begins so low; bool[n].
    """
    place = np.searchsorted(first, values, side="right") - 1
    if len(first) == 0:
        return place, np.zeros(len(values), np.bool_)
    return place, (place >= 0) & (values <= last[place])


def spelled_out(begin: npt.NDArray[np.integer], end: npt.NDArray[np.integer]) -> Integers:
    """All numbers of the half-open ranges ``begin:end``, one range after another.

    Example: the ranges 3:5 and 8:10 expand to 3, 4, 8, 9.
    """
    sizes = end - begin
    skipped = begin - (np.cumsum(sizes) - sizes)
    numbers: Integers = np.arange(int(sizes.sum())) + np.repeat(skipped, sizes)
    return numbers
