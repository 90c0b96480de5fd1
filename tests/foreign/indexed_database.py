"""Indexes each column of a client's tables, and runs each query with and without the indexes."""

from __future__ import annotations

import itertools
import os
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.foreign.hive_proxy import Row, Session, StatementError

ENOUGH_FILES = 3
_HOUR_S = 3600
_QUERY = re.compile(r"\s*SELECT\b", re.IGNORECASE)
_WRITE = re.compile(r"\s*(CREATE|INSERT|DROP|ALTER|TRUNCATE)\b", re.IGNORECASE)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")

Answer = Counter[str] | str
"""The rows as a multiset, or the kind of the error."""


class Tally:
    """The counts of events of all connections. The connections' threads share this object.

    Attributes:
        counts: for each kind of event, how often it has occurred.
        refused: for each error condition, how many statements Sieve has refused.
        differences: for each difference, a text with the database, the query and both answers.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.differences: list[str] = []
        self._lock = threading.Lock()

    def count(self, name: str, number: int = 1) -> None:
        """Adds to a counter."""
        with self._lock:
            self.counts[name] += number

    def refuse(self, condition: str) -> None:
        """Counts one statement that Sieve refused."""
        with self._lock:
            self.refused[condition] += 1

    def differ(self, text: str) -> None:
        """Stores a difference between two answers, and prints this difference.

        Each difference is printed at once, because a user may stop the run at any time.
        """
        with self._lock:
            self.differences.append(text)
            sys.stdout.write(f"DIFFERENCE in {text}\n")
            sys.stdout.flush()


class IndexedDatabase:
    """Watches one connection. The client first fills a database and then queries it.

    Before the first query after a change of tables, the watcher indexes each column. First, the
    watcher sets the modification times of all files back. The files then count as stable. Before
    each query, the watcher runs the same query without the index in the client's session. The
    client's own run of a query, with the index, must return the same rows.

    Args:
        session: the client's session.
        warehouse: the server's folder of databases.
        tally: the counts of all connections.
    """

    def __init__(self, session: Session, warehouse: Path, tally: Tally) -> None:
        self._session = session
        self._warehouse = warehouse
        self._database = ""
        self._tally = tally
        self._changed = False
        self._indexed: set[str] = set()
        self._statements: list[str] = []
        self._without: dict[str, Answer] = {}
        self._clock = itertools.count()

    def before(self, statement: str) -> None:
        """Prepares the tables of a query; see ``IndexedDatabase``."""
        self._tally.count("statements")
        if not _QUERY.match(statement):
            self._changed |= bool(_WRITE.match(statement))
            return
        if self._changed:
            self._prepare()
        if statement not in self._without:
            self._without[statement] = self._run_without(statement)

    def after(self, statement: str, rows: list[Row] | StatementError) -> None:
        """Compares the answers of a query; see ``IndexedDatabase``."""
        if not _QUERY.match(statement):
            if isinstance(rows, list) and _WRITE.match(statement):
                self._statements.append(statement)
            return
        off, on = self._without[statement], _answer(rows)
        self._tally.count("queries compared")
        if isinstance(off, str):
            self._tally.count("queries that fail")
        if on == off:
            return
        if isinstance(off, str) and isinstance(on, Counter):
            self._tally.count("errors spared")
            return
        if isinstance(off, str) and not on:
            # At the end of a round, SQLancer disconnects. The server then reports errors without a
            # cause.
            self._tally.count("errors without a message")
            return
        made = ";\n    ".join(self._statements)
        self._tally.differ(f"{made};\n    {statement}\n  without: {off}\n  with:    {on}")

    def closed(self) -> None:
        """Drops the database, so that a long run does not fill the metastore."""
        if self._database:
            self._session.run("USE default")
            self._session.run(f"DROP DATABASE IF EXISTS {self._database} CASCADE")

    def _prepare(self) -> None:
        self._database = str(self._session.run("SELECT current_database()")[0][0])
        tables = [str(row[1]) for row in self._session.run("SHOW TABLES")]
        for table in tables:
            self._tally.count("tables")
            if self._age(table) >= ENOUGH_FILES:
                self._tally.count(f"tables of {ENOUGH_FILES} files or more")
            self._session.run(f"REFRESH TABLE {table}")
            self._index(table)
        self._changed = False
        self._without.clear()

    def _run_without(self, query: str) -> Answer:
        self._session.run("SET spark.sieve.enabled=false")
        try:
            rows: list[Row] | StatementError = self._session.run(query)
        except StatementError as error:
            rows = error
        self._session.run("SET spark.sieve.enabled=true")
        return _answer(rows)

    def _age(self, table: str) -> int:
        """Sets the modification times of a table's files back, each file to a different second.

        Returns the table's number of files.
        """
        then = int(time.time()) - 2 * _HOUR_S
        folder = self._warehouse / f"{self._database}.db" / table
        files = [path for path in folder.iterdir() if path.name[0] not in "._"]
        for path in files:
            if path.stat().st_mtime > then:
                old = then - _HOUR_S + next(self._clock) % _HOUR_S
                os.utime(path, (old, old))
        return len(files)

    def _index(self, table: str) -> None:
        if table in self._indexed:
            self._sieve(f"REFRESH SIEVE INDEX ON {table}")
            return
        described = [str(row[0]) for row in self._session.run(f"DESCRIBE {table}")]
        # In DESCRIBE's output, an empty line comes before the default values of columns.
        columns = [f"`{name}`" for name in itertools.takewhile(bool, described)]
        if self._sieve(f"CREATE SIEVE INDEX ON {table} ({', '.join(columns)})"):
            self._indexed.add(table)
            self._tally.count("tables indexed")
            self._tally.count("columns indexed", len(columns))

    def _sieve(self, statement: str) -> bool:
        try:
            self._session.run(statement)
        except StatementError as error:
            self._tally.refuse(_condition(error))
            return False
        return True


def _answer(rows: list[Row] | StatementError) -> Answer:
    if isinstance(rows, StatementError):
        return _condition(rows)
    return Counter(repr(row) for row in rows)


def _condition(error: StatementError) -> str:
    text = str(error)
    found = _CONDITION.search(text)
    return text if "SIEVE_" in text or not found else found[1]
