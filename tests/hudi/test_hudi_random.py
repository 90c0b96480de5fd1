"""Random histories of Hudi tables: after each step, the index changes no query's rows."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import pytest
import tables
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark_session import Lab

KEYS = 600
# Hypothesis generates the simplest history first. The creation of the table counts as one of the
# steps.
HISTORIES, STEPS, SOAKED = 3, 6, 200
KINDS = ["cow", "mor"]
LAYOUTS = {
    "parts": (True, {}),
    "buckets": (False, tables.BUCKETS),
    "metadata": (True, {"hoodie__metadata__enable": "true"}),
    "bare": (True, {"hoodie__populate__meta__fields": "false"}),
    "whole": (False, {}),
}
COMPACTED = {
    "hoodie__compact__inline": "true",
    "hoodie__compact__inline__max__delta__commits": "3",
}
CLEANED = "Cleaner cleaned up the timestamp of interest"
"""Hudi's error for a query of an instant whose files may be missing."""
STATE = 6
"""The position of the column `state` in SHOW SIEVE INDEXES."""
NOT_CLUSTERED = ("buckets", "bare")
"""Hudi cannot cluster these kinds of table, or clustering can damage their partitions."""

_STRETCHES = st.builds(
    lambda first, length: (first, first + length),
    st.integers(0, KEYS - 1),
    st.sampled_from([60, 7, 1]),
)
"""A half-open range of keys: [first, end)."""
_AMOUNTS = st.integers(0, 999)


