"""Reuse planning: selects which runs of a version a REFRESH can use for the current table.

A refresh reads only files that no reused run covers. The first run of a version is its base; later
runs are deltas. A refresh merges the deltas if there are many, and replaces the base if it covers
too little of the table. Log-structured merge trees have the same two kinds of compaction, minor and
major. `sieve.operations.refresh` decides first whether the version is still valid at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import Encoder
from sieve.metadata.file_list import NO_LOCATIONS, Locations
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import BuildStats, RunRef
from sieve.tables.file_status import AS_IT_WAS, file_statuses
from sieve.tables.snapshot import Snapshot

MOST_DELTAS: Final = 8
"""Maximum number of deltas. If a refresh would exceed this maximum, it reads the files of all
deltas again, and makes one delta (minor compaction).
"""
LEAST_BASE: Final = 0.5
"""The base must cover at least this share of the table's bytes. At least this share of the base's
locations must be valid. Otherwise, a refresh reads the whole table and makes a new base (major
compaction).
"""


@dataclass(frozen=True, slots=True, eq=False)
class ReusedRuns:
    """The runs and locations of a version that a refresh reuses.

    Attributes:
        runs: runs with at least one valid location; the base is first.
        locations: the valid locations, with slots that refer to these runs.
        stats: the statistics of the version; None if the refresh reuses nothing.
        appended: paths of locations to which writers appended log files. The runs contain the
            earlier rows of the appended locations.
    """

    runs: tuple[RunRef, ...]
    locations: Locations
    stats: BuildStats | None
    appended: frozenset[str] = frozenset()

    @property
    def encoder(self) -> Encoder | None:
        """The encoder that all runs share, so that one look-up serves all runs.

        None if there is no run.
        """
        return Encoder.from_json(dict(self.runs[0].encoder)) if self.runs else None

    @property
    def column_bytes(self) -> float:
        """Approximate size of the column's uncompressed values in reused locations, in bytes."""
        if self.stats is None:
            return 0.0
        return self.stats.column_bytes * int(self.locations.rows.sum()) / max(1, self.stats.rows)


NOTHING: Final = ReusedRuns((), NO_LOCATIONS, None)


def is_current(known: Locations, snapshot: Snapshot) -> bool:
    """Returns whether the files that a version lists are exactly the table's current files.

    A file that was racy (changed too recently) at the build and is still racy counts as unchanged.
    """
    found = zip(file_statuses(known, snapshot.files), snapshot.stable, strict=True)
    same = all(status in AS_IT_WAS if stable else status == "racy" for status, stable in found)
    return same and len(known.paths) == len(snapshot.files)


def is_one_run(base: Manifest, known: Locations) -> bool:
    """Returns whether a version has at most one run, and no invalid location in this run."""
    held = int(known.range_counts[known.slots >= 0].sum())
    return len(base.runs) <= 1 and held == sum(run.locations for run in base.runs)


def _unchanged(known: Locations, snapshot: Snapshot) -> Flags:
    """Returns bool[n]: which files of a version's list are stable and unchanged in the table."""
    found = zip(snapshot.files, file_statuses(known, snapshot.files), snapshot.stable, strict=True)
    same = {f.path for f, status, stable in found if stable and status in AS_IT_WAS}
    return np.array([path in same for path in known.paths], np.bool_)


def plan_reuse(
    base: Manifest, known: Locations, snapshot: Snapshot, appended: frozenset[str] = frozenset()
) -> ReusedRuns:
    """Returns what a refresh reuses; `NOTHING` if the refresh must build a new base.

    Args:
        appended: paths of changed locations to which writers have only appended log files. If
            writers only append log files to a location, the index data on its earlier rows stays
            valid.
    """
    still = _unchanged(known, snapshot) | np.array([p in appended for p in known.paths], np.bool_)
    number = runs_of(known.places, base.runs)
    if not _base_is_worth_it(number[still, 0], base.runs, known.chosen(still), snapshot):
        return NOTHING
    deltas = np.unique(number[still])
    if np.count_nonzero(deltas > 0) >= MOST_DELTAS:
        still &= (number <= 0).all(axis=1)
    left = known.chosen(still)
    return _left(base, left, number[still], appended.intersection(left.paths))


def runs_of(slots: npt.NDArray[np.int64], runs: Sequence[RunRef]) -> npt.NDArray[np.int64]:
    """Returns for each slot the number of the run that contains the slot; -1 if no run does."""
    ends = np.cumsum([run.locations for run in runs])
    return np.where(slots < 0, -1, np.searchsorted(ends, slots, side="right"))


def _base_is_worth_it(
    number: npt.NDArray[np.int64], runs: Sequence[RunRef], left: Locations, snapshot: Snapshot
) -> bool:
    if not runs:
        # No location of the version has a key, so the version has no run. A new base would not have
        # a key either.
        return True
    in_base = number == 0
    total = sum(file.length for file in snapshot.files)
    size = int(left.lengths[number <= 0].sum())
    return (
        int(left.range_counts[in_base].sum()) >= LEAST_BASE * runs[0].locations
        and size >= LEAST_BASE * total
    )


def _left(
    base: Manifest, left: Locations, number: npt.NDArray[np.int64], appended: frozenset[str]
) -> ReusedRuns:
    """Selects the runs that contain valid locations, and renumbers the slots for these runs."""
    used = [k for k in range(len(base.runs)) if np.any(number == k)]
    before = np.cumsum([0, *(run.locations for run in base.runs)])
    now = np.cumsum([0, *(base.runs[k].locations for k in used)])
    places = left.places.copy()
    for place, k in enumerate(used):
        places[number == k] += now[place] - before[k]
    runs = tuple(base.runs[k] for k in used)
    return ReusedRuns(runs, left.at_places(places), base.stats, appended)
