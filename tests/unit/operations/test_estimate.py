"""Tests how ESTIMATE predicts an index before the build, on frames that replace Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.errors import InvalidInputError
from sieve.indexing import build_tasks, choose_run
from sieve.indexing.auto_budget import MapPlan
from sieve.indexing.column_profile import Profile
from sieve.metadata.index_options import IndexOptions
from sieve.operations import estimate, timed_steps
from sieve.operations.estimate import Estimate, estimate_index
from sieve.operations.estimate_predicate import Asked, Reads
from sieve.predicate.parse_predicate import parse
from sieve.tables.column import Column
from tests import fake_frames
from tests.unit.operations.frame_table import Ranges, Table, index

AUTO = IndexOptions()


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces PySpark's frames."""
    fake_frames.use(monkeypatch)


def scattered(files: int, keys: int) -> list[Ranges]:
    """Files with random keys of a wide domain; each file also has a NULL."""
    draw = np.random.default_rng(3)
    return [[[*draw.integers(0, 1 << 40, keys - 1).tolist(), None]] for _ in range(files)]


MB = 1 << 20
COLUMN = Table("bigint", scattered(20, 50), MB)


def estimated(table: Table, *wanted: IndexOptions, asked: Asked | None = None) -> list[Estimate]:
    """Runs ESTIMATE with a clock whose steps are 1, 2, 3, ... seconds.

    Asserts that no frame is still persisted at the end.
    """
    ticks = count()
    clock = SimpleNamespace(monotonic=lambda: (k := next(ticks)) * (k + 1) / 2)
    jobs: list[str] = []
    environment: Any = SimpleNamespace(describe_job=jobs.append, range_bytes=1 << 40)
    with pytest.MonkeyPatch.context() as patch:
        for module in (estimate, timed_steps):
            patch.setattr(module, "time", clock)
        found = estimate_index(table, Column(("v",), table.type), wanted, asked, environment)  # type: ignore[arg-type]
    calls = table.cluster.calls
    assert calls.count("persist") == calls.count("unpersist")
    calls.clear()
    return found


def query_for(table: Table, op: str, value: int, files: Sequence[int]) -> Asked:
    """A query that compares the column with a value, and reads these files."""
    predicate = parse({"op": op, "col": ["v"], "value": value})
    return Asked(predicate, frozenset(table.files()[k].path for k in files))


@pytest.mark.parametrize(
    ("options", "shapes", "seconds"),
    [
        (AUTO, ["intervals"], 4 + 5),
        (IndexOptions(budget="100B"), ["intervals"], 4),
        (IndexOptions("intervals", "20KB"), ["intervals"], 4),
        (IndexOptions("map", "20KB"), ["intervals", "map"], 4 + 5),
        (IndexOptions("sieve"), ["sieve"], 4),
    ],
)
def test_estimate_of_a_small_column_equals_the_build(
    tmp_path: Path, options: IndexOptions, shapes: list[str], seconds: int
) -> None:
    """For a small column, ESTIMATE returns the shapes and the expected reads of a real build.

    The estimated bytes differ little from the bytes of the build. By the test's clock, the reading
    of the column takes three seconds.
    """
    (found,) = estimated(COLUMN, options)
    built = index(tmp_path, COLUMN, options).manifest
    (run,) = built.runs
    assert found.options is options
    assert found.bytes == pytest.approx(run.bytes + built.locations.parts[0].length, rel=0.15)
    assert (found.files, found.bytes_total) == (20, 20 * MB)
    assert found.share == pytest.approx(found.bytes / (20 * 50 * 8))
    assert found.asked is None
    assert (list(found.shapes), found.expected) == (shapes, COLUMN.expected)
    assert found.seconds == 1 + 2 + seconds


@pytest.mark.parametrize("budget", ["auto", "5KB"])
def test_estimate_describes_the_attempt_that_is_kept(tmp_path: Path, budget: str) -> None:
    """ESTIMATE describes the attempt that the build would keep, such as a map."""
    many, options = Table("bigint", scattered(24, 150), 16 * MB), IndexOptions(budget=budget)
    (found,) = estimated(many, options)
    built = index(tmp_path, many, options).manifest
    assert found.expected == many.expected
    assert found.bytes == pytest.approx(
        built.runs[0].bytes + built.locations.parts[0].length, rel=0.15
    )


MAP = IndexOptions("map", "1MB")


@pytest.mark.parametrize(
    ("planned", "more", "tried"),
    [
        (None, False, ["auto"]),
        (None, True, ["auto", "auto wide"]),
        (MapPlan(MAP, "bytes"), True, ["auto"]),
        (MapPlan(MAP, None), False, ["auto", "map"]),
        (MapPlan(MAP, None), True, ["auto", "map"]),
        (MapPlan(IndexOptions("map", "100B"), None), False, ["auto", "map"]),
        (MapPlan(IndexOptions("map", "100B"), None), True, ["auto", "map", "auto wide", "map"]),
    ],
)
def test_more_intervals_are_tried_if_they_may_pay(
    monkeypatch: pytest.MonkeyPatch, planned: MapPlan | None, more: bool, tried: list[str]
) -> None:
    """If more intervals may save reads, ESTIMATE also tries more intervals.

    ESTIMATE stops adding intervals if a map is better, or if a map would be too large.
    """
    made: list[str] = []
    maker = choose_run.run_maker

    def counted(*given: Any) -> Any:
        profile, options, *_ = given
        made.append(options.shape + " wide" * (profile.wide and options.shape != "map"))
        return maker(*given)

    monkeypatch.setattr(choose_run, "run_maker", counted)
    monkeypatch.setattr(choose_run, "plan_map", lambda *_: planned)
    monkeypatch.setattr(choose_run, "more_may_pay", lambda *_: more)
    estimated(Table("bigint", scattered(24, 150), 16 * MB), AUTO)
    assert made == tried


