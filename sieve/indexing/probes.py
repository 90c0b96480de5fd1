"""Probes: queries drawn from the sample, with which a build measures the expected reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Counts, Hashes, Places
from sieve.encoding.hashing import hash_codes
from sieve.indexing.column_profile import Profile
from sieve.indexing.column_sample import Sample
from sieve.metadata.records import VALUE, Expected
from sieve.reader.run_reader import Run
from sieve.segments.hash_map.size import fingerprint_for
from sieve.segments.query_model import SHORT_RANGE
from sieve.segments.stopping_rule import KINDS

EACH: Final = 400
"""The number of probes per kind. The standard error of a mean over so many probes is a twentieth of
the standard deviation."""
_FLAG_BYTES: Final = 64 << 20
"""Maximum bytes of the flags of one batch of probes."""
# A map saves nothing if queries with intervals read at most this multiple of the locations that
# hold a match.
_CLOSE: Final = 1.01


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """The probe queries.

    Attributes:
        intervals: int64[k, 2], ranges of key codes, both ends included. The first probes are keys
            that occur, weighted by rows. The next are keys anywhere in the domain. The last are
            ranges of 0.05 % of the domain.
        kinds: int64[k], index of each probe's kind in `KINDS`.
        hashes: uint64[k], hash of each probe's key; unused for ranges.
    """

    intervals: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    hashes: Hashes


def make_probes(sample: Sample) -> Probes:
    """Draws probes from the key distribution of a sample; draws none if there is no key."""
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
        # An absent key gets the hash of its code. If the encoder is inexact, no value has this
        # hash.
        np.concatenate([sample.hashes[drawn], hash_codes(anywhere), hash_codes(begin)]),
    )


def expectations(
    probes: Probes, run: Run, sizes: Counts, hits: Counts, least: Counts, greatest: Counts
) -> Iterator[Expected]:
    """Yields expected reads by kind of query: with the index, a perfect index, and min/max.

    Args:
        probes: k probe queries.
        run: a run over n locations.
        sizes: int64[n], bytes of each location.
        hits: int64[2, k], number and total bytes of the locations that truly hold a key of each
            probe.
        least: int64[n], least key code of each location; above `greatest` for a location without
            keys.
        greatest: int64[n], greatest key code of each location.
    """
    read = _read(probes, run, sizes)
    first, last = probes.intervals.T
    some = least <= greatest
    by_ends = np.searchsorted(np.sort(least[some]), last, side="right")
    by_ends -= np.searchsorted(np.sort(greatest[some]), first, side="left")
    for number, kind in enumerate(KINDS):
        chosen = probes.kinds == number
        if kind == "absent":
            # In a dense domain, a key that was drawn as an absent key can be present.
            chosen &= hits[0] == 0
        if chosen.any():
            counts = (read[0], hits[0], by_ends, read[1], hits[1])
            yield Expected(kind, *(float(each[chosen].mean()) for each in counts))


def _read(probes: Probes, run: Run, sizes: Counts) -> Counts:
    """Returns for each probe the number and bytes of the locations that the run does not skip."""
    found = np.empty((len(probes.intervals), -(-len(sizes) // 8)), np.uint8)
    # The probes are sorted by key, so that two batches seldom decode the same part of the run.
    for some in _batches(np.argsort(probes.intervals[:, 0]), len(sizes)):
        found[some] = np.packbits(run.locations_in_each(probes.intervals[some]), axis=1)
    if run.has_maps:
        points = np.flatnonzero(probes.kinds != KINDS.index("range"))
        order = points[np.argsort(probes.hashes[points].view(np.int64))]
        for some in _batches(order, len(sizes)):
            found[some] &= np.packbits(run.locations_of_each(probes.hashes[some]), axis=1)
    kept = (np.unpackbits(row, count=len(sizes)).view(np.bool_) for row in found)
    read = [(np.count_nonzero(some), sizes[some].sum()) for some in kept]
    return np.array(read, np.int64).reshape(-1, 2).T


def _batches(order: Places, n_locations: int) -> Iterator[Places]:
    """Divides probes into batches, so that the flags of all locations fit in memory."""
    most = max(1, _FLAG_BYTES // max(1, n_locations))
    return (order[at : at + most] for at in range(0, len(order), most))


def files_read(expected: Sequence[Expected], location_bytes: float) -> dict[str, float]:
    """For each kind of query: the bytes that the query reads, in units of mean size.

    Args:
        location_bytes: mean size of a location in bytes.
    """
    return {kind.kind: kind.bytes / location_bytes for kind in expected}


def least_read(expected: Sequence[Expected], location_bytes: float) -> dict[str, float]:
    """For each kind of query: the bytes of locations with a match, in units of mean size."""
    return {kind.kind: kind.exact_bytes / location_bytes for kind in expected}


def with_value(expected: Sequence[Expected], profile: Profile) -> tuple[Expected, ...]:
    """Adds the kind `VALUE` to the expected reads, to count the locations with the value itself.

    If several values share a key code, the exact numbers of the kind ``present`` count the
    locations that hold the code. The exact numbers of `VALUE` count only the locations that hold
    the value.
    """
    found = list(expected)
    present = next((one for one in expected if one.kind == "present"), None)
    if present is not None and not profile.sample.encoder.exact:
        each = profile.location_bytes
        least = profile.least_by_map(least_read(expected, each)["present"])
        count = min(present.exact, max(1.0, profile.sample.spread))
        found.append(replace(present, kind=VALUE, exact=count, exact_bytes=least * each))
    return tuple(found)


def map_may_pay(profile: Profile, expected: Sequence[Expected], keys: int, budget: int) -> bool:
    """Returns whether queries could read fewer bytes with a map in the budget than with intervals.

    Args:
        expected: the expected reads of the intervals.
        keys: lower bound of the number of distinct keys per location, summed over locations.
    """
    reads = files_read(expected, profile.location_bytes)
    least = least_read(expected, profile.location_bytes)
    if "present" not in reads:
        return False
    if reads["present"] <= _CLOSE * profile.least_by_map(least["present"]):
        return False
    return fingerprint_for(budget, keys, profile.n_files) is not None
