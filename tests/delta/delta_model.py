"""Computes in Python the rows of a Delta table after each command, and the rows of queries."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_session import Lab

KEYS = 200
WIDE = 5_000_000_000


class Row(NamedTuple):
    """A row of the table ``(id, amount, part, s STRUCT<a, b>)``."""

    id: int
    amount: int | None
    part: int
    a: int
    b: str


Stretch = tuple[int, int]
"""A half-open range of keys: [first, end)."""


def rows_of(keys: Stretch, word: str, *, wide: bool) -> list[Row]:
    """The rows that the query from ``select_of`` returns for ``keys``."""
    return [
        Row(k, (k * 37 + 11) % 100 + (WIDE if wide and k % 10 == 0 else 0), k % 3, k * 2, word)
        for k in range(*keys)
    ]


def select_of(columns: Iterable[str], keys: Stretch, word: str, *, wide: bool) -> str:
    """Returns the text of a query that returns one row per key.

    Args:
        columns: the table's columns in order. Each name except id, part and s stands for `amount`.
        keys: the keys of the rows.
        word: the value of ``s.b`` in all rows.
        wide: whether every tenth value of `amount` is too large for an INT.
    """
    more = f" + IF(id % 10 = 0, {WIDE}, 0)" if wide else ""
    values = {
        "id": "id",
        "part": "CAST(id % 3 AS INT)",
        "s": f"named_struct('a', id * 2, 'b', '{word}')",
    }
    amount = f"CAST((id * 37 + 11) % 100{more} AS {'BIGINT' if wide else 'INT'})"
    listed = ", ".join(f"{values.get(name, amount)} AS {name}" for name in columns)
    return f"SELECT {listed} FROM range({keys[0]}, {keys[1]})"


@dataclass(frozen=True, slots=True)
class Merge:
    """The WHEN clauses of a MERGE statement.

    Attributes:
        matched: whether MERGE changes matched rows. MERGE deletes rows with a key divisible by
            five, and updates other rows.
        inserts: whether MERGE inserts source rows without a match.
        unmatched: the action for target rows without a match that have a key below a limit:
            ``DELETE``, ``UPDATE`` or "".
    """

    matched: bool
    inserts: bool
    unmatched: str = ""

    def clauses(self, below: int) -> str:
        """The SQL text of the clauses, for the target `t` and the source `source`."""
        listed = []
        if self.matched:
            listed.append(
                "WHEN MATCHED AND source.id % 5 = 0 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET s = source.s"
            )
        if self.inserts:
            listed.append("WHEN NOT MATCHED THEN INSERT *")
        if self.unmatched:
            does = {
                "DELETE": "DELETE",
                "UPDATE": "UPDATE SET s = named_struct('a', t.s.a + 1000, 'b', 'n')",
            }[self.unmatched]
            listed.append(f"WHEN NOT MATCHED BY SOURCE AND t.id < {below} THEN {does}")
        return " ".join(listed)

    def result(self, rows: Sequence[Row], source: Sequence[Row], low: int, below: int) -> list[Row]:
        """The target's rows after a MERGE. Target rows with keys below ``low`` match nothing."""
        by_key = {row.id: row for row in source}
        left: list[Row] = []
        for row in rows:
            new = by_key.get(row.id) if row.id >= low else None
            if new is None:
                if self.unmatched != "DELETE" or row.id >= below:
                    changes = self.unmatched == "UPDATE" and row.id < below
                    left.append(row._replace(a=row.a + 1000, b="n") if changes else row)
            elif not self.matched:
                left.append(row)
            elif row.id % 5:
                left.append(row._replace(a=new.a, b=new.b))
        taken = {row.id for row in rows if row.id >= low}
        return left + ([row for row in source if row.id not in taken] if self.inserts else [])


MERGES = (
    Merge(matched=True, inserts=True),
    Merge(matched=True, inserts=False),
    Merge(matched=False, inserts=True),
    Merge(matched=True, inserts=True, unmatched="DELETE"),
    Merge(matched=True, inserts=False, unmatched="UPDATE"),
)


@dataclass(frozen=True, slots=True)
class State:
    """A version of the table: its rows, and the name of the column `amount` in this version."""

    amount: str
    rows: tuple[Row, ...]


class Question:
    """Queries that run together as one UNION ALL. Each result row has the number of its query."""

    def __init__(self) -> None:
        self._branches: list[str] = []
        self._expected: Counter[tuple[object, ...]] = Counter()

    def add(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        """Adds a query with its expected rows; ``query`` is the text after SELECT."""
        number = len(self._branches)
        self._branches.append(f"SELECT {number} AS q, {query}")
        self._expected.update((number, *row) for row in rows)

    def check(self, lab: Lab) -> None:
        """Runs the queries, and asserts that each query returns the expected rows."""
        text = " UNION ALL ".join(self._branches)
        found = Counter(lab.sql(text))
        assert found == self._expected, text

    def filters(self, source: str, state: State, chance: random.Random, number: int) -> None:
        """Adds ``number`` point, list and range queries on random columns of one table version."""
        name = state.amount
        key, amount, _, a, _ = chance.choice(state.rows) if state.rows else Row(0, 0, 0, 0, "")
        low, other = (chance.randrange(100) for _ in range(2))
        tests: tuple[tuple[str, Callable[[Row], bool]], ...] = (
            (
                f"{name} <=> {'NULL' if amount is None else amount}",
                lambda row: row.amount == amount,
            ),
            (f"s.a = {a} OR id = {other}", lambda row: row.a == a or row.id == other),
            (
                f"{name} BETWEEN {low} AND {low + 2} AND id > {other}",
                lambda row: (
                    row.amount is not None and low <= row.amount <= low + 2 and row.id > other
                ),
            ),
            (f"id IN ({key}, {other}, 1000)", lambda row: row.id in (key, other, 1000)),
        )
        for condition, fits in chance.sample(tests, number):
            rows = filter(fits, state.rows)
            self.add(f"{_columns(name)} FROM {source} WHERE {condition}", rows)

    def other(self, state: State, chance: random.Random) -> None:
        """Adds a query with a LIMIT, a top-k or a join, for the table's newest version."""
        rest = "CAST(NULL AS BIGINT) AS amount, 0 AS part, 0L AS a, '' AS b"
        low, key = chance.randrange(100), chance.randrange(KEYS)
        least = sorted(row.id for row in state.rows if row.id > low)[:5]
        self.add(*chance.choice([
            (
                f"count(*), {rest} FROM (SELECT * FROM t LIMIT 20)",
                [Row(min(20, len(state.rows)), None, 0, 0, "")],
            ),
            (
                f"id, {rest} FROM (SELECT id FROM t WHERE id > {low} ORDER BY id LIMIT 5)",
                [Row(k, None, 0, 0, "") for k in least],
            ),
            (
                f"{_columns(state.amount)} FROM t JOIN range({key}, {key + 2}) d (k) ON t.id = d.k",
                [row for row in state.rows if row.id in (key, key + 1)],
            ),
        ]))  # fmt: skip


def _columns(amount: str) -> str:
    """The SELECT list for the fields of a `Row`."""
    return f"id, CAST({amount} AS BIGINT) AS amount, part, s.a AS a, s.b AS b"
