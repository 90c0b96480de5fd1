"""A vectorised binary search for byte strings among split points, eight bytes at a time.

The split points form a trie; level k of the trie compares the 8-byte word at offset 8 * k. The
search compares all values of an Arrow array at one level before it goes on to the next level. A
value needs a search at the next level only if its word equals the word of a point. So for most
values, the search ends at the first level.
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
    """One level of the trie: the 8-byte words of the points at one offset.

    The points with the same bytes before the offset form a node of the level. A node has the slots
    `lows[node]` to `highs[node] - 1`. The first slot of a node is for values below all words of the
    node. Every further slot is for one word.

    Attributes:
        words: uint64[s], the 8-byte word of each slot, ascending within a node.
        counts: int64[s], how many points are at or below a value between the slot's word and the
            next slot's word.
        children: int64[s], the node of the next level for values with the slot's word; -1 if the
            search ends at this level.
    """

    words: Words
    counts: Offsets
    children: Offsets
    lows: Offsets
    highs: Offsets


class PointSearch:
    """A search structure over ascending split points; a point must not end in a zero byte.

    Because no point ends in a zero byte, zeros appended to a value do not move the value past a
    point. Hence the search can compare whole words, even where a value ends inside an 8-byte word.
    """

    def __init__(self, points: Sequence[bytes]) -> None:
        self._levels: list[_Level] = []
        nodes = [(0, len(points))]
        while nodes:
            level, nodes = _level(points, nodes, 8 * len(self._levels))
            self._levels.append(level)

    def count(self, reader: WordReader, places: Offsets) -> Offsets:
        """Returns int64[n], the number of split points at or below each value."""
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
    """Builds one level of the trie; also returns the next level's nodes, as ranges of points."""
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
            # Of the points with the same word, only the first can end at this level: two points
            # that end here would be equal after padding.
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
    """Returns the last slot whose word is not greater than the value's word, in each value's node.

    If all words of the node are greater than the value's word, the result is the node's first slot.
    """
    low, high = level.lows[nodes], level.highs[nodes]
    for _ in range(int((high - low).max() - 1).bit_length()):
        middle = (low + high) >> 1
        found = level.words[middle] <= words
        low = np.where(found, middle, low)
        high = np.where(found, high, middle)
    return low
