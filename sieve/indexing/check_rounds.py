"""Check rounds: divide the look-ups of CHECK so that each part fits in the executors' memory.

Each round loads some run files and looks up the keys of one stretch of the domain. Together, the
stretches cover the whole domain. Therefore CHECK looks up every key, even a key outside the ranges
of all run files.
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
"""Maximum bytes of run files in a round. A larger file is a round of its own."""

_ALL: Final = (LEAST, GREATEST)


@dataclass(frozen=True, slots=True)
class Round:
    """The part of a run that one round loads, and the keys that the round looks up.

    Attributes:
        run: the run, restricted to the files that can hold keys of the round.
        codes: the range of key codes to look up; None to look up no key code.
        hashes: the range of hashes to look up in the run's maps, as signed numbers; None to look up
            no hash.
    """

    run: RunRef
    codes: Range | None
    hashes: Range | None


def rounds_of(run: RunRef, limit: int = ROUND_BYTES) -> list[Round]:
    """Divides a run into rounds; a run of at most `limit` bytes is a single round.

    A larger run has rounds by key codes, followed by rounds by hashes if the run has maps.
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
    """Groups files by the runs that hold the files' rows; yields each group's files and runs.

    For each run, the files that are only in this run form one group. All files that are in several
    runs form one more group. CHECK looks up this group in each run of the group's files.
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
    """Returns int64[n]: each file's ordinal in the run with the slots `begin` to `end`, or -1."""
    there = (places >= begin) & (places < end)
    ordinals: Counts = np.where(there, places - begin, -1).max(axis=1)
    return ordinals


def shared_rounds(runs: Sequence[RunRef], limit: int = ROUND_BYTES) -> list[list[Round]]:
    """Divides look-ups in several runs into rounds; a key is found if one run holds the key.

    In a round, all runs look up the keys of one stretch of the domain. A single run gets the rounds
    of `rounds_of`. Several runs never have maps. Without runs, there is one empty round.
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
    """Yields stretches that cover the domain, each with the run files that overlap the stretch."""
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
