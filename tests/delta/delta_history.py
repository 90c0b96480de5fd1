"""Runs random commands on a Delta table, and checks the table's rows after each command."""

from __future__ import annotations

import contextlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from delta_model import KEYS, MERGES, Question, Row, State, Stretch, rows_of, select_of
from delta_tables import MAPPED, NO_STATISTICS, SPARK, VECTORS, create, given
from pyspark.errors import PySparkException
from spark_session import INTERPRETED, Lab

TRACKED = {"delta.enableRowTracking": "true"}
# Delta clusters only by columns that have statistics.
CLUSTERED = {"delta.dataSkippingStatsColumns": "amount"}
WIDENING = {"delta.enableTypeWidening": "true"}
LAYOUTS = {
    "vectors": ("", VECTORS | MAPPED),
    "rewriting": ("", MAPPED),
    "parts": ("PARTITIONED BY (part)", VECTORS | {"delta.columnMapping.mode": "id"}),
    "clustered": ("CLUSTER BY (amount)", VECTORS | MAPPED | TRACKED | CLUSTERED),
    "plain": ("", VECTORS),
}
"""Each kind of table has an SQL text that follows the columns, and table properties."""
COLUMNS = "id BIGINT, amount INT, part INT, s STRUCT<a: BIGINT, b: STRING>"
SETTINGS = INTERPRETED | {
    "spark.sieve.strict": "true",
    "spark.sieve.audit.sample": "0.1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
    # With this setting, each scan of the small tables has one task.
    "spark.sql.files.minPartitionNum": "1",
}


