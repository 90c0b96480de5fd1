"""Check rounds: divide the look-ups of CHECK into parts that fit into executors' memory.

In each round, executors load some run files and look up the keys in one range of key codes.
Together, the rounds include all key codes, so CHECK also looks up keys that no run file covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Counts
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.metadata.records import Range, RunFileRef, RunRef

ROUND_BYTES: Final = 128 << 20
"""Maximum size of a round's run files in bytes. A file that is larger has a round of its own."""

_ALL: Final = (LEAST, GREATEST)


@dataclass(frozen=True, slots=True)
class Round:
    """The run files that executors load in one round of CHECK, and the keys to look up in them.

    Attributes:
        run: the run, restricted to the files that can contain keys of the round.
        codes: the range of key codes that the round looks up; None if it looks up no key code.
        hashes: the range of hashes, as signed numbers, that the round looks up in the run's hash
            maps; None if it looks up no hash.
    """

    run: RunRef
    codes: Range | None
    hashes: Range | None


def rounds_of(run: RunRef, limit: int = ROUND_BYTES) -> list[Round]:
    """Divides a run into rounds. If the run has at most `limit` bytes, there is one round.

    For a larger run, the first rounds look up key codes. If the run has hash maps, further rounds
    look up hashes.
    """
    has_maps = any(file.hashes for file in run.files)
    if run.bytes <= limit:
        return [Round(run, _ALL, _ALL if has_maps else None)]
    by_code = [file.codes for file in run.files]
    rounds = [Round(part, span, None) for part, span in _parts(run, by_code, limit)]
    if has_maps:
        by_hash = [file.hashes for file in run.files]
        rounds += [Round(part, None, span) for part, span in _parts(run, by_hash, limit)]
    return rounds


def by_runs(runs: Counts) -> Iterator[tuple[list[int], list[int]]]:
    """Groups files by the runs that contain their rows; yields each group's files and runs.

    For each run, the files that are only in this run form one group. All files that are in several
    runs form one more group. CHECK looks up the keys of this group in each of its runs.
    """
    several = (runs >= 0).sum(axis=1) > 1
    only = runs.max(axis=1, initial=-1)
    for number in np.unique(only[~several]).tolist():
        own = np.flatnonzero((only == number) & ~several)
        yield own.tolist(), [number] if number >= 0 else []
    if several.any():
        every = np.unique(runs[several])
        yield np.flatnonzero(several).tolist(), every[every >= 0].tolist()


def ordinals_in(places: Counts, begin: int, end: int) -> Counts:
    """Returns each file's ordinal in the run with the slots `begin` to `end` - 1.

    The ordinal of a file outside the run is -1.
    """
    there = (places >= begin) & (places < end)
    ordinals: Counts = np.where(there, places - begin, -1).max(axis=1)
    return ordinals


def shared_rounds(runs: Sequence[RunRef], limit: int = ROUND_BYTES) -> list[list[Round]]:
    """Divides look-ups into rounds if the rows of files are in several runs.

    A round looks up the same key codes in all runs that contain rows of the files. For each key, at
    least one of the files' runs must find the location. A single run gets the rounds of
    `rounds_of`. If there are several runs, none of them has hash maps. If there is no run, the only
    round is empty.
    """
    if not runs:
        return [[]]
    limit //= len(runs)
    rounds = [[one] for one in rounds_of(runs[0], limit)]
    for run in runs[1:]:
        rounds = [
            [*(replace(one, codes=both) for one in held), replace(other, codes=both)]
            for held in rounds
            for other in rounds_of(run, limit)
            if (both := _common(held[0].codes, other.codes)) is not None
        ]
    return rounds


def _common(one: Range | None, other: Range | None) -> Range | None:
    if one is None or other is None:
        return None
    first, last = max(one[0], other[0]), min(one[1], other[1])
    return (first, last) if first <= last else None


def _parts(
    run: RunRef, ranges: Sequence[tuple[Range, ...]], limit: int
) -> Iterator[tuple[RunRef, Range]]:
    """Yields ranges that together include all key codes, and the files that overlap each range."""
    begins = _begins(run.files, ranges, limit)
    for first, last in zip(begins, [*(b - 1 for b in begins[1:]), GREATEST], strict=True):
        files = [
            file
            for file, some in zip(run.files, ranges, strict=True)
            if any(low <= last and first <= high for low, high in some)
        ]
        yield replace(run, files=tuple(files)), (first, last)


def _begins(
    files: Sequence[RunFileRef], ranges: Sequence[tuple[Range, ...]], limit: int
) -> list[int]:
    spans = sorted((low, number) for number, some in enumerate(ranges) for low, _ in some)
    begins, held, size = {LEAST}, set[int](), 0
    for low, number in spans:
        if held and number not in held and size + files[number].length > limit:
            begins.add(low)
            held, size = set(), 0
        if number not in held:
            held.add(number)
            size += files[number].length
    return sorted(begins)
