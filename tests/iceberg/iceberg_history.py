"""Random histories of an Iceberg table: writes, branches, maintenance and changes of columns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from iceberg_tables import SMALL_ROW_GROUPS, create
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark_session import Lab

TABLE = "spark_catalog.histories.t"
CONFLICTS = ("ValidationException", "CommitFailedException")
"""Errors that one of two concurrent statements may raise."""


class History:
    """Runs random operations on a table, and compares random queries with and without the index.

    Args:
        labs: the sessions of two writers; each session has a cache of tables.
        seed: the seed that determines the whole history.
    """

    def __init__(self, labs: Sequence[Lab], seed: int) -> None:
        self._labs = labs
        self._lab = lab = labs[0]
        self._random = random.Random(seed)
        self._waiting: list[str] | None = None
        self._promoted = False
        self._number = "k"
        self._names = 0
        self._index = "k_sieve"
        self._next = 0
        self._partitioned = False
        self.refs = ["main"]
        self.skipped = 0
        self.log: list[str] = []
        mode = self._random.choice(["copy-on-write", "merge-on-read"])
        partitions = self._random.choice(
            ["", "PARTITIONED BY (bucket(2, id))", "PARTITIONED BY (k)"]
        )
        create(
            lab,
            TABLE,
            "id BIGINT, k INT, s STRING",
            partitions,
            **self._random.choice([{}, SMALL_ROW_GROUPS]),
            format__version=self._random.choice([2, 3]),
            write_delete_mode=mode,
            write_update_mode=self._random.choice(["copy-on-write", "merge-on-read"]),
            write_merge_mode=self._random.choice(["copy-on-write", "merge-on-read"]),
        )
        self._append()
        indexed = "id, s" if "(k)" in partitions else "id, k, s"
        lab.sql(f"CREATE SIEVE INDEX ON {TABLE} ({indexed})")

    def step(self) -> None:
        """Runs one random operation and two random queries."""
        self._lab = self._random.choice(self._labs)
        operations: Mapping[Callable[[], None], int] = {
            self._append: 4,
            self._delete: 3,
            self._update: 2,
            self._merge: 3,
            self._both_write: 3,
            self._refresh: 4,
            self._compact: 1,
            self._expire: 1,
            self._promote: 1,
            self._branch: 1,
            self._roll_back: 1,
            self._change_column: 1,
            self._change_partitions: 1,
        }
        (operation,) = self._random.choices(list(operations), list(operations.values()))
        operation()
        for lab in self._labs:
            lab.sql(f"REFRESH TABLE {TABLE}")
        for _ in range(2):
            self._lab = self._random.choice(self._labs)
            self._query()

    def _sql(self, text: str) -> list[tuple[object, ...]]:
        if self._waiting is not None:
            self._waiting.append(text)
            return []
        self.log.append(text)
        return self._lab.sql(text)

    def _both_write(self) -> None:
        """Lets both writers run a statement at once; a conflict can make one statement fail."""
        self._waiting = texts = []
        writes = [self._append, self._delete, self._update, self._merge, self._compact]
        for write in self._random.choices([*writes, self._refresh], k=2):
            write()
        self._waiting = None
        self.log.append(" || ".join(texts))
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(lab.sql, text) for lab, text in zip(self._labs, texts, strict=True)]
        for text, run in zip(texts, runs, strict=True):
            try:
                run.result()
                self.log.append(f"-- committed: {text[:60]}")
            except (Py4JJavaError, PySparkException) as error:
                shown = str(getattr(error, "java_exception", None) or error)
                if not any(word in shown for word in CONFLICTS):
                    raise
                self.log.append(f"-- conflict: {text[:60]}")

    def _value(self) -> int:
        return self._random.randrange(-5, self._next + 5)

    def _rows(self, first: int, many: int, files: int) -> str:
        nulls = self._random.choice([3, 7, 1000])
        return (
            f"SELECT /*+ REPARTITION_BY_RANGE({files}, id) */ if(id % {nulls} = 2, NULL, id) id, "
            f"cast(id % 4 AS INT) {self._number}, concat('s', id DIV 3) s "
            f"FROM range({first}, {first + many})"
        )

    def _append(self) -> None:
        many = self._random.choice([1, 20, 60])
        names = f"id, {self._number}, s"
        branch = self._random.choice(self.refs)
        at = TABLE if branch == "main" else f"{TABLE}.branch_{branch}"
        rows = self._rows(self._next, many, self._random.choice([1, 3, 6]))
        self._sql(f"INSERT INTO {at} ({names}) SELECT id, {self._number}, s FROM ({rows})")
        self._next += many

    def _delete(self) -> None:
        self._sql(f"DELETE FROM {TABLE} WHERE {self._predicate()}")

    def _update(self) -> None:
        self._sql(f"UPDATE {TABLE} SET s = concat(s, 'u'), id = id + 1 WHERE {self._predicate()}")

    def _merge(self) -> None:
        first = max(0, self._value() - 3)
        rows = self._rows(first, self._random.choice([1, 6]), 1)
        insert = f"WHEN NOT MATCHED THEN INSERT (id, {self._number}, s) VALUES (src.id, 1, 'n')"
        clause = self._random.choice(
            [
                "WHEN MATCHED THEN DELETE",
                "WHEN MATCHED THEN UPDATE SET s = 'm'",
                f"WHEN MATCHED AND t.id % 2 = 0 THEN DELETE {insert}",
                "WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN DELETE",
            ]
        )
        self._sql(
            f"MERGE INTO {TABLE} t USING (SELECT DISTINCT id FROM ({rows}) WHERE id IS NOT NULL) "
            f"src ON t.id = src.id {clause}"
        )

    def _refresh(self) -> None:
        self._sql(f"REFRESH SIEVE INDEX ON {TABLE}")

    def _compact(self) -> None:
        self._sql(
            "CALL spark_catalog.system.rewrite_data_files(table => 'histories.t', "
            "options => map('min-input-files', '2'))"
        )

    def _expire(self) -> None:
        self._sql(
            "CALL spark_catalog.system.expire_snapshots(table => 'histories.t', "
            "older_than => TIMESTAMP '2100-01-01', retain_last => 4)"
        )

    def _promote(self) -> None:
        if not self._promoted:
            self._sql(f"ALTER TABLE {TABLE} ALTER COLUMN {self._number} TYPE BIGINT")
            self._promoted = True

    def _branch(self) -> None:
        self._names += 1
        kind = self._random.choice(["BRANCH", "TAG"])
        name = f"{kind.lower()}{self._names}"
        self._sql(f"ALTER TABLE {TABLE} CREATE {kind} {name}")
        if kind == "BRANCH":
            self.refs.append(name)

    def _roll_back(self) -> None:
        found = self._sql(
            f"SELECT snapshot_id FROM {TABLE}.history WHERE is_current_ancestor "
            "ORDER BY made_current_at"
        )
        (snapshot,) = self._random.choice(found)
        self._sql(f"CALL spark_catalog.system.rollback_to_snapshot('histories.t', {snapshot})")

    def _change_column(self) -> None:
        self._names += 1
        old, self._number = self._number, f"k{self._names}"
        if self._random.random() < 0.5 or self._partitioned_by(old):
            self._sql(f"ALTER TABLE {TABLE} RENAME COLUMN {old} TO {self._number}")
        else:
            self._number = old
            self._sql(f"ALTER TABLE {TABLE} DROP COLUMN {old}")
            self._sql(f"ALTER TABLE {TABLE} ADD COLUMN {old} INT")
            self._promoted = False
            # REFRESH would fail for an index on a dropped column, so the history replaces the
            # index.
            self._sql(f"DROP SIEVE INDEX {self._index} ON {TABLE}")
            self._index = f"k{self._names}_sieve"
            self._sql(f"CREATE SIEVE INDEX {self._index} ON {TABLE} ({old})")

    def _partitioned_by(self, name: str) -> bool:
        # Returns whether a partition spec may contain this column. Iceberg cannot read a table with
        # a partition spec that refers to a dropped column.
        specs = self._lab.sql(f"SHOW CREATE TABLE {TABLE}")[0][0]
        return self._partitioned or f"PARTITIONED BY ({name}" in str(specs)

    def _change_partitions(self) -> None:
        if self._partitioned:
            self._sql(f"ALTER TABLE {TABLE} DROP PARTITION FIELD truncate(1, s)")
        else:
            self._sql(f"ALTER TABLE {TABLE} ADD PARTITION FIELD truncate(1, s)")
        self._partitioned = not self._partitioned

    def _predicate(self) -> str:
        value, other = self._value(), self._value()
        return self._random.choice(
            [
                f"id = {value}",
                f"id IN ({value}, {other}, {value + 1})",
                f"id BETWEEN {value} AND {value + 4}",
                f"s = 's{value // 3}'",
                f"{self._number} = {value % 5} AND id > {other}",
                "id IS NULL",
                f"id = {value} OR s = 's{other // 3}'",
            ]
        )

    def _query(self) -> None:
        predicate = self._predicate()
        of = ""
        if self._random.random() < 0.4 and self._number not in predicate:
            ((versions),) = [self._lab.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots")]
            names = [row[0] for row in self._lab.sql(f"SELECT name FROM {TABLE}.refs")]
            chosen = self._random.choice([*(row[0] for row in versions), *names])
            of = f" VERSION AS OF {chosen!r}"
        query = f"SELECT * FROM {TABLE}{of} WHERE {predicate}"
        if self._random.random() < 0.3:
            keys = ", ".join(f"({self._value()}L)" for _ in range(3))
            query = (
                f"SELECT /*+ BROADCAST(d) */ t.* FROM {TABLE}{of} t "
                f"JOIN (VALUES {keys} AS d(id)) d ON t.id = d.id"
            )
        elif self._random.random() < 0.3:
            where = self._random.choice(["", f"WHERE {predicate}"])
            order = self._random.choice(["", "DESC", "NULLS LAST"])
            query = self._random.choice(
                [
                    f"SELECT id FROM {TABLE}{of} {where} ORDER BY id {order} LIMIT 5",
                    f"SELECT s FROM {TABLE}{of} {where} ORDER BY s {order} LIMIT 1",
                    f"SELECT min(id), max(s) FROM {TABLE}{of} {where}",
                ]
            )
        self.log.append(query)
        with self._lab.setting("spark.sieve.enabled", "false"):
            try:
                off = self._lab.run(query)
            except Py4JJavaError as error:
                # If the type of a partition column was promoted, Iceberg 1.12 cannot read earlier
                # snapshots, with or without an index.
                if "ConstantColumnVector.getInt" not in str(error):
                    raise
                return
        on = self._lab.check(query, known={query: off})
        self.skipped += off.files - on.files
