"""Random histories of Delta tables: after each step all queries have the rows they have without."""

from __future__ import annotations

import contextlib
import random

import pytest
from delta_tables import MAPPED, VECTORS, create
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
from pyspark.errors import PySparkException
from spark_session import Lab

KEYS = 200
# The first history drawn is the dullest; making the table counts as a step.
HISTORIES, STEPS, SOAKED = 3, 10, 100
BY_ID = {"delta.columnMapping.mode": "id"}
TRACKED = {"delta.enableRowTracking": "true"}
LAYOUTS = {
    "vectors": ("", VECTORS | MAPPED),
    "rewriting": ("", MAPPED),
    "parts": ("PARTITIONED BY (part)", VECTORS | BY_ID),
    "clustered": ("CLUSTER BY (amount)", VECTORS | MAPPED | TRACKED),
    "plain": ("", VECTORS),
}
COLUMNS = "id BIGINT, amount INT, part INT, s STRUCT<a: BIGINT, b: STRING>"
WIDENING = {"delta.enableTypeWidening": "true"}

SERVICES = (
    "OPTIMIZE t",
    "OPTIMIZE t ZORDER BY (id)",
    "REORG TABLE t APPLY (PURGE)",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "INSERT OVERWRITE t SELECT * FROM t WHERE id % 2 = 0",
)
FLOOR = 20
"""Files that the queries and commands of a history skip at least."""

_STRETCHES = st.builds(
    lambda first, length: (first, first + length),
    st.integers(0, KEYS - 1),
    st.sampled_from([60, 7, 1]),
)
"""Keys from one up to, without, another."""
_AMOUNTS = st.integers(0, 99)