def test_too_small_budget_of_several_is_omitted() -> None:
    """If a statement lists several budgets, ESTIMATE omits the budgets that are too small.

    If a statement's only budget is too small, the statement fails.
    """
    small, fair = IndexOptions("map", "100B"), IndexOptions("map", "20KB")
    assert [one.options for one in estimated(COLUMN, small, fair, small)] == [fair]
    with pytest.raises(InvalidInputError, match="SIEVE_BUDGET_TOO_SMALL"):
        estimated(COLUMN, small)


@pytest.mark.parametrize(
    ("op", "value", "files"), [("<", 1 << 35, range(20)), ("=", -5, range(3)), (">", 5, [4, 7])]
)
def test_estimate_of_a_query_counts_files_with_a_match(
    op: str, value: int, files: Sequence[int]
) -> None:
    """With a predicate, ESTIMATE counts the files that can have a match.

    ESTIMATE does not count files that a partition filter excludes. A predicate on another column
    has no estimate.
    """
    (found,) = estimated(
        COLUMN, IndexOptions("intervals", "20KB"), asked=query_for(COLUMN, op, value, files)
    )
    holds = {"<": lambda v: v < value, "=": lambda v: v == value, ">": lambda v: v > value}[op]
    match = [k for k in files if any(v is not None and holds(v) for v in COLUMN.values[k][0])]
    assert found.asked == Reads(len(files), len(match), len(match) * MB, understood=True)
    other = Asked(parse({"op": "=", "col": ["w"], "value": 5}), frozenset())
    (found,) = estimated(COLUMN, IndexOptions("sieve"), asked=other)
    assert found.asked == Reads(0, 0, 0, understood=False)


@pytest.mark.parametrize(
    ("options", "making"), [(IndexOptions("intervals", "40KB"), 4 + 5), (AUTO, 4 + 5 + 6)]
)
def test_large_column_is_estimated_from_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: IndexOptions, making: int
) -> None:
    """A large column is estimated from sampled windows of its domain.

    The estimated bytes and the estimated time are scaled to the whole column. With a predicate, the
    sample has further windows around the predicate's keys.
    """
    monkeypatch.setattr(estimate, "_CUTS", 1000)
    monkeypatch.setattr(estimate, "CUTS_PER_TASK", 1000)
    monkeypatch.setattr(build_tasks, "CUTS_PER_TASK", 1000)
    table = Table("bigint", scattered(40, 100), MB)
    asked = query_for(table, "=", table.values[3][0][5], range(40))
    (found,) = estimated(table, options, asked=asked)
    monkeypatch.undo()
    fake_frames.use(monkeypatch)
    built = index(tmp_path, table, options).manifest
    run = built.runs[0]
    rest = 4 * 2_100 + built.locations.parts[0].length - 2_100
    assert found.bytes == pytest.approx(run.bytes + rest, rel=0.2)
    for kind, other in zip(found.expected, table.expected, strict=True):
        assert kind.files == pytest.approx(other.files, abs=0.4)
    assert found.asked is not None
    assert (found.asked.total, found.asked.understood) == (40, True)
    assert 1 <= found.asked.files <= 3
    # Here, the test's clock gives three seconds to the reading. Two cores then index the four parts
    # of the column.
    assert found.seconds == pytest.approx(1 + 2 + making * 4 / 2, rel=0.1)


def test_a_build_limits_its_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimated time has a limit, because a build compares a limited number of cuts."""
    monkeypatch.setattr(estimate, "_CUTS", 500)
    monkeypatch.setattr(estimate, "CUTS_PER_TASK", 1000)
    monkeypatch.setattr(Profile, "most_cuts", lambda *_: 2000)
    (found,) = estimated(Table("bigint", scattered(40, 100), MB), IndexOptions("intervals", "40KB"))
    assert found.seconds == pytest.approx(1 + 2 + 4, rel=0.1)


def test_table_without_files_is_estimated_as_zero() -> None:
    """For a table without files, ESTIMATE reads nothing and returns zeros."""
    nothing = Table("bigint", [])
    some = [AUTO, IndexOptions("sieve")]
    found = estimated(
        nothing, *some, asked=Asked(parse({"op": "=", "col": ["v"], "value": 5}), frozenset())
    )
    assert found == [
        Estimate(one, (), 0, 0.0, 0.0, 0, None, 0, (), Reads(0, 0, 0, understood=False))
        for one in some
    ]
    assert estimated(nothing, AUTO)[0].asked is None


def test_column_without_keys_has_no_segment() -> None:
    """A column without keys has no segment. For an empty column, the share is 0."""
    (found,) = estimated(Table("bigint", [[[None]], [[None, None]]], MB), AUTO)
    assert (found.shapes, found.expected) == ((), ())
    assert found.share == found.bytes / 24
    (empty,) = estimated(Table("bigint", [[[]], [[]]], MB), AUTO)
    assert (empty.share, empty.bytes > 0) == (0.0, True)


def test_null_queries_read_files_by_their_counts() -> None:
    """IS NULL reads the files that have a NULL; IS NOT NULL reads the files that have a key."""
    table = Table("bigint", [[[1, 2]], [[3, None]], [[None, None]], [[4]]], MB)
    for op, match in (("is null", 2), ("is not null", 3)):
        asked = Asked(
            parse({"op": op, "col": ["v"]}), frozenset(file.path for file in table.files())
        )
        (found,) = estimated(table, IndexOptions("intervals"), asked=asked)
        assert found.asked == Reads(4, match, match * MB, understood=True)