class History:
    """A table on which random commands and refreshes run.

    A model in Python computes the rows after each command. After each command, the history reads
    the table without an index, and compares it with the model. The column `amount` can change its
    name, type and position. After DROP and ADD, `amount` is a new column.

    Args:
        lab: the session.
        layout: the kind of table.
        seed: the seed of all random choices.
    """

    def __init__(self, lab: Lab, layout: str, seed: str) -> None:
        self.lab, self.layout, self.seed = lab, layout, seed
        self.chance = random.Random(seed)
        self.done = Counter[str]()
        """The number of steps of each kind that Delta has accepted."""
        self.names = 0
        self.past: dict[int, State] = {}
        self.has_lost_columns = False
        """Whether an index can belong to a dropped column."""
        self.told: list[str] = []
        """The statements that have run so far."""

    def run(self, steps: int) -> Counter[str]:
        """Makes the table, runs `steps` commands, and then queries each remaining table version.

        Returns:
            How many commands of each kind Delta has accepted.
        """
        name = "delta_" + re.sub("[^a-z0-9]", "_", self.seed)
        with self.lab.database(name), self.lab.settings(SETTINGS):
            try:
                self.begin()
                for _ in range(steps):
                    self.chance.choice(self.steps())()
                    self.queries_have_their_rows()
                self.versions_have_their_rows()
                self.indexes_are_right()
            except BaseException as error:
                error.add_note(";\n".join(self.told))
                raise
        return self.done

    def steps(self) -> list[Callable[[], None]]:
        """The commands from which the history chooses at random."""
        return [
            self.insert, self.overwrite, self.update, self.delete, self.merge, self.merge,
            self.optimize, self.z_order, self.reorg, self.vacuum, self.vectors, self.restore,
            self.replace, self.clone, self.rename, self.renew, self.widen,
        ]  # fmt: skip

    # -- commands whose result the model can compute -----------------------------------------

    def begin(self) -> None:
        """Makes and fills the table, and creates an index on each of three numeric columns."""
        more, properties = LAYOUTS[self.layout]
        create(self.lab, columns=COLUMNS, more=more, layout=properties, widening=WIDENING)
        folder = dict(row[:2] for row in self.lab.sql("DESCRIBE EXTENDED t"))["Location"]
        self.log = Path(unquote(folder.removeprefix("file:"))) / "_delta_log"
        self.columns, self.wide, self.oldest = ["id", "amount", "part", "s"], False, 1
        rows = self.select((0, KEYS), "a")
        rows = rows.replace("SELECT", "SELECT /*+ REPARTITION_BY_RANGE(6, id) */", 1)
        self.sql(f"INSERT INTO t {rows}")
        self.leaves(self.made((0, KEYS), "a"))
        self.sql("CREATE SIEVE INDEX ON t (id, amount, s.a)")

    def insert(self) -> None:
        keys = self.keys()
        self.sql(f"INSERT INTO t {self.select(keys, 'i')}")
        self.does("insert", [*self.rows, *self.made(keys, "i")])

    def overwrite(self) -> None:
        self.sql("INSERT OVERWRITE t SELECT * FROM t WHERE id % 7 <> 0")
        self.does("overwrite", [row for row in self.rows if row.id % 7])

    def update(self) -> None:
        (low, high), amount = self.keys(), self.chance.randrange(100)
        self.sql(f"UPDATE t SET {self.amount} = {amount} WHERE id >= {low} AND id < {high}")
        self.does(
            "update",
            [row._replace(amount=amount) if low <= row.id < high else row for row in self.rows],
        )

    def delete(self) -> None:
        low = self.chance.randrange(100)
        high = low + self.chance.choice([0, 3, 20])
        self.sql(f"DELETE FROM t WHERE {self.amount} BETWEEN {low} AND {high}")
        self.does(
            "delete",
            [row for row in self.rows if row.amount is None or not low <= row.amount <= high],
        )

    def merge(self) -> None:
        keys, how, low = self.keys(), self.chance.choice(MERGES), self.chance.choice([0, 90])
        below = self.chance.randrange(30)
        self.sql(f"CREATE OR REPLACE TEMP VIEW source AS {self.select(keys, 'm')}")
        self.sql(
            f"MERGE INTO t USING source ON t.id = source.id AND t.id >= {low} {how.clauses(below)}"
        )
        self.does("merge", how.result(self.rows, self.made(keys, "m"), low, below))

    def replace(self) -> None:
        more, layout = LAYOUTS[self.layout]
        made = f"{more} {given(NO_STATISTICS | WIDENING | layout)}".replace("amount", self.amount)
        self.sql(
            f"CREATE OR REPLACE TABLE t USING delta {made} AS SELECT * FROM t WHERE id % 9 <> 0"
        )
        if SPARK < (4, 0) and MAPPED.items() <= layout.items():
            # In Delta 3.3, REPLACE gives the columns new names in the files. RESTORE brings back
            # the old names.
            self.has_lost_columns = True
            for (name,) in self.lab.sql("SELECT index FROM sieve_indexes()"):
                self.sql(f"DROP SIEVE INDEX {name} ON t")
            self.sql(f"CREATE SIEVE INDEX ON t (id, {self.amount}, s.a)")
        self.does("replace", [row for row in self.rows if row.id % 9])

    # -- commands that Delta may refuse for some tables --------------------------------------

    def optimize(self) -> None:
        self.service("optimize", "OPTIMIZE t")

    def z_order(self) -> None:
        self.service("z-order", "OPTIMIZE t ZORDER BY (id)")

    def reorg(self) -> None:
        self.service("reorg", "REORG TABLE t APPLY (PURGE)")

    def vacuum(self) -> None:
        self.service("vacuum", "VACUUM t RETAIN 0 HOURS")
        self.oldest = self.newest()

    def vectors(self) -> None:
        on = self.chance.choice(["true", "false"])
        how = f"SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{on}')"
        self.service("vectors", f"ALTER TABLE t {how}")

    def restore(self) -> None:
        known = [version for version in self.past if version >= self.oldest]
        version = self.chance.choice(known[-7:])
        self.service(
            "restore", f"RESTORE TABLE t TO VERSION AS OF {version}", self.past[version].rows
        )

    def rename(self) -> None:
        self.names += 1
        to = f"amount{self.names}"
        self.service("rename", f"ALTER TABLE t RENAME COLUMN {self.amount} TO {to}")

    def renew(self) -> None:
        name = self.amount
        rows = [row._replace(amount=None) for row in self.rows]
        if self.accepts(f"ALTER TABLE t DROP COLUMN {name}"):
            self.names += 1
            self.sql(f"ALTER TABLE t ADD COLUMN {name} INT")
            self.sql(f"CREATE SIEVE INDEX amount{self.names} ON t ({name})")
            self.has_lost_columns = True
            self.does("renew", rows)

    def widen(self) -> None:
        self.service("widen", f"ALTER TABLE t ALTER COLUMN {self.amount} TYPE BIGINT")

    def clone(self) -> None:
        if not self.accepts("CREATE TABLE c SHALLOW CLONE t"):
            return
        self.sql("CREATE SIEVE INDEX ON c (id)")
        self.sql(f"INSERT INTO c {self.select((5, 10), 'c')}")
        keys = Counter(row.id for row in [*self.rows, *self.made((5, 10), "c")])
        for _ in range(2):
            found = Counter(k for (k,) in self.lab.sql("SELECT id FROM c WHERE id IN (7, 42, 123)"))
            assert found == Counter({k: keys[k] for k in (7, 42, 123) if k in keys})
            self.sql("REFRESH SIEVE INDEX ON c")
        self.sql("DROP TABLE c")
        self.done["clone"] += 1

    # -- the table and its model -------------------------------------------------------------

    @property
    def rows(self) -> tuple[Row, ...]:
        """The table's rows, according to the last check."""
        return self.state.rows

    @property
    def amount(self) -> str:
        """The name that the column `amount` has now."""
        return self.state.amount

    def keys(self) -> Stretch:
        first = self.chance.randrange(KEYS)
        return first, first + self.chance.choice([60, 7, 1])

    def select(self, keys: Stretch, word: str) -> str:
        return select_of(self.columns, keys, word, wide=self.wide)

    def made(self, keys: Stretch, word: str) -> list[Row]:
        return rows_of(keys, word, wide=self.wide)

    def newest(self) -> int:
        """The number of the table's newest version."""
        return max(int(path.stem) for path in self.log.glob("*.json"))

    def sql(self, statement: str) -> None:
        self.told.append(statement)
        self.lab.sql(statement)

    def accepts(self, statement: str) -> bool:
        """Runs a statement that Delta may refuse; returns whether the statement ran."""
        before = self.newest()
        try:
            self.sql(statement)
        except PySparkException as error:
            if "SIEVE" in str(error) or self.newest() != before:
                raise
            self.told[-1] = f"-- refused: {statement}"
            return False
        return True

    def service(self, kind: str, statement: str, rows: Sequence[Row] | None = None) -> None:
        """Runs a command. Then checks the table's rows; None means no change."""
        if self.accepts(statement):
            self.does(kind, self.rows if rows is None else rows)

    def does(self, kind: str, rows: Sequence[Row]) -> None:
        """Counts a command; checks that the table now contains ``rows``.

        Also runs a REFRESH with a probability of one half.
        """
        self.done[kind] += 1
        self.leaves(rows)
        if self.chance.random() < 0.5:
            if not self.has_lost_columns:
                self.sql("REFRESH SIEVE INDEX ON t")
            else:
                for (name,) in self.lab.sql("SELECT index FROM sieve_indexes()"):
                    with dropped_columns_ignored():
                        self.sql(f"REFRESH SIEVE INDEX {name} ON t")

    def leaves(self, rows: Sequence[Row]) -> None:
        """Reads the table without an index, and asserts that it contains exactly ``rows``."""
        with self.lab.setting("spark.sieve.enabled", "false"):
            frame = self.lab.spark.sql("SELECT * FROM t")
            name = next(n for n in frame.columns if n not in ("id", "part", "s"))
            found = tuple(
                Row(r["id"], r[name], r["part"], r["s"]["a"], r["s"]["b"]) for r in frame.collect()
            )
        assert Counter(found) == Counter(rows)
        self.columns, self.wide = frame.columns, dict(frame.dtypes)[name] == "bigint"
        self.state = State(name, found)
        self.past[self.newest()] = self.state

    # -- conditions that must hold -----------------------------------------------------------

    def queries_have_their_rows(self) -> None:
        """Queries points and ranges of all columns, in the newest version and in a random version.

        One further query has a LIMIT, a top-k or a join.
        """
        version = self.chance.choice([v for v in self.past if v >= self.oldest])
        question = Question()
        question.filters("t", self.state, self.chance, 3)
        question.filters(f"t VERSION AS OF {version}", self.past[version], self.chance, 1)
        question.other(self.state, self.chance)
        question.check(self.lab)

    def versions_have_their_rows(self) -> None:
        """Checks that each readable version has the keys that the model had at that version."""
        question = Question()
        keys = tuple(self.chance.sample(range(KEYS), 3))
        for version in range(self.oldest, self.newest() + 1):
            state = self.past[min(v for v in self.past if v >= version)]
            question.add(
                f"id, s.a AS a FROM t VERSION AS OF {version} "
                f"WHERE id IN {keys} OR s.a = {2 * keys[0]}",
                [(r.id, r.a) for r in state.rows if r.id in keys or r.a == 2 * keys[0]],
            )
        question.check(self.lab)

    def indexes_are_right(self) -> None:
        """Checks the table's indexes with CHECK SIEVE INDEX."""
        states = set()
        for (name,) in self.lab.sql("SELECT index FROM sieve_indexes()"):
            with dropped_columns_ignored():
                states |= {row[2] for row in self.lab.sql(f"CHECK SIEVE INDEX {name} ON t")}
        assert states <= {"ok", "stale", "gone"}


@contextlib.contextmanager
def dropped_columns_ignored() -> Iterator[None]:
    """Ignores the error that REFRESH and CHECK raise for an index on a dropped column."""
    try:
        yield
    except PySparkException as error:
        if "SIEVE_UNKNOWN_COLUMN" not in str(error):
            raise
