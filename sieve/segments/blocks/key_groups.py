"""Groups sorted (key code, location) pairs by key: each distinct key gets its set of locations.

The pairs arrive in chunks, and the pairs of one key can be in several chunks. Example: the pairs
``(7, 0) (7, 2) (9, 0)`` become two keys: 7 with the locations {0, 2}, and 9 with the location {0}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sieve.errors import InvalidInputError

# A chunk of n pairs consists of codes int64[n] (ascending), locations int32[n], and rows int64[n].
# `rows` tells how many rows of the pair's location have the pair's code.
Chunk: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64]]

# Chunks are concatenated until they have at least this number of pairs, to amortise the overhead of
# numpy calls.
_BATCH: Final = 1 << 18
_LOCATION_BITS: Final = 31
_LOCATION_MASK: Final = (1 << _LOCATION_BITS) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Distinct keys, ascending, and the locations of each key.

    Attributes:
        codes: int64[k], the code of each key.
        offsets: int64[k + 1]; the pairs of key i begin at position ``offsets[i] - offsets[0]``.
        locations: int32[m], the location of each pair. The locations of a key are distinct and
            ascend.
        rows: int64[m], the number of rows of each pair.
    """

    codes: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    locations: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64]

    def part(self, start: int, stop: int) -> Keys:
        """Returns keys number `start` to `stop` - 1, as views of the same arrays."""
        low, high = self.offsets[[start, stop]] - self.offsets[0]
        return Keys(
            self.codes[start:stop],
            self.offsets[start : stop + 1],
            self.locations[low:high],
            self.rows[low:high],
        )


def distinct_keys(chunks: Iterable[Chunk]) -> Iterator[Keys]:
    """Yields the distinct keys of sorted pairs, in batches; no key is in two batches.

    The pairs of one key can be in several chunks. If a pair occurs several times, the function adds
    up the pair's row counts. The function needs memory for a batch, a chunk, and all locations of
    one key.

    Raises:
        InvalidInputError: the codes do not ascend, a location is negative, or a pair has no rows.
    """
    buffered: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if len(chunk[0]) == 0:
            continue
        _check(chunk, buffered[-1] if buffered else None)
        buffered.append(chunk)
        size += len(chunk[0])
        if size < _BATCH:
            continue
        codes, locations, rows = _joined(buffered)
        # The next chunk may contain more pairs of the last key.
        whole = int(np.searchsorted(codes, codes[-1], side="left"))
        if whole:
            yield _gathered(codes[:whole], locations[:whole], rows[:whole])
        rest = _gathered(codes[whole:], locations[whole:], rows[whole:])
        buffered = [(np.repeat(rest.codes, len(rest.rows)), rest.locations, rest.rows)]
        # The pairs of the last key stay buffered, but do not count in `size`. If these pairs
        # counted, a key with very many locations would be grouped again for every chunk.
        size = 0
    if buffered:
        yield _gathered(*_joined(buffered))


def add_up(
    groups: npt.NDArray[np.int64], locations: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> Chunk:
    """Returns the distinct (group, location) pairs, sorted, with the sum of each pair's rows.

    Groups must be numbers in [0, 2^32).
    """
    pairs = (groups << _LOCATION_BITS) | locations
    rises = pairs[1:] > pairs[:-1]
    if np.all(rises):
        return groups, locations, rows
    if np.any(pairs[1:] < pairs[:-1]):
        order = np.argsort(pairs)
        pairs, rows = pairs[order], rows[order]
        rises = pairs[1:] > pairs[:-1]
    starts = np.concatenate([[0], np.flatnonzero(rises) + 1])
    pairs = pairs[starts]
    return (
        pairs >> _LOCATION_BITS,
        (pairs & _LOCATION_MASK).astype(np.int32),
        np.add.reduceat(rows, starts),
    )


def _gathered(
    codes: npt.NDArray[np.int64], locations: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> Keys:
    fresh = np.concatenate([[True], codes[1:] != codes[:-1]])
    ranks, locations, rows = add_up(np.cumsum(fresh), locations, rows)
    starts = np.concatenate([[0], np.flatnonzero(ranks[1:] != ranks[:-1]) + 1, [len(ranks)]])
    return Keys(codes[fresh], starts, locations, rows)


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    codes, locations, rows = zip(*chunks, strict=True)
    return np.concatenate(codes), np.concatenate(locations), np.concatenate(rows)


def _check(chunk: Chunk, before: Chunk | None) -> None:
    codes, locations, rows = chunk
    if not len(codes) == len(locations) == len(rows):
        raise _refused("are not of one length")
    if np.any(codes[1:] < codes[:-1]) or (before is not None and codes[0] < before[0][-1]):
        raise _refused("do not come in order of their keys")
    if locations.min() < 0 or rows.min() < 1:
        raise _refused("have a negative location or no rows")


def _refused(problem: str) -> InvalidInputError:
    return InvalidInputError("SIEVE_BAD_PAIRS", f"the pairs to index {problem}; build again")
