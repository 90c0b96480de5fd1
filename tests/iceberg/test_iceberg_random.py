"""Random histories of Iceberg tables: queries return the same rows with and without the index."""

from __future__ import annotations

import os
import sys

import pytest
from iceberg_history import History
from iceberg_tables import AUDITED, namespace
from spark_session import RANGES, Lab

pytestmark = pytest.mark.iceberg


def run(lab: Lab, seed: int, steps: int) -> int:
    """Runs a history; returns the number of files that the index made queries skip.

    If a step fails, the error shows the history's statements.
    """
    other = Lab(lab.spark.newSession())
    settings = AUDITED | RANGES
    with (
        namespace(lab, "spark_catalog.histories"),
        lab.settings(settings),
        other.settings(settings),
    ):
        history = History((lab, other), seed)
        try:
            for _ in range(steps):
                history.step()
        except Exception as error:
            raise AssertionError(f"seed {seed}: " + ";\n".join(history.log)) from error
        return history.skipped


@pytest.mark.parametrize("seed", range(20))
def test_a_random_history(lab: Lab, seed: int) -> None:
    """In a random history of 30 steps, queries return the same rows with and without the index."""
    run(lab, seed, 30)


@pytest.mark.soak
def test_many_random_histories(lab: Lab) -> None:
    """In 500 random histories, queries return the right rows and skip files.

    ``HISTORIES`` and ``SEED`` can set the number of histories and the first seed.
    """
    first, many = int(os.environ.get("SEED", "100")), int(os.environ.get("HISTORIES", "500"))
    skipped = []
    for seed in range(first, first + many):
        skipped.append(run(lab, seed, 30))
        sys.stdout.write(f"history {seed}: {skipped[-1]} files skipped\n")
        sys.stdout.flush()
    assert min(skipped) >= 0
    assert sum(skipped) > 2 * many
