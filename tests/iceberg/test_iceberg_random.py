"""Random histories: each query returns the same rows with and without the index."""

from __future__ import annotations

import os

import pytest
from iceberg_history import History
from iceberg_tables import AUDITED, namespace
from spark_session import RANGES, Lab

pytestmark = pytest.mark.iceberg


def run(lab: Lab, seed: int, steps: int) -> int:
    """The number of files skipped in a history; a failure shows the history's statements."""
    with namespace(lab, "spark_catalog.histories"), lab.settings(AUDITED | RANGES):
        history = History(lab, seed)
        try:
            for _ in range(steps):
                history.step()
        except Exception as error:
            raise AssertionError(";\n".join(history.log)) from error
        return history.skipped


@pytest.mark.parametrize("seed", range(4))
def test_a_random_history(lab: Lab, seed: int) -> None:
    """A short history; its queries skip some files."""
    assert run(lab, seed, 12) > 0


@pytest.mark.soak
def test_many_random_histories(lab: Lab) -> None:
    """500 histories of 30 steps, or as many as ``HISTORIES`` says."""
    many = int(os.environ.get("HISTORIES", "500"))
    skipped = [run(lab, seed, 30) for seed in range(100, 100 + many)]
    assert min(skipped) >= 0
    assert sum(skipped) > 2 * many
