"""Grams: sequences of 4 bytes in texts, which are the keys of an index on substrings.

A gram consists of 4 consecutive bytes of a text in UTF-8. The key of a gram is these bytes, read as
a big-endian number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.arrays.dtypes import Flags
from sieve.index_key import GRAM_BYTES
from sieve.indexing.batches import Batches, together

_HELD: Final = 1 << 22
"""After buffering this many grams (16 MB), a task removes duplicates."""
_BATCH: Final = 1 << 16
_SLOT_BITS: Final = 18
_ODD: Final = np.uint32(2654435769)
"""Multiplier of the hash function: 2^32 divided by the golden ratio (Knuth, "The Art of Computer
Programming", volume 3)."""

Grams = npt.NDArray[np.int32]
_NONE: Final[Grams] = np.empty(0, np.int32)


def distinct_grams(location: str) -> Callable[[Batches], Batches]:
    """Returns a step that converts rows (binary text, location) to each location's distinct grams.

    For a location whose texts contain no gram, the step yields one row with NULL. For each input
    row with a negative location, the step also yields a row with NULL.

    Args:
        location: the name of the second column.
    """

    def run(batches: Batches) -> Batches:
        for columns in _by_location(batches):
            yield pa.RecordBatch.from_arrays([*columns], schema=schema_of(location))

    return run


def schema_of(location: str) -> pa.Schema:
    """The schema of the rows that `distinct_grams` yields."""
    return pa.schema([("v", pa.int32()), (location, pa.int32())])


def _by_location(batches: Batches) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yields the two output columns of `distinct_grams`: grams and locations."""
    location: int | None = None
    found = DistinctGrams()
    for batch in batches:
        for place, rows in together(batch, 1):
            if place < 0:
                yield _rows(pa.nulls(rows.num_rows, pa.int32()), place)
                continue
            if place != location:
                if location is not None:
                    yield from _of_location(found, location)
                location, found = place, DistinctGrams()
            found.add(rows.column(0))
    if location is not None:
        yield from _of_location(found, location)


class DistinctGrams:
    """Collects the distinct grams of texts.

    Most grams of a text occur in earlier texts, too. A small hash table, in which a later gram
    replaces an earlier one, finds most of these repetitions. The code sorts only the remaining
    grams. This takes 10 ns per byte of log lines; sorting all grams would take 37 ns.
    """

    def __init__(self) -> None:
        # At first, each slot contains a gram that belongs to another slot, so that no gram is
        # found.
        self._recent = np.zeros(1 << _SLOT_BITS, np.uint32)
        self._recent[0] = 1
        self._found: list[npt.NDArray[np.uint32]] = []
        self._held = 0

    def add(self, texts: pa.Array) -> None:
        """Adds the grams of texts, which are binary or large binary."""
        offsets_type = np.int64 if pa.types.is_large_binary(texts.type) else np.int32
        _, offsets, data = texts.buffers()
        if data is None or not len(texts):
            return
        ends = np.frombuffer(offsets, offsets_type)[texts.offset : texts.offset + len(texts) + 1]
        characters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
        n_grams = len(characters) - GRAM_BYTES + 1
        if n_grams <= 0:
            return
        # Omits sequences that extend from one text into the next.
        inside = np.ones(n_grams, np.bool_)
        last = (ends[1:] - ends[0])[:, None] - np.arange(1, GRAM_BYTES)
        inside[last[(last >= 0) & (last < n_grams)]] = False
        for start in range(min(GRAM_BYTES, n_grams)):
            end = start + (n_grams - start + GRAM_BYTES - 1) // GRAM_BYTES * GRAM_BYTES
            self._add(
                np.frombuffer(characters[start:end], ">u4").astype(np.uint32),
                inside[start::GRAM_BYTES],
            )

    def _add(self, grams: npt.NDArray[np.uint32], inside: Flags) -> None:
        slots = (grams * _ODD) >> np.uint32(32 - _SLOT_BITS)
        new = (self._recent[slots] != grams) & inside
        added = grams[new]
        self._recent[slots[new]] = added
        self._found.append(added)
        self._held += len(added)
        if self._held > _HELD:
            self._found, self._held = [_once(np.concatenate(self._found))], 0

    def sorted(self) -> Grams:
        """All distinct grams, ascending as signed numbers."""
        return _once(np.concatenate(self._found).view(np.int32)) if self._found else _NONE


_Numbers = TypeVar("_Numbers", np.int32, np.uint32)


def _once(grams: npt.NDArray[_Numbers]) -> npt.NDArray[_Numbers]:
    """Sorts grams in place and removes duplicates, faster than numpy's `unique`."""
    grams.sort()
    return grams[np.append(True, grams[1:] != grams[:-1])] if len(grams) else grams


def _of_location(found: DistinctGrams, location: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    grams = found.sorted()
    if not len(grams):
        yield _rows(pa.nulls(1, pa.int32()), location)
    for start in range(0, len(grams), _BATCH):
        yield _rows(pa.array(grams[start : start + _BATCH]), location)


def _rows(values: pa.Array, location: int) -> tuple[pa.Array, pa.Array]:
    return values, pa.array(np.full(len(values), location, np.int32))