class History(RuleBasedStateMachine):
    """A table, what commands do with it, and refreshes between.

    What a command is to leave is asked of the table before it, without an index. The column
    `amount` changes its name, its type and its place among the columns, and is dropped and added.
    """

    def __init__(self, lab: Lab, layout: str) -> None:
        super().__init__()
        self.lab, self.layout = lab, layout
        self.stack = contextlib.ExitStack()
        self.chance = random.Random()
        self.names = 0

    @property
    def is_mapped(self) -> bool:
        return "delta.columnMapping.mode" in LAYOUTS[self.layout][1]

    def columns(self, source: str = "t") -> list[str]:
        return self.lab.spark.sql(f"SELECT * FROM {source}").columns

    def amount(self, source: str = "t") -> str:
        """The name that `amount` has."""
        return next(name for name in self.columns(source) if name not in ("id", "part", "s"))

    def rows(self, keys: tuple[int, int], word: str) -> str:
        """A query of rows of such keys, in the order of the table's columns."""
        values = {
            "id": "id",
            "part": "CAST(id % 3 AS INT)",
            "s": f"named_struct('a', id * 2, 'b', '{word}')",
        }
        listed = [
            f"{values.get(name, 'CAST(pmod(hash(id), 100) AS INT)')} AS {name}"
            for name in self.columns()
        ]
        return f"SELECT {', '.join(listed)} FROM range({keys[0]}, {keys[1]})"

    def without(self, query: str) -> list[str]:
        with self.lab.setting("spark.sieve.enabled", "false"):
            return sorted(map(repr, self.lab.sql(query)))

    def command(self, statement: str, leaves: str, refreshed: bool) -> None:
        """Runs a command that is to leave the rows that a query has before it."""
        expected = self.without(leaves)
        self.lab.sql(statement)
        assert self.without("SELECT * FROM t") == expected, statement
        self.refresh(refreshed)

    def service(self, statement: str, refreshed: bool) -> None:
        """Runs what Delta may refuse: it cannot do all to every table."""
        with contextlib.suppress(PySparkException):
            self.lab.sql(statement)
        self.refresh(refreshed)

    def refresh(self, wanted: bool) -> None:
        # A column that was dropped leaves an index that cannot be refreshed.
        if wanted:
            for (name,) in self.lab.sql("SELECT index FROM sieve_indexes()"):
                with contextlib.suppress(PySparkException):
                    self.lab.sql(f"REFRESH SIEVE INDEX {name} ON t")

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.chance.seed(seed)
        more, properties = LAYOUTS[self.layout]
        self.stack.enter_context(self.lab.database("delta_random"))
        self.stack.enter_context(
            self.lab.settings({"spark.sieve.audit.sample": "1.0", "spark.sieve.strict": "true"})
        )
        create(self.lab, columns=COLUMNS, more=more, layout=properties, widening=WIDENING)
        for keys in ((0, 60), (60, 120), (120, KEYS)):
            self.lab.sql(f"INSERT INTO t {self.rows(keys, 'a')}")
        self.lab.sql("CREATE SIEVE INDEX ON t (id, amount, s.a)")

    @rule(keys=_STRETCHES, refreshed=st.booleans())
    def insert(self, keys: tuple[int, int], refreshed: bool) -> None:
        rows = self.rows(keys, "i")
        self.command(f"INSERT INTO t {rows}", f"SELECT * FROM t UNION ALL {rows}", refreshed)

    @rule(keys=_STRETCHES, amount=_AMOUNTS, refreshed=st.booleans())
    def update(self, keys: tuple[int, int], amount: int, refreshed: bool) -> None:
        chosen, name = f"id BETWEEN {keys[0]} AND {keys[1]}", self.amount()
        listed = [
            f"IF({chosen}, {amount}, {name})" if column == name else column
            for column in self.columns()
        ]
        self.command(
            f"UPDATE t SET {name} = {amount} WHERE {chosen}",
            f"SELECT {', '.join(listed)} FROM t",
            refreshed,
        )

    @rule(low=_AMOUNTS, width=st.sampled_from([0, 3, 20]), refreshed=st.booleans())
    def delete(self, low: int, width: int, refreshed: bool) -> None:
        chosen = f"{self.amount()} BETWEEN {low} AND {low + width}"
        leaves = f"SELECT * FROM t WHERE NOT (({chosen}) <=> true)"
        self.command(f"DELETE FROM t WHERE {chosen}", leaves, refreshed)

    @rule(keys=_STRETCHES, of_source=st.booleans(), refreshed=st.booleans())
    def merge(self, keys: tuple[int, int], of_source: bool, refreshed: bool) -> None:
        self.lab.sql(f"CREATE OR REPLACE TEMP VIEW source AS {self.rows(keys, 'm')}")
        below = 9 if of_source else 0
        kept = [
            "IF(source.id IS NULL, t.s, source.s)" if name == "s" else f"t.{name}"
            for name in self.columns()
        ]
        self.command(
            "MERGE INTO t USING source ON t.id = source.id WHEN MATCHED AND source.id % 5 = 0 "
            "THEN DELETE WHEN MATCHED THEN UPDATE SET s = source.s WHEN NOT MATCHED THEN INSERT *"
            + (f" WHEN NOT MATCHED BY SOURCE AND t.id < {below} THEN DELETE" if of_source else ""),
            f"SELECT {', '.join(kept)} FROM t LEFT JOIN source ON t.id = source.id "
            f"WHERE (source.id IS NULL AND t.id >= {below}) OR source.id % 5 <> 0 "
            "UNION ALL SELECT * FROM source WHERE id NOT IN (SELECT id FROM t)",
            refreshed,
        )

    @rule(how=st.sampled_from(SERVICES), refreshed=st.booleans())
    def maintain(self, how: str, refreshed: bool) -> None:
        self.service(how, refreshed)

    @rule(back=st.integers(1, 6), refreshed=st.booleans())
    def restore(self, back: int, refreshed: bool) -> None:
        version = max(1, self.newest() - back)
        self.service(f"RESTORE TABLE t TO VERSION AS OF {version}", refreshed)

    @precondition(lambda self: self.is_mapped)
    @rule(refreshed=st.booleans())
    def rename(self, refreshed: bool) -> None:
        self.names += 1
        self.service(
            f"ALTER TABLE t RENAME COLUMN {self.amount()} TO amount{self.names}", refreshed
        )

    @precondition(lambda self: self.is_mapped and self.layout != "clustered")
    @rule(refreshed=st.booleans())
    def renew(self, refreshed: bool) -> None:
        name = self.amount()
        self.lab.sql(f"ALTER TABLE t DROP COLUMN {name}")
        self.lab.sql(f"ALTER TABLE t ADD COLUMN {name} INT")
        self.refresh(refreshed)

    @rule(refreshed=st.booleans())
    def widen(self, refreshed: bool) -> None:
        self.service(f"ALTER TABLE t ALTER COLUMN {self.amount()} TYPE BIGINT", refreshed)

    def newest(self) -> int:
        return int(self.lab.spark.sql("DESCRIBE HISTORY t LIMIT 1").first()["version"])

    @invariant()
    def queries_have_their_rows(self) -> None:
        """Points and ranges of all columns, now and in some version; a LIMIT, a top-k, a join."""
        version = self.chance.randint(1, max(1, self.newest()))
        for source in ("t", f"t VERSION AS OF {version}"):
            name = self.amount(source)
            held = self.lab.sql(f"SELECT id, {name}, s.a FROM {source} ORDER BY rand(7) LIMIT 1")
            key, amount, a = held[0] if held else (0, 0, 0)
            low, other = (self.chance.randrange(100) for _ in range(2))
            conditions = (
                f"{name} <=> {'NULL' if amount is None else amount}",
                f"s.a = {a} OR id = {other}",
                f"{name} BETWEEN {low} AND {low + 2} AND id > {other}",
                f"id IN ({key}, {other}, 1000)",
            )
            for condition in self.chance.sample(conditions, 2):
                self.lab.check(f"SELECT * FROM {source} WHERE {condition}")
        others = (
            "SELECT count(*) FROM (SELECT * FROM t LIMIT 20)",
            f"SELECT id FROM t WHERE id > {other} ORDER BY id LIMIT 5",
            f"SELECT count(*), sum(id) FROM t JOIN range({key}, {key + 2}) d USING (id)",
        )
        self.lab.check(self.chance.choice(others))

    def teardown(self) -> None:
        with self.stack:
            # A table that could not be made has failed the test already.
            states = {
                row[2]
                for (name,) in self.lab.sql("SELECT index FROM sieve_indexes()")
                for row in self.checked(name)
            }
            assert states <= {"ok", "stale", "gone"}

    def checked(self, name: str) -> list[tuple[object, ...]]:
        try:
            return self.lab.sql(f"CHECK SIEVE INDEX {name} ON t")
        except PySparkException as error:
            # Its column was dropped.
            if "UNRESOLVED_COLUMN" not in str(error):
                raise
            return []


def live_through(lab: Lab, layout: str, histories: int, **how: object) -> None:
    """So many histories; what fails is told step by step, and not made shorter: each takes long."""
    skipped = "SELECT value FROM sieve_status() WHERE counter = 'files_skipped'"
    ((before,),) = lab.sql(skipped)
    run_state_machine_as_test(
        lambda: History(lab, layout),
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
    ((after,),) = lab.sql(skipped)
    assert after - before >= FLOOR * histories


@pytest.mark.delta
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_random_history_loses_nothing(lab: Lab, layout: str) -> None:
    """Rows off and on are the same after every step, now and in a random earlier version."""
    live_through(lab, layout, HISTORIES, derandomize=True)


@pytest.mark.soak
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_random_histories_lose_nothing(lab: Lab, layout: str) -> None:
    """The same, 500 histories in all."""
    live_through(lab, layout, SOAKED, print_blob=True)
