"""Random histories of Delta tables: after each step, queries return the rows of a model."""

from __future__ import annotations

import logging
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from delta_history import LAYOUTS, History
from delta_tables import SPARK
from spark_session import Lab

log = logging.getLogger(__name__)

# How many histories run for each layout: first in a normal run, then in a soak.
HISTORIES, SOAKED = 4, 100
STEPS = 30
SCANS, SKIPPED = 30, 60
"""The minimum numbers of pruned scans and of skipped files per history."""
KINDS = {
    "insert", "update", "delete", "merge", "overwrite", "replace", "restore", "vacuum", "clone",
    "optimize", "reorg", "vectors", "widen", "z-order", "rename", "renew",
}  # fmt: skip
REFUSED = {"plain": {"rename", "renew"}, "clustered": {"z-order"}}
"""The kinds of steps that Delta refuses, by layout."""

# Delta 3.3 cannot widen INT.
NEVER = {"widen"} if SPARK < (4, 0) else set()


def counted(lab: Lab) -> Counter[str]:
    """The values of this driver's counters so far."""
    return Counter(dict(lab.sql("SELECT counter, value FROM sieve_status() WHERE reason IS NULL")))


def live_through(lab: Lab, layout: str, histories: int, seed: str) -> None:
    """Runs histories in two threads; if one fails, the error shows the history's statements."""
    before = counted(lab)

    def live(number: int) -> Counter[str]:
        own = Lab(lab.spark.newSession())
        return History(own, layout, f"{seed} {layout} {number}").run(STEPS)

    # Planning takes most of the time and uses only one core.
    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(live, range(histories)), Counter[str]())
    made = counted(lab) - before
    told = {name: made[name] for name in ("scans", "scans_pruned", "files_skipped")}
    log.info("%s: %s, %s", layout, told, dict(done))
    assert made["scans_pruned"] >= SCANS * histories, told
    assert made["files_skipped"] >= SKIPPED * histories, told
    assert set(done) == KINDS - REFUSED.get(layout, set()) - NEVER


@pytest.mark.delta
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_random_history_loses_nothing(lab: Lab, layout: str) -> None:
    """After each step of a history, queries of existing table versions return the model's rows."""
    live_through(lab, layout, HISTORIES, "0")


@pytest.mark.soak
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_random_histories_lose_nothing(lab: Lab, layout: str) -> None:
    """Queries return the model's rows in 100 further random histories of each layout, too."""
    live_through(lab, layout, SOAKED, str(random.randrange(1 << 32)))
