"""Probes: queries drawn from the sample, to measure expected reads of an index at build time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Counts, Hashes
from sieve.encoding.hashing import hash_codes
from sieve.indexing.column_sample import Sample
from sieve.metadata.records import Expected
from sieve.reader.run_reader import Run
from sieve.segments.hash_map.size import fingerprint_for
from sieve.segments.query_model import SHORT_RANGE
from sieve.segments.stopping_rule import KINDS

EACH: Final = 400
"""Probes per kind: the standard error of their mean is about a twentieth of their spread."""
# If intervals read at most this many times the minimum, a map has nothing to save.
_CLOSE: Final = 1.01


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """The probe queries.

    Attributes:
        intervals: int64[k, 2], key codes from first to last: keys that occur, weighted by rows;
            then keys anywhere in the domain; then ranges of 0.05 % of it.
        kinds: int64[k], index of each in `KINDS`.
        hashes: uint64[k], of the keys; unused for ranges.
    """

    intervals: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    hashes: Hashes


def make_probes(sample: Sample) -> Probes:
    """Draws probes from the key distribution of a sample; none if there is no key."""
    query_model = sample.query_model
    if query_model is None:
        none = np.empty(0, np.int64)
        return Probes(none.reshape(0, 2), none, none.view(np.uint64))
    random = np.random.default_rng(1)
    low, high = int(query_model.codes[0]), int(query_model.codes[-1])
    drawn = random.integers(0, len(sample.codes), EACH)
    present = sample.codes[drawn]
    anywhere = random.integers(low, high, EACH, np.int64, endpoint=True)
    begin = random.choice(query_model.codes, EACH)
    room = np.int64(high).view(np.uint64) - begin.view(np.uint64)
    length = np.minimum(room, np.uint64((high - low) * min(1.0, SHORT_RANGE / query_model.length)))
    end = (begin.view(np.uint64) + length).view(np.int64)
    return Probes(
        np.stack(
            [np.concatenate([present, anywhere, begin]), np.concatenate([present, anywhere, end])],
            axis=1,
        ),
        np.repeat(np.arange(len(KINDS)), EACH),
        # An absent key gets the hash of any other value.
        np.concatenate([sample.hashes[drawn], hash_codes(anywhere), hash_codes(begin)]),
    )


def expectations(
    probes: Probes, run: Run, hits: Counts, least: Counts, greatest: Counts
) -> Iterator[Expected]:
    """Expected reads of each kind of query: with the index, at minimum, and by min/max.

    Args:
        probes: k queries.
        run: over n locations.
        hits: int64[k], locations that truly hold a key of each probe.
        least: int64[n], least key code of each location; above `greatest` for one without keys.
        greatest: int64[n].
    """
    read = _read(probes, run, len(least))
    first, last = probes.intervals.T
    some = least <= greatest
    by_ends = np.searchsorted(np.sort(least[some]), last, side="right")
    by_ends -= np.searchsorted(np.sort(greatest[some]), first, side="left")
    for number, kind in enumerate(KINDS):
        chosen = probes.kinds == number
        if kind == "absent":
            # In a dense domain, keys drawn as absent may occur.
            chosen &= hits == 0
        if chosen.any():
            means = (float(counts[chosen].mean()) for counts in (read, hits, by_ends))
            yield Expected(kind, *means)


def _read(probes: Probes, run: Run, n: int) -> Counts:
    """Number of locations that a run keeps for each probe."""
    found = np.empty((len(probes.intervals), -(-n // 8)), np.uint8)
    # In key order, so that no part of a large run is read or decoded twice.
    for k in np.argsort(probes.intervals[:, 0]).tolist():
        found[k] = np.packbits(run.locations_in(probes.intervals[k : k + 1]))
    if run.has_maps:
        points = np.flatnonzero(probes.kinds != KINDS.index("range"))
        for k in points[np.argsort(probes.hashes[points].view(np.int64))].tolist():
            found[k] &= np.packbits(run.locations_of(probes.hashes[k : k + 1]))
    return np.array([np.unpackbits(row).sum() for row in found], np.int64)


def files_read(expected: Sequence[Expected]) -> dict[str, float]:
    """Mean files by kind of query."""
    return {kind.kind: kind.files for kind in expected}


def least_read(expected: Sequence[Expected]) -> dict[str, float]:
    """Mean files that hold a match, by kind of query."""
    return {kind.kind: kind.exact for kind in expected}


def map_may_pay(
    expected: Sequence[Expected], keys: int, n_locations: int, budget: int, *, exact: bool
) -> bool:
    """Whether a map could read fewer files than intervals do, within the budget.

    Args:
        expected: of the intervals.
        keys: distinct keys of each location, summed, at least.
        n_locations: of the run.
        budget: bytes.
        exact: whether no two values share a key code; a map distinguishes those that do.
    """
    point = next((kind for kind in expected if kind.kind == "present"), None)
    if point is None or point.files <= _CLOSE * (point.exact if exact else 1):
        return False
    return fingerprint_for(budget, keys, n_locations) is not None
