"""Grams: sequences of 4 bytes in texts, which are the keys of an index on substrings.

A gram consists of 4 consecutive bytes of a text in UTF-8. The key of a gram is these bytes, read as
a big-endian number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.index_key import GRAM_BYTES
from sieve.indexing.batches import Batches, together

_HELD: Final = 1 << 22
"""After buffering this many grams (16 MB), a task removes duplicates."""
_BATCH: Final = 1 << 16

Grams = npt.NDArray[np.int32]


def distinct_grams(location: str) -> Callable[[Batches], Batches]:
    """Returns a step that converts rows of binary text and location to distinct grams per location.

    The step yields one row with NULL for a location whose texts contain no gram, and for each row
    with a negative location.

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
    found: list[Grams] = []
    held = 0
    for batch in batches:
        for place, rows in together(batch, 1):
            if place < 0:
                yield _rows(pa.nulls(rows.num_rows, pa.int32()), place)
                continue
            if place != location:
                if location is not None:
                    yield from _of_location(found, location)
                location, found, held = place, [], 0
            found.append(grams_of(rows.column(0)))
            held += len(found[-1])
            if held > _HELD:
                found = [_merged(found)]
                held = 0
    if location is not None:
        yield from _of_location(found, location)


def grams_of(texts: pa.Array) -> Grams:
    """The distinct grams of texts, ascending."""
    offsets_type = np.int64 if pa.types.is_large_binary(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    none = np.empty(0, np.int32)
    if data is None or not len(texts):
        return none
    ends = np.frombuffer(offsets, offsets_type)[texts.offset : texts.offset + len(texts) + 1]
    characters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    if len(characters) < GRAM_BYTES:
        return none
    words = np.lib.stride_tricks.sliding_window_view(characters, GRAM_BYTES)
    grams = np.ascontiguousarray(words).view(">i4")[:, 0].astype(np.int32)
    # Removes sequences that extend from one text into the next.
    begins = np.ones(len(grams), np.bool_)
    last = (ends[1:] - ends[0])[:, None] - np.arange(1, GRAM_BYTES)
    begins[last[(last >= 0) & (last < len(grams))]] = False
    return _once(grams[begins])


def _once(grams: Grams) -> Grams:
    """Sorts grams in place and removes duplicates, faster than numpy's `unique`."""
    grams.sort()
    return grams[np.append(True, grams[1:] != grams[:-1])] if len(grams) else grams


def _merged(found: list[Grams]) -> Grams:
    return _once(np.concatenate(found)) if found else np.empty(0, np.int32)


def _of_location(found: list[Grams], location: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    grams = _merged(found)
    if not len(grams):
        yield _rows(pa.nulls(1, pa.int32()), location)
    for start in range(0, len(grams), _BATCH):
        yield _rows(pa.array(grams[start : start + _BATCH]), location)


def _rows(values: pa.Array, location: int) -> tuple[pa.Array, pa.Array]:
    return values, pa.array(np.full(len(values), location, np.int32))
