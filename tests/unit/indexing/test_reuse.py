"""Tests what a refresh reuses: runs and slots that it keeps, and when it rebuilds all runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from sieve.indexing.reuse import (
    LEAST_BASE,
    MOST_DELTAS,
    NOTHING,
    is_current,
    is_one_run,
    plan_reuse,
    runs_of,
)
from sieve.metadata.file_list import FileState, Locations, states_of
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import RunId, RunRef
from sieve.tables.data_file import DataFile
from sieve.tables.snapshot import Snapshot
from tests.unit.metadata.manifest_sample import SAMPLE

LENGTH = 1000


def version(*sizes: int) -> tuple[Manifest, Locations]:
    """A version whose runs have `sizes` locations; file k has slot k and modification time k."""
    (sample,) = SAMPLE.runs
    runs: list[RunRef] = [
        dataclasses.replace(sample, id=RunId(f"{number:032x}"), locations=size)
        for number, size in enumerate(sizes)
    ]
    n = sum(sizes)
    ones = np.ones(n, np.int64)
    paths = tuple(f"file:/t/{k}" for k in range(n))
    slots = np.arange(n)
    known = Locations(
        paths, states_of(n), ones * LENGTH, slots.copy(), ones * 10, ones * 0, ones * 0, slots
    )
    return dataclasses.replace(SAMPLE, runs=tuple(runs)), known


def table(numbers: Sequence[int], young: Sequence[int] = ()) -> Snapshot:
    """A table of these files; some of them are too young to count as stable."""
    files = tuple(DataFile(f"file:/t/{k}", LENGTH, k) for k in numbers)
    return Snapshot(files, tuple(k not in young for k in numbers), 10**12)


def test_slots_move_down_if_a_run_is_removed() -> None:
    """If no file of a run remains, a refresh removes the run.

    The slot numbers of later runs decrease if a run is removed.
    """
    base, known = version(6, 2, 3)
    left = plan_reuse(base, known, table([0, 1, 2, 3, 4, 5, 8, 10, 77]))
    assert left.runs == (base.runs[0], base.runs[2])
    assert left.locations.paths == tuple(f"file:/t/{k}" for k in [0, 1, 2, 3, 4, 5, 8, 10])
    assert left.locations.slots.tolist() == [0, 1, 2, 3, 4, 5, 6, 8]


def test_changed_and_young_files_are_read_again() -> None:
    """If a file is too young, or its length or time has changed, a refresh reads it again."""
    base, known = version(9)
    now = list(table(range(9)).files)
    now[1] = dataclasses.replace(now[1], length=LENGTH + 1)
    now[2] = dataclasses.replace(now[2], mtime=9)
    left = plan_reuse(
        base, known, Snapshot(tuple(now), (True,) * 3 + (False,) + (True,) * 5, 10**12)
    )
    assert left.locations.paths == tuple(f"file:/t/{k}" for k in [0, 4, 5, 6, 7, 8])
    assert left.locations.slots.tolist() == [0, 4, 5, 6, 7, 8]


def test_grown_file_keeps_its_slots_and_counts() -> None:
    """A file with appended rows keeps its slots and the counts of its old content.

    If a refresh removes runs, the slot numbers of later runs decrease.
    """
    base, known = version(6, 1, 2)
    also = np.full((9, 2), -1)
    also[1], also[2, 0] = [7, 8], 8
    known = dataclasses.replace(known, also=also)
    now = list(table([0, 1, 2, 3, 4, 5]).files)
    now[1] = dataclasses.replace(now[1], length=LENGTH + 1)
    now[2] = dataclasses.replace(now[2], length=LENGTH + 1)
    snapshot = Snapshot(tuple(now), (True,) * 6, 10**12)
    left = plan_reuse(base, known, snapshot, frozenset({"file:/t/1"}))
    assert left.runs == (base.runs[0], base.runs[2])
    assert left.locations.paths == tuple(f"file:/t/{k}" for k in [0, 1, 3, 4, 5])
    assert left.locations.places.tolist() == [
        [0, -1, -1], [1, 6, 7], [3, -1, -1], [4, -1, -1], [5, -1, -1],
    ]  # fmt: skip
    assert left.appended == {"file:/t/1"}


def test_grown_files_are_read_again_with_many_deltas() -> None:
    """With too many delta runs, a refresh reads again every file that has a slot in a delta run."""
    base, known = version(100, *([1] * MOST_DELTAS))
    also = np.full((100 + MOST_DELTAS, 1), -1)
    also[:2, 0] = [100, 101]
    known = dataclasses.replace(known, also=also)
    appended = frozenset({"file:/t/0", "file:/t/5"})
    found = plan_reuse(base, known, table(range(100)), appended)
    assert len(found.runs) == 3
    assert found.appended == appended
    every = dataclasses.replace(known, also=np.append(np.arange(100, 108), [-1] * 100)[:, None])
    found = plan_reuse(base, every, table(range(100)), appended)
    assert (len(found.runs), len(found.locations.paths)) == (1, 92)
    assert found.appended == frozenset()


@pytest.mark.parametrize(
    ("deltas", "left"),
    [(MOST_DELTAS - 1, MOST_DELTAS), (MOST_DELTAS, 1), (MOST_DELTAS + 1, 1), (30, 1)],
)
def test_many_deltas_are_read_again_as_one(deltas: int, left: int) -> None:
    """If there are too many delta runs, a refresh replaces all of them with a single new run."""
    base, known = version(100, *([1] * deltas))
    found = plan_reuse(base, known, table(range(100 + deltas)))
    assert len(found.runs) == left
    assert len(found.locations.paths) == 100 + (deltas if left > 1 else 0)


@pytest.mark.parametrize(
    ("files", "whole"),
    [
        (range(100), False),
        (range(int(100 * LEAST_BASE)), False),
        (range(int(100 * LEAST_BASE) - 1), True),
        (range(200), False),
        (range(201), True),
    ],
)
def test_base_that_is_too_small_is_rebuilt(files: range, whole: bool) -> None:
    """A refresh rebuilds all runs if the base run is small for the table, or lost many files."""
    base, known = version(100)
    assert (plan_reuse(base, known, table(files)) is NOTHING) == whole


def test_files_without_a_run_are_kept() -> None:
    """A refresh reads no unchanged file again, even a file without keys or an unproven file."""
    base, known = version(4)
    known.slots[1:3] = -1
    known.states[1], known.lengths[1] = FileState.UNPROVEN, 0
    base = dataclasses.replace(base, runs=(dataclasses.replace(base.runs[0], locations=4),))
    left = plan_reuse(base, known, table(range(4)))
    assert left.locations.slots.tolist() == [0, -1, -1, 3]
    assert is_current(known, table(range(4)))
    empty = dataclasses.replace(base, runs=())
    known.slots[:] = -1
    assert len(plan_reuse(empty, known, table(range(4))).locations.paths) == 4


def test_version_is_current_until_a_young_file_is_stable() -> None:
    """A version with a file that was too young counts as current until the file is stable."""
    _, known = version(3)
    known.states[2], known.lengths[2] = FileState.RACY, 0
    assert is_current(known, table(range(3), young=[2]))
    assert not is_current(known, table(range(3)))
    assert not is_current(known, table(range(2)))
    assert not is_current(known, table(range(4), young=[2]))


def test_one_run_without_removed_locations_needs_no_compaction() -> None:
    """If a version has one run and no removed locations, OPTIMIZE changes nothing.

    OPTIMIZE also changes nothing if a version has no keys.
    """
    base, known = version(5)
    assert is_one_run(base, known)
    assert not is_one_run(base, known.chosen(known.slots != 2))
    assert not is_one_run(*version(4, 1))
    without, files = version(3)
    keyless = dataclasses.replace(files, slots=np.full(3, -1))
    assert is_one_run(dataclasses.replace(without, runs=()), keyless)
    more = dataclasses.replace(known, slots=np.array([0, 1, 2, 3, -1]))
    assert is_one_run(dataclasses.replace(base, runs=version(4)[0].runs), more)


def test_runs_of_returns_the_run_of_each_slot() -> None:
    """`runs_of` returns the run number of each slot, and -1 for a file without keys."""
    base, _ = version(3, 2)
    slots = np.array([[0, -1], [2, 3], [4, -1], [-1, -1]])
    assert runs_of(slots, base.runs).tolist() == [[0, -1], [0, 1], [1, -1], [-1, -1]]
