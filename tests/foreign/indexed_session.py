"""A session that indexes queried tables.

The session also backdates files, so queries can skip the files.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.spark_session import Lab

FAILURES = (PySparkException, Py4JJavaError)
FILES = 3
"""If a view has enough rows, the table that replaces the view has this number of files."""

_HOUR_S = 3600
_INDEXED = re.compile(
    r"(boolean|tinyint|smallint|int|bigint|float|double|decimal\(.*\)|date|timestamp|"
    r"timestamp_ntz|string|varchar\(.*\)|binary)$"
)
_VIEW = re.compile(
    r"create\s+(?:or\s+replace\s+)?temp(?:orary)?\s+view\s+(?:if\s+not\s+exists\s+)?`?(\w+)`?"
    r"(?=[\s(]).*\bvalues\b",
    re.IGNORECASE | re.DOTALL,
)
_DROP_VIEW = re.compile(r"drop\s+view\s+(?:if\s+exists\s+)?`?(\w+)`?\s*$", re.IGNORECASE)
_STORED_VIEW = re.compile(
    r"create\s.*?\bview\s+(?:if\s+not\s+exists\s+)?`?(\w+)`?", re.IGNORECASE | re.DOTALL
)
_FILTERS = re.compile(r"\b(where|on|using|having|filter|in|exists|natural)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class _Table:
    """What the session knows about a table: columns, indexes, and changes of files."""

    columns: dict[str, str]
    indexed: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    changed: bool = False


class IndexedSession:
    """Runs all statements except queries, and prepares the tables that queries read.

    Attributes:
        indexed: the names of tables that have ever had an index.
        saved: the names of tables that have replaced temporary views.
        refused: for each error condition, how many statements Sieve has refused.
    """

    def __init__(self, lab: Lab, warehouse: Path) -> None:
        self.lab = lab
        self.indexed: set[str] = set()
        self.saved: set[str] = set()
        self.refused: Counter[str] = Counter()
        self._warehouse = warehouse
        self._tables: dict[str, _Table] = {}
        self._views: dict[str, str] = {}
        self._clock = itertools.count()

    def change(self, statement: str) -> None:
        """Runs a statement other than a query; replaces a temporary view of VALUES by a table."""
        view = _DROP_VIEW.match(statement)
        if view and view[1].lower() in self._tables:
            statement = f"DROP TABLE {view[1]}"
        self.lab.spark.sql(statement).collect()
        if view := _VIEW.match(statement):
            self.save(view[1], self.lab.spark.table(view[1]))
        elif stored := _STORED_VIEW.match(statement):
            self._views[stored[1].lower()] = statement
        self.look()

    def save(self, name: str, rows: DataFrame) -> None:
        """Saves rows as a table of several files, sorted by the first column of a sortable type."""
        ordered = [n for n, kind in rows.dtypes if _INDEXED.match(kind)]
        if not ordered:
            return
        try:
            spread = rows.repartitionByRange(FILES, ordered[0])
            spread.write.mode("overwrite").saveAsTable(f"default.{name}")
        except FAILURES:
            return
        self.saved.add(name.lower())
        self.lab.spark.catalog.dropTempView(name)

    def look(self) -> None:
        """Sets the modification times of new data files back.

        Also records which tables have changed since the previous call.
        """
        young = time.time() - _HOUR_S / 2
        written = set()
        for path in self._data_files():
            if path.stat().st_mtime > young:
                then = int(young) - _HOUR_S + next(self._clock) % _HOUR_S
                os.utime(path, (then, then))
                written.add(path.relative_to(self._warehouse).parts[0])
        listed = self.lab.sql("SHOW TABLES IN default")
        views = {name for _, name, *_ in self.lab.sql("SHOW VIEWS IN default")}
        present = {name for _, name, temporary in listed if not temporary} - views
        for name in set(self._tables) - present:
            del self._tables[name]
        for name in present & (written | (present - set(self._tables))):
            try:
                self.lab.sql(f"REFRESH TABLE default.`{name}`")
                dtypes = self.lab.spark.table(f"default.`{name}`").dtypes
            except FAILURES:
                continue
            kinds = {column.lower(): kind for column, kind in dtypes if _INDEXED.match(kind)}
            self._tables[name] = _Table(kinds, changed=True)

    def _data_files(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._warehouse):
            folders[:] = [name for name in folders if not name.startswith((".", "_"))]
            for name in files:
                if not name.startswith((".", "_")):
                    yield Path(folder, name)

    def prepare(self, query: str) -> bool:
        """Indexes the columns that a query names; returns whether the query names any table."""
        words = {word.lower() for word in _WORD.findall(query)}
        for name in list(words & set(self._views)):
            words |= {word.lower() for word in _WORD.findall(self._views[name])}
        named = words & set(self._tables)
        if _FILTERS.search(query) or words & set(self._views):
            for name in named:
                self._index(name, self._tables[name], words)
        return bool(named)

    def _index(self, name: str, table: _Table, words: set[str]) -> None:
        if table.changed:
            table.indexed = {row[3] for row in self._sieve(f"SHOW SIEVE INDEXES ON default.{name}")}
            if table.indexed:
                self._sieve(f"REFRESH SIEVE INDEX ON default.{name}")
            table.changed = False
        wanted = sorted((words & set(table.columns)) - table.indexed - table.refused)
        singles = [[column] for column in wanted] if len(wanted) > 1 else []
        for some in [wanted, *singles] if wanted else []:
            columns = ", ".join(f"`{column}`" for column in some)
            if table.indexed.issuperset(some):
                continue
            if self._sieve(f"CREATE SIEVE INDEX ON default.{name} ({columns})"):
                table.indexed.update(some)
                self.indexed.add(name)
            elif len(some) == 1:
                table.refused.update(some)

    def _sieve(self, statement: str) -> list[tuple[object, ...]]:
        """The rows of a SIEVE statement, or no rows if Sieve refuses the table or a column."""
        try:
            return self.lab.sql(statement)
        except FAILURES as error:
            found = re.search(r"\[(\w+)", str(error))
            self.refused[found[1] if found else type(error).__name__] += 1
            return []
