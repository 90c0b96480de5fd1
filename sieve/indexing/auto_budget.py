"""The budget ``auto``: decides how many intervals an index has, and whether it has a hash map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from sieve.arrays.dtypes import Counts
from sieve.indexing.column_profile import Profile, beside_map
from sieve.indexing.probes import Probes, files_read, least_read
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import VALUE, Expected
from sieve.segments.hash_map.fingerprint_bits import estimate_bytes
from sieve.segments.stopping_rule import FREE_BYTES, KINDS, NEAR, Stop, Trial, near, served

MOST_MAP_BYTES: Final = 1 << 30
"""Maximum size in bytes of a hash map that the user has not asked for."""
MOST_MAP_TIMES: Final = 3
"""Maximum build time of a hash map that the user has not asked for. The maximum is a multiple of
the build time of the index without the map."""

# Build times in seconds on two cores: `_BUILD_SECONDS` is the time of a build with few keys. Each
# file, each row with scattered keys, and each key in a hash map takes additional time.
_BUILD_SECONDS: Final = 6.0
_FILE_SECONDS: Final = 2e-3
_ROW_SECONDS: Final = 7e-7
_KEY_SECONDS: Final = 1.5e-6

# A hash map may become up to this many times as large as estimated. The estimate is rough, because
# the build knows only roughly how many keys are in several files.
_SHARED: Final = 3

_SCATTERED: Final = 0.5
"""The share of neighbouring keys that are in different locations. From this share on, queries with
intervals alone usually read too much."""

Limit = Literal["bytes", "seconds"]


def stop_for(profile: Profile, options: IndexOptions, probes: Probes, hits: Counts) -> Stop:
    """The criterion by which a build decides that an index has enough intervals.

    Args:
        options: the options, with the budget ``auto``.
        probes: k probes.
        hits: int64[2, k], for each probe, the number and the total bytes of the locations that
            contain one of its keys.
    """
    intervals, least = [], {}
    for number, kind in enumerate(KINDS):
        chosen = probes.kinds == number
        if kind == "absent":
            chosen &= hits[0] == 0
        of_kind = probes.intervals[chosen]
        intervals.append(of_kind[np.lexsort((of_kind[:, 1], of_kind[:, 0]))])
        if len(of_kind):
            least[kind] = float(hits[1, chosen].mean()) / profile.location_bytes
    return Stop(
        profile.payback(options).price,
        profile.intervals_budget(options, options.shape),
        profile.little,
        tuple(intervals),
        least,
        FREE_BYTES * profile.sample.share,
    )


def expected_of(trial: Trial, stop: Stop, location_bytes: float) -> tuple[Expected, ...]:
    """Returns how much each kind of query reads with the intervals of a trial.

    Args:
        stop: the stop criterion, with the probes that the trial evaluated.
        location_bytes: mean size of a location in bytes.
    """
    found = []
    for kind, total, probes in zip(KINDS, trial[1], stop.probes, strict=True):
        if len(probes):
            read, least = total / len(probes), stop.least[kind]
            in_bytes = (each * location_bytes for each in (read, least))
            found.append(Expected(kind, read, least, math.nan, *in_bytes))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class MapPlan:
    """A plan for a hash map with which queries save more bytes than the map costs.

    Attributes:
        options: the options with which the build would make the map.
        limit: the limit that the map exceeds, or None. A map that the user asked for has no limit.
    """

    options: IndexOptions
    limit: Limit | None


def plan_map(
    profile: Profile,
    options: IndexOptions,
    expected: Sequence[Expected],
    keys: int,
    index_bytes: int,
) -> MapPlan | None:
    """Plans a hash map and few intervals; None if the map exceeds the budget or does not pay back.

    Args:
        options: the options, with the budget ``auto``.
        expected: the expected reads of queries with intervals alone.
        keys: number of distinct keys in each location, summed over all locations.
    """
    reads = files_read(expected, profile.location_bytes)
    least = least_read(expected, profile.location_bytes)
    if "present" not in reads:
        return None
    least["present"] = profile.least_by_map(least["present"])
    if reads["present"] <= NEAR * least["present"]:
        return None
    size = estimate_bytes(keys, profile.n_files, 0)
    size += beside_map(size)
    after = served(reads) | {"present": least["present"]}
    if "absent" in after:
        after["absent"] = 1.0
    payback = profile.payback(options)
    cheaper = payback.cost(size, after) < payback.cost(index_bytes, reads)
    if not cheaper or size > profile.budget(options):
        return None
    share = profile.sample.share
    budget = int(min(profile.budget(options), _SHARED * size) / share)
    limit = map_limit(int(size / share), int(keys / share), profile.sample.rows, profile.n_files)
    return MapPlan(IndexOptions("map", f"{budget}B"), limit)


def map_is_likely(profile: Profile, options: IndexOptions) -> bool:
    """Returns whether a build is likely to choose a hash map.

    If the function returns True, the reading step collects the map's pairs. Then the build need not
    read the column again.
    """
    if options.shape == "map":
        return True
    if options.shape != "auto" or not options.automatic or profile.sample.scattered < _SCATTERED:
        return False
    keys = profile.sample.rows
    size = estimate_bytes(keys, profile.n_files, 0)
    payback = profile.payback(options)
    whole, one = payback.cost(0, {"present": profile.n_files}), payback.cost(size, {"present": 1})
    return (
        one < whole
        and size <= profile.budget(options)
        and map_limit(size, keys, keys, profile.n_files) is None
    )


def map_limit(size: int, keys: int, rows: int, n_files: int) -> Limit | None:
    """Returns the limit that a hash map exceeds, or None.

    The limits apply only to maps that the user has not asked for.

    Args:
        keys: number of distinct keys in each location, summed over all locations.
        n_files: number of locations.
    """
    if size > MOST_MAP_BYTES:
        return "bytes"
    build = _BUILD_SECONDS + _FILE_SECONDS * n_files + _ROW_SECONDS * rows
    return "seconds" if _KEY_SECONDS * keys > MOST_MAP_TIMES * build else None


def map_left_out(manifest: Manifest) -> Limit | None:
    """Returns the limit that prevented a hash map in a version, or None.

    Returns None if the version has a map, or if queries would not read less with a map. Also
    returns None if the user has set the budget or the shape.
    """
    stats, options = manifest.stats, manifest.options
    # The code below uses only the ratio of `reads` to `least`, so the size of a location can be any
    # number.
    reads, least = files_read(stats.expected, 1), least_read(stats.expected, 1)
    if "present" not in reads or not options.automatic or options.shape != "auto":
        return None
    mapped = any(file.hashes for run in manifest.runs for file in run.files)
    if mapped or reads["present"] <= NEAR * least.get(VALUE, least["present"]):
        return None
    keys = sum(run.keys for run in manifest.runs)
    size = estimate_bytes(keys, stats.ranges_total, 0)
    return map_limit(size, keys, stats.rows, stats.ranges_total)


def more_may_pay(
    profile: Profile, options: IndexOptions, expected: Sequence[Expected], cuts: int, size: int
) -> bool:
    """Returns whether queries may read far fewer bytes if the build makes more cuts.

    Args:
        options: the options, with the budget ``auto``.
        expected: the expected reads of queries with the present cuts.
        cuts: number of cuts that the reading step has made.
    """
    each = profile.location_bytes
    if near(files_read(expected, each), least_read(expected, each)):
        return False
    allowed = profile.intervals_budget(options, options.shape)
    return size > allowed / 2 or cuts > profile.most_cuts(options) / 2
