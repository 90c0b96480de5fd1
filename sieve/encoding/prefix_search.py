"""A vectorised binary search for byte strings among split points, in words of eight bytes.

The points form a trie in which each level compares one 8-byte word. The search takes all values of
an Arrow array through one level at a time. Only values whose word equals a point's word go on to
the next level. Therefore most values need only one numpy search.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sieve.arrays.dtypes import Offsets, Words
from sieve.encoding.word_reader import WordReader


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """One level of the trie: the words of the points at one offset.

    A node groups the points with the same bytes before the offset. A node has the slots
    `lows[node]` to `highs[node]`. The first slot of a node is for values below all words of the
    node.

    Attributes:
        words: uint64[s], ascending within a node.
        counts: int64[s], number of points at or below a value that is between this slot and the
            next.
        children: int64[s], node of the next level for values that equal this word, or -1.
    """

    words: Words
    counts: Offsets
    children: Offsets
    lows: Offsets
    highs: Offsets


class PointSearch:
    """A search structure over ascending points that do not end in a zero byte.

    Because points do not end in a zero byte, padding with zeros does not change the order of values
    and points. Hence the search can compare whole words beyond the end of a value.
    """

    def __init__(self, points: Sequence[bytes]) -> None:
        self._levels: list[_Level] = []
        nodes = [(0, len(points))]
        while nodes:
            level, nodes = _level(points, nodes, 8 * len(self._levels))
            self._levels.append(level)

    def count(self, reader: WordReader, places: Offsets) -> Offsets:
        """Returns int64[n]: the number of points at or below each value."""
        root = self._levels[0]
        words = reader.at(places, reader.ends).byteswap()
        slots = np.searchsorted(root.words[1:], words, side="right")
        counts = root.counts[slots]
        level, rows = root, np.arange(len(words))
        for offset, below in zip(itertools.count(8, 8), self._levels[1:]):
            down = np.flatnonzero(level.children[slots] >= 0)
            down = down[level.words[slots[down]] == words[down]]
            if not len(down):
                break
            nodes, rows, level = level.children[slots[down]], rows[down], below
            words = reader.at(places[rows] + offset, reader.ends[rows]).byteswap()
            slots = _last_not_greater(level, nodes, words)
            counts[rows] = level.counts[slots]
        return counts


def _level(
    points: Sequence[bytes], nodes: Sequence[tuple[int, int]], offset: int
) -> tuple[_Level, list[tuple[int, int]]]:
    """Returns one level of the trie, and the nodes of the next level."""
    words: list[int] = []
    counts: list[int] = []
    children: list[int] = []
    lows: list[int] = []
    deeper: list[tuple[int, int]] = []
    for first, stop in nodes:
        lows.append(len(words))
        words.append(0)
        counts.append(first)
        children.append(-1)
        by_word = itertools.groupby(
            range(first, stop),
            lambda k: int.from_bytes(points[k][offset : offset + 8].ljust(8, b"\0"), "big"),
        )
        for word, group in by_word:
            members = list(group)
            # Only the first point of a node can end at this level, because two such points would be
            # equal after padding.
            ending = len(points[members[0]]) <= offset + 8
            words.append(word)
            counts.append(members[-1] + 1)
            children.append(len(deeper) if len(members) > ending else -1)
            if len(members) > ending:
                deeper.append((members[0] + ending, members[-1] + 1))
    highs = [*lows[1:], len(words)]
    level = _Level(
        np.array(words, np.uint64),
        *(np.array(column, np.int64) for column in (counts, children, lows, highs)),
    )
    return level, deeper


def _last_not_greater(level: _Level, nodes: Offsets, words: Words) -> Offsets:
    """Returns for each value the last slot whose word is at most the value, else the first slot."""
    low, high = level.lows[nodes], level.highs[nodes]
    for _ in range(int((high - low).max() - 1).bit_length()):
        middle = (low + high) >> 1
        found = level.words[middle] <= words
        low = np.where(found, middle, low)
        high = np.where(found, high, middle)
    return low