class History(RuleBasedStateMachine):
    """A table that random writes, Hudi's services and refreshes change."""

    def __init__(self, lab: Lab, kind: str, layout: str) -> None:
        super().__init__()
        self.lab, self.kind, self.layout = lab, kind, layout
        self.stack = contextlib.ExitStack()
        self.chance = random.Random()
        self.made = False

    def do(self, does: Callable[[], object], refreshed: bool) -> None:
        # Runs a command, and perhaps a REFRESH. Hudi may refuse the command for this kind of table.
        # Queries must be right even after a failed command.
        with contextlib.suppress(Py4JJavaError, PySparkException):
            does()
        if refreshed:
            self.lab.sql("REFRESH SIEVE INDEX ON t")
            # After a refresh, each index must be current, even if the refresh has listed no slices.
            assert {row[STATE] for row in self.lab.sql("SHOW SIEVE INDEXES ON t")} == {"ready"}

    def sql(self, statement: str, refreshed: bool) -> None:
        self.do(lambda: self.lab.sql(statement), refreshed)

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.chance.seed(seed)
        parts, properties = LAYOUTS[self.layout]
        if (self.kind, self.layout) == ("mor", "whole"):
            properties = properties | COMPACTED
        self.stack.enter_context(self.lab.database("hudi_random"))
        tables.create(self.lab, self.kind, parts=parts, **properties)
        tables.fill(self.lab, 0, 400)
        self.lab.sql("CREATE SIEVE INDEX ON t (id, amount)")
        self.made = True

    @rule(keys=_STRETCHES, refreshed=st.booleans())
    def insert(self, keys: tuple[int, int], refreshed: bool) -> None:
        self.do(lambda: tables.fill(self.lab, *keys), refreshed)

    @rule(keys=_STRETCHES, amount=_AMOUNTS, late=st.integers(0, 3), refreshed=st.booleans())
    def upsert(self, keys: tuple[int, int], amount: int, late: int, refreshed: bool) -> None:
        rows = (
            f"SELECT id, {amount} + id % 3, 'up', {late}, id div 100 "
            f"FROM range({keys[0]}, {keys[1]})"
        )
        self.do(lambda: tables.upsert(self.lab, rows), refreshed)

    @rule(keys=_STRETCHES, amount=_AMOUNTS, refreshed=st.booleans())
    def update(self, keys: tuple[int, int], amount: int, refreshed: bool) -> None:
        self.sql(
            f"UPDATE t SET amount = {amount}, ts = ts + 1 WHERE id BETWEEN {keys[0]} AND {keys[1]}",
            refreshed,
        )

    @rule(low=_AMOUNTS, high=_AMOUNTS, refreshed=st.booleans())
    def delete(self, low: int, high: int, refreshed: bool) -> None:
        self.sql(f"DELETE FROM t WHERE amount BETWEEN {low} AND {high}", refreshed)

    @rule(keys=_STRETCHES, amount=_AMOUNTS, refreshed=st.booleans())
    def merge(self, keys: tuple[int, int], amount: int, refreshed: bool) -> None:
        self.sql(
            f"MERGE INTO t USING (SELECT id, {amount}L AS amount, 'm' AS word, 5L AS ts, "
            f"CAST(id div 100 AS INT) AS part FROM range({keys[0]}, {keys[1]})) s ON t.id = s.id "
            "WHEN MATCHED AND s.id % 5 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *",
            refreshed,
        )

    @rule(keys=_STRETCHES, refreshed=st.booleans())
    def overwrite(self, keys: tuple[int, int], refreshed: bool) -> None:
        self.sql(f"INSERT OVERWRITE t {tables.rows(*keys)}", refreshed)

    @rule(refreshed=st.booleans())
    def clean(self, refreshed: bool) -> None:
        self.sql("CALL run_clean(table => 't', retain_commits => 2)", refreshed)

    @rule(refreshed=st.booleans())
    def undo(self, refreshed: bool) -> None:
        first, *_, last = tables.instants(self.lab) * 2
        if last != first:
            self.sql(f"CALL rollback_to_instant(table => 't', instant_time => '{last}')", refreshed)

    @precondition(lambda self: self.layout not in NOT_CLUSTERED)
    @rule(refreshed=st.booleans())
    def cluster(self, refreshed: bool) -> None:
        self.sql("CALL run_clustering(table => 't', order => 'amount')", refreshed)

    @precondition(lambda self: self.kind == "mor")
    @rule(refreshed=st.booleans())
    def schedule(self, refreshed: bool) -> None:
        with self.lab.setting("hoodie.compact.inline.max.delta.commits", "1"):
            self.sql("CALL run_compaction(op => 'schedule', table => 't')", refreshed)

    @precondition(lambda self: self.kind == "mor")
    @rule(refreshed=st.booleans())
    def compact(self, refreshed: bool) -> None:
        self.sql("CALL run_compaction(op => 'run', table => 't')", refreshed)

    @invariant()
    def queries_have_their_rows(self) -> None:
        """Checks point, range and top-k queries on both columns, now and at an earlier instant."""
        instant = self.chance.choice(tables.instants(self.lab)[-4:])
        for source in ("t", f"t TIMESTAMP AS OF '{instant}'"):
            try:
                held = self.lab.sql(f"SELECT id, amount FROM {source} ORDER BY rand(7) LIMIT 1")
            except PySparkException as error:
                if source == "t" or CLEANED not in str(error):
                    raise
                continue
            key, amount = held[0] if held else (0, 0)
            low, other, least = (self.chance.randrange(1000) for _ in range(3))
            for condition in (
                f"amount = {amount}",
                f"id = {key} OR amount = {other}",
                f"amount BETWEEN {low} AND {low + 15}",
                f"id < {self.chance.randrange(60)} AND amount > {least}",
            ):
                self.lab.check(f"SELECT id, amount, word, ts FROM {source} WHERE {condition}")
            rows = self.chance.choice((1, 7, 150))
            first = (
                f"SELECT id, amount FROM {source} ORDER BY amount, id LIMIT {rows}",
                f"SELECT id, amount FROM {source} ORDER BY id DESC, amount LIMIT {rows}",
                f"SELECT id, amount FROM {source} WHERE id > {key} ORDER BY id, amount LIMIT 7",
                f"SELECT min(amount), max(id) FROM {source} GROUP BY part",
            )
            self.lab.check(" UNION ALL ".join(f"({query})" for query in first))

    def teardown(self) -> None:
        with self.stack:
            # If CREATE TABLE failed, the test has already failed, and no index exists.
            states = (
                {row[2] for row in self.lab.sql("CHECK SIEVE INDEX ON t")} if self.made else set()
            )
            assert states <= {"ok", "stale", "gone"}


def live_through(lab: Lab, kind: str, layout: str, histories: int, **how: object) -> None:
    """Runs ``histories`` random histories.

    If a history fails, Hypothesis prints its steps. Hypothesis does not search for a shorter
    failing history, because each run takes long.
    """
    run_state_machine_as_test(
        lambda: History(lab, kind, layout),
        settings=settings(
            max_examples=histories,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            **how,
        ),
    )


@pytest.mark.hudi
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_random_history_loses_nothing(lab: Lab, kind: str, layout: str) -> None:
    """After each step, queries return the same rows with and without the index.

    The queries read the newest state of the table, and the state at an earlier instant.
    """
    live_through(lab, kind, layout, HISTORIES, derandomize=True)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_random_histories_lose_nothing(lab: Lab, kind: str, layout: str) -> None:
    """In 2,000 further histories, queries return the same rows with and without the index."""
    live_through(lab, kind, layout, SOAKED, print_blob=True)
