"""What of a version still holds for the table as it is now: a refresh need not read it again."""

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
"""Runs beside the base that a look-up may have to ask; one more makes them one (minor compaction).

Whatever a refresh adds is read again at most once before it is an eighth of its run.
"""
LEAST_BASE: Final = 0.5
"""Share of the table's bytes, and of its own locations, that the base must keep.

Below it a refresh reads all of the table and makes a new base (major compaction).
"""


@dataclass(frozen=True, slots=True, eq=False)
class ReusedRuns:
    """Part of a version.

    Attributes:
        runs: those that a location is left of, the base first.
        locations: what is left, with its slots in these runs.
        stats: of the version; None where nothing is left.
        appended: paths of those that have more rows by now, of which the version tells the others.
    """

    runs: tuple[RunRef, ...]
    locations: Locations
    stats: BuildStats | None
    appended: frozenset[str] = frozenset()

    @property
    def encoder(self) -> Encoder | None:
        """How all its runs code values, so that one look-up serves them; None without a run."""
        return Encoder.from_json(dict(self.runs[0].encoder)) if self.runs else None

    @property
    def column_bytes(self) -> float:
        """Uncompressed bytes of the column in its locations, about."""
        if self.stats is None:
            return 0.0
        return self.stats.column_bytes * int(self.locations.rows.sum()) / max(1, self.stats.rows)


NOTHING: Final = ReusedRuns((), NO_LOCATIONS, None)


def is_current(known: Locations, snapshot: Snapshot) -> bool:
    """Whether a version's locations are exactly the table's files of now.

    One that was unsettled and still is, is as it was.
    """
    found = zip(file_statuses(known, snapshot.files), snapshot.stable, strict=True)
    same = all(status in AS_IT_WAS if stable else status == "unsettled" for status, stable in found)
    return same and len(known.paths) == len(snapshot.files)


def is_one_run(base: Manifest, known: Locations) -> bool:
    """Whether a version is one run whose places all have a file; so is one without a key."""
    held = int(np.count_nonzero(known.slots >= 0))
    return len(base.runs) <= 1 and held == sum(run.locations for run in base.runs)


def _unchanged(known: Locations, snapshot: Snapshot) -> Flags:
    """bool[n]: which locations of a version are settled files of the table as they were."""
    found = zip(snapshot.files, file_statuses(known, snapshot.files), snapshot.stable, strict=True)
    same = {f.path for f, status, stable in found if stable and status in AS_IT_WAS}
    return np.array([path in same for path in known.paths], np.bool_)


def plan_reuse(
    base: Manifest, known: Locations, snapshot: Snapshot, appended: frozenset[str] = frozenset()
) -> ReusedRuns:
    """What a refresh takes over from a version; `NOTHING` where a new base is due.

    Args:
        base: the version.
        known: its locations.
        snapshot: the table as it is now.
        appended: paths of changed ones that have only been added to, so that what is known of them
            still holds for what they had.
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
    """Number of the run that each slot lies in, -1 for that of a location of no run; same shape."""
    ends = np.cumsum([run.locations for run in runs])
    return np.where(slots < 0, -1, np.searchsorted(ends, slots, side="right"))


def _base_is_worth_it(
    number: npt.NDArray[np.int64], runs: Sequence[RunRef], left: Locations, snapshot: Snapshot
) -> bool:
    if not runs:
        # No location has a key, so there is nothing that a new base could do better.
        return True
    in_base = number == 0
    total = sum(file.length for file in snapshot.files)
    size = int(left.lengths[number <= 0].sum())
    return int(in_base.sum()) >= LEAST_BASE * runs[0].locations and size >= LEAST_BASE * total


def _left(
    base: Manifest, left: Locations, number: npt.NDArray[np.int64], appended: frozenset[str]
) -> ReusedRuns:
    """The runs that are still needed, and the slots in them."""
    used = [k for k in range(len(base.runs)) if np.any(number == k)]
    before = np.cumsum([0, *(run.locations for run in base.runs)])
    now = np.cumsum([0, *(base.runs[k].locations for k in used)])
    places = left.places.copy()
    for place, k in enumerate(used):
        places[number == k] += now[place] - before[k]
    runs = tuple(base.runs[k] for k in used)
    return ReusedRuns(runs, left.at_places(places), base.stats, appended)
