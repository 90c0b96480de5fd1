"""Random histories of Hudi tables: after each step all queries have the rows they have without."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
import tables
from lab import Lab
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

KEYS = 600
SEEDS, STEPS, SOAKED = 2, 5, 200
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
"""What Hudi answers to a query of an instant whose files may be gone."""
NOT_CLUSTERED = ("buckets", "bare")
"""Hudi cannot, or leaves a partition that it cannot read."""


@dataclass(slots=True)
class History:
    """A table that things happen to."""

    lab: Lab
    chance: random.Random
    kind: str
    layout: str
    steps: list[str] = field(default_factory=list)

    def step(self) -> None:
        """One of the things that writers and services do, or a refresh."""
        does = [self.insert, self.upsert, self.update, self.update, self.delete, self.merge]
        does += [self.overwrite, self.clean, self.undo, *[self.refresh] * 4]
        if self.layout not in NOT_CLUSTERED:
            does.append(self.cluster)
        if self.kind == "mor":
            does += [self.schedule, self.compact]
        chosen = self.chance.choice(does)
        self.steps.append(chosen.__name__)
        try:
            chosen()
        except (Py4JJavaError, PySparkException):
            # Hudi cannot do everything with every table; what it leaves must be read right as well.
            if chosen == self.refresh:
                raise
            self.steps[-1] += " (failed)"

    def stretch(self) -> tuple[int, int]:
        """Keys from one up to, without, another."""
        first = self.chance.randrange(KEYS)
        return first, first + self.chance.choice([1, 7, 60])

    def insert(self) -> None:
        tables.fill(self.lab, *self.stretch())

    def upsert(self) -> None:
        first, last = self.stretch()
        late = self.chance.choice([0, 1, 2, 3])
        tables.upsert(
            self.lab,
            f"SELECT id, {self.value()} + id % 3, 'up', {late}, id div 100 "
            f"FROM range({first}, {last})",
        )

    def update(self) -> None:
        first, last = self.stretch()
        self.lab.sql(
            f"UPDATE t SET amount = {self.value()}, ts = ts + 1 WHERE id BETWEEN {first} AND {last}"
        )

    def delete(self) -> None:
        self.lab.sql(f"DELETE FROM t WHERE amount BETWEEN {self.value()} AND {self.value()}")

    def merge(self) -> None:
        first, last = self.stretch()
        self.lab.sql(
            f"MERGE INTO t USING (SELECT id, {self.value()}L AS amount, 'm' AS word, 5L AS ts, "
            f"CAST(id div 100 AS INT) AS part FROM range({first}, {last})) s ON t.id = s.id "
            "WHEN MATCHED AND s.id % 5 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *"
        )

    def overwrite(self) -> None:
        first, last = self.stretch()
        self.lab.sql(f"INSERT OVERWRITE t {tables.rows(first, last)}")

    def cluster(self) -> None:
        self.lab.sql("CALL run_clustering(table => 't', order => 'amount')")

    def clean(self) -> None:
        self.lab.sql("CALL run_clean(table => 't', retain_commits => 2)")

    def undo(self) -> None:
        first, *_, last = tables.instants(self.lab) * 2
        if last != first:
            self.lab.sql(f"CALL rollback_to_instant(table => 't', instant_time => '{last}')")

    def schedule(self) -> None:
        with self.lab.setting("hoodie.compact.inline.max.delta.commits", "1"):
            self.lab.sql("CALL run_compaction(op => 'schedule', table => 't')")

    def compact(self) -> None:
        self.lab.sql("CALL run_compaction(op => 'run', table => 't')")

    def refresh(self) -> None:
        self.lab.sql("REFRESH SIEVE INDEX ON t")

    def value(self) -> int:
        return self.chance.randrange(1000)

    def query(self) -> None:
        """Points and ranges of both columns, now and at some instant; a key that surely occurs."""
        instant = self.chance.choice(tables.instants(self.lab)[-4:])
        for source in ("t", f"t TIMESTAMP AS OF '{instant}'"):
            try:
                held = self.lab.sql(f"SELECT id, amount FROM {source} ORDER BY rand(7) LIMIT 1")
            except PySparkException as error:
                if source == "t" or CLEANED not in str(error):
                    raise
                continue
            key, amount = held[0] if held else (0, 0)
            low = self.value()
            for condition in (
                f"amount = {amount}",
                f"id = {key} OR amount = {self.value()}",
                f"amount BETWEEN {low} AND {low + 15}",
                f"id < {self.chance.randrange(60)} AND amount > {self.value()}",
            ):
                self.lab.check(f"SELECT id, amount, word, ts FROM {source} WHERE {condition}")


def live_through(lab: Lab, kind: str, layout: str, seed: int) -> None:
    """One history; what fails tells its steps."""
    parts, properties = LAYOUTS[layout]
    if (kind, layout) == ("mor", "whole"):
        properties = properties | COMPACTED
    chance = random.Random(f"{kind} {layout} {seed}")
    with lab.database("hudi_random"):
        tables.create(lab, kind, parts=parts, **properties)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id, amount)")
        history = History(lab, chance, kind, layout)
        try:
            for _ in range(STEPS):
                history.step()
                history.query()
            states = {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")}
            assert states <= {"ok", "stale", "gone"}
        except BaseException as error:
            error.add_note(f"{kind} {layout} seed {seed}: {', '.join(history.steps)}")
            raise


@pytest.mark.hudi
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_random_history_loses_nothing(lab: Lab, kind: str, layout: str, seed: int) -> None:
    """Rows off and on are the same after every step, now and at a random earlier instant."""
    live_through(lab, kind, layout, seed)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_random_histories_lose_nothing(lab: Lab, kind: str, layout: str) -> None:
    """The same, 2,000 histories in all."""
    for seed in range(SEEDS, SEEDS + SOAKED):
        live_through(lab, kind, layout, seed)
