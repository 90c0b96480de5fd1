"""Probes: random queries with which a build measures how much queries read with an index."""

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
from sieve.segments.hash_map.fingerprint_bits import fingerprint_for
from sieve.segments.query_model import SHORT_RANGE
from sieve.segments.stopping_rule import KINDS

EACH: Final = 400
"""The number of probes of each kind. The standard error of a mean over this number of probes is a
twentieth of the standard deviation."""
_FLAG_BYTES: Final = 64 << 20
"""Maximum size of a batch of probes in bytes: a batch has one flag for each probe and location."""
# A hash map saves nothing if queries with intervals read at most this many locations for each
# location that contains a match.
_CLOSE: Final = 1.01


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """Random queries of three kinds: for keys that occur, for any keys, and for short ranges.

    Attributes:
        intervals: int64[k, 2], ranges of key codes, both ends included. The first probes are for
            keys that occur; a key with more rows is more likely, unless `Sample.by_key` is true.
            The next probes are for keys anywhere in the domain, and the last probes are for ranges
            of 0.05 % of the domain.
        kinds: int64[k], position of each probe's kind in `KINDS`.
        hashes: uint64[k], hash of each probe's key; meaningless for ranges.
    """

    intervals: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    hashes: Hashes


def make_probes(sample: Sample) -> Probes:
    """Draws probes from the key distribution of a sample; none if the sample contains no key."""
    query_model = sample.query_model
    if query_model is None:
        none = np.empty(0, np.int64)
        return Probes(none.reshape(0, 2), none, none.view(np.uint64))
    random = np.random.default_rng(1)
    low, high = int(query_model.codes[0]), int(query_model.codes[-1])
    keys = np.arange(len(sample.codes))
    if sample.by_key:
        _, keys = np.unique(sample.hashes, return_index=True)
    drawn = keys[random.integers(0, len(keys), EACH)]
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
    """Yields what each kind of query reads with the index, an exact index, and min/max statistics.

    Args:
        probes: k probes.
        run: a run that covers n locations.
        sizes: int64[n], size of each location in bytes.
        hits: int64[2, k], for each probe, the number and the total bytes of the locations that
            really contain one of its keys.
        least: int64[n], least key code of each location; above `greatest` if the location has no
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
            # If most codes of the domain occur as keys, a random code may be a key.
            chosen &= hits[0] == 0
        if chosen.any():
            counts = (read[0], hits[0], by_ends, read[1], hits[1])
            yield Expected(kind, *(float(each[chosen].mean()) for each in counts))


def _read(probes: Probes, run: Run, sizes: Counts) -> Counts:
    """Returns for each probe the number and the bytes of the locations that it reads."""
    found = np.empty((len(probes.intervals), -(-len(sizes) // 8)), np.uint8)
    # Sorts the probes by key, so that two batches rarely decode the same part of the run.
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
    """Divides probes into batches, so that the flags of a batch fit into memory."""
    most = max(1, _FLAG_BYTES // max(1, n_locations))
    return (order[at : at + most] for at in range(0, len(order), most))


def files_read(expected: Sequence[Expected], location_bytes: float) -> dict[str, float]:
    """Returns for each kind of query the mean bytes it reads, divided by the mean location size.

    Args:
        location_bytes: mean size of a location in bytes.
    """
    return {kind.kind: kind.bytes / location_bytes for kind in expected}


def least_read(expected: Sequence[Expected], location_bytes: float) -> dict[str, float]:
    """Returns the same as `files_read`, but counts only locations that contain a match."""
    return {kind.kind: kind.exact_bytes / location_bytes for kind in expected}


def with_value(expected: Sequence[Expected], profile: Profile) -> tuple[Expected, ...]:
    """Adds the kind `VALUE`, whose exact reads count only locations that contain the value itself.

    Several values can have the same key code. For the kind ``present``, an exact index finds all
    locations of the value's key code. For the kind `VALUE`, the exact index finds only the
    locations of the value.
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
    """Returns whether queries may read less with a hash map within the budget than with intervals.

    Args:
        expected: the expected reads of the intervals.
        keys: lower bound for the number of distinct keys in each location, summed over all
            locations.
    """
    reads = files_read(expected, profile.location_bytes)
    least = least_read(expected, profile.location_bytes)
    if "present" not in reads:
        return False
    if reads["present"] <= _CLOSE * profile.least_by_map(least["present"]):
        return False
    return fingerprint_for(budget, keys, profile.n_files) is not None
