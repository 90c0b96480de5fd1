"""Fits intervals to a budget, both with and without a map."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.indexing import build_tasks, fit_budget
from sieve.metadata.index_options import IndexOptions
from sieve.segments.query_model import QueryModel
from sieve.segments.stopping_rule import Stop


@pytest.mark.parametrize(("shape", "weight"), [("map", 0.5), ("auto", 1.0)])
def test_the_model_of_intervals(monkeypatch: pytest.MonkeyPatch, shape: str, weight: float) -> None:
    """With a map, only range queries (three of six query kinds) give intervals a value.

    Without a map, all six kinds of query give intervals a value.
    """
    asked: list[QueryModel] = []
    monkeypatch.setattr(fit_budget, "_planner", lambda model, *_: asked.append(model))
    model = QueryModel.of_sample(np.arange(100))
    sample = SimpleNamespace(query_model=model, share=1.0)
    profile: Any = SimpleNamespace(
        sample=sample, n_files=4, intervals_budget=lambda *_: 1 << 20, budget=lambda _: 1 << 24
    )
    seen: Any = SimpleNamespace(cuts=(10, 0, 99))
    pairs = SimpleNamespace(map_rows=lambda *_: None)
    shared: Any = SimpleNamespace(pieces=None, pairs=pairs, seen=seen)
    stop = Stop(1e-6, 1 << 20, 0, (), {})
    options = IndexOptions(shape)
    fit_budget.run_maker(profile, options, shared, lambda _: None, stop)
    assert [sum(one.kinds) for one in asked] == [pytest.approx(weight)]


@pytest.mark.parametrize(
    ("cuts", "few", "tried"),
    [
        (0, False, False),
        (10, False, False),
        (11, False, True),
        (21, False, True),
        (0, True, False),
        (10, True, True),
    ],
)
def test_intervals_are_tried_before_they_are_written(
    monkeypatch: pytest.MonkeyPatch, cuts: int, few: bool, tried: bool
) -> None:
    """If several tasks make the intervals, the build first estimates their bytes and reads.

    If one task makes the intervals, the build estimates both only if a map is likely.
    """
    asked: list[float] = []
    monkeypatch.setattr(build_tasks, "CUTS_PER_TASK", 10)
    monkeypatch.setattr(fit_budget, "_trial", lambda *given: asked.append(given[2]) or "tried")
    model = QueryModel.of_sample(np.arange(100))
    sample = SimpleNamespace(query_model=model)
    profile: Any = SimpleNamespace(sample=sample, weights=None, few=few)
    found = fit_budget.trial_of_least_cost(
        None,  # type: ignore[arg-type]
        SimpleNamespace(cuts=(cuts, 0, 99)),  # type: ignore[arg-type]
        profile,
        Stop(1e-6, 1 << 20, 0, (), {}),
    )
    assert (found, asked) == (("tried", [1e-6]) if tried else (None, []))


@pytest.mark.parametrize(
    ("cuts", "share", "files"),
    [(1, 1.0, 1), (500_000, 1.0, 1), (500_001, 1.0, 2), (500_001, 0.25, 5)],
)
def test_a_run_has_a_file_for_each_task_of_cuts(cuts: int, share: float, files: int) -> None:
    """A run has one file per task, and the number of tasks depends on the sampled share."""
    profile: Any = SimpleNamespace(sample=SimpleNamespace(share=share))
    assert build_tasks.run_files(cuts, profile.sample) == files


@pytest.mark.parametrize("shape", ["map", "auto", "intervals"])
def test_intervals_next_to_a_map_are_written_once(
    monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """With a map, the build writes intervals once, at a given price per byte.

    Without a map, a task searches for the price per byte while it writes intervals.
    """
    written: list[str] = []
    for name in ("write_stretches", "write_whole", "write_until"):
        monkeypatch.setattr(
            fit_budget.segment_tasks,
            name,
            lambda *given, name=name: written.append(f"{name} {given[1:2]}") or name,
        )
    monkeypatch.setattr(fit_budget, "map_batches", lambda _pieces, step, _schema: step)
    model = QueryModel.of_sample(np.arange(100))
    profile: Any = SimpleNamespace(
        sample=SimpleNamespace(query_model=model, share=1.0),
        n_files=4,
        weights=None,
        intervals_budget=lambda *_: 1 << 20,
    )
    seen: Any = SimpleNamespace(cuts=(10, 0, 99))
    stop = Stop(0.25, 1 << 20, 0, (), {})
    nothing: Any = None
    make = fit_budget._priced(nothing, seen, profile, IndexOptions(shape), lambda _: None, stop)
    step: Any = make(2.0)
    assert step == ("write_stretches" if shape == "map" else "write_until")
    if shape == "map":
        assert written == ["write_stretches (0.5,)"]
