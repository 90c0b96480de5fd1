"""One frozen record per SIEVE statement: what the user asked for, and the columns they get back.

``result_columns`` of each record is a contract with the people who read results by name: pairs of
a column's name and its Spark SQL type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

OptionValue = str | int | float | bool
ResultColumns = tuple[tuple[str, str], ...]

_BUILT: ResultColumns = (
    ("index", "STRING"),
    ("version", "BIGINT"),
    ("files", "BIGINT"),
    ("bytes", "BIGINT"),
    ("seconds", "DOUBLE"),
    ("change", "STRING"),
    ("advice", "STRING"),
)


def quote(name: str) -> str:
    """The name as it can stand in a statement, whatever its characters."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as the user wrote it: ``table``, ``database.table`` or ``catalog.database.table``."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(map(quote, self.parts))


@dataclass(frozen=True, slots=True)
class Namespace:
    """A database as the user wrote it: ``database`` or ``catalog.database``."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(map(quote, self.parts))


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A column, or a field of a struct (``a.b``), in the letters the user wrote."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(map(quote, self.parts))


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``CREATE SIEVE INDEX``: one index per column, all of them or none.

    Attributes:
        table: the table to index.
        columns: at least one; exactly one when ``name`` is given.
        name: the index's name; ``None`` for the default, ``<column>_sieve``.
        if_not_exists: an index of that name is left as it is.
        replace: an index of that name makes room once this one is built.
        options: by lower-case key; which keys exist is not the grammar's business.
        comment: free text kept with the index.
    """

    result_columns: ClassVar[ResultColumns] = _BUILT

    table: TableName
    columns: tuple[ColumnPath, ...]
    name: str | None = None
    if_not_exists: bool = False
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    comment: str | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    """``REFRESH SIEVE INDEX``: by name, by column, or (neither) every index of the table."""

    result_columns: ClassVar[ResultColumns] = _BUILT

    table: TableName
    name: str | None = None
    column: ColumnPath | None = None
    full: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """``DROP SIEVE INDEX``: exactly one of ``name`` and ``column`` is given."""

    result_columns: ClassVar[ResultColumns] = (("index", "STRING"),)

    table: TableName
    name: str | None = None
    column: ColumnPath | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class _AlterIndex:
    """What the ALTER statements share: which index, and the row they answer with."""

    result_columns: ClassVar[ResultColumns] = (("index", "STRING"), ("state", "STRING"))

    table: TableName
    name: str


@dataclass(frozen=True, slots=True)
class EnableIndex(_AlterIndex):
    """``ALTER SIEVE INDEX ... ENABLE``."""


@dataclass(frozen=True, slots=True)
class DisableIndex(_AlterIndex):
    """``ALTER SIEVE INDEX ... DISABLE``."""


@dataclass(frozen=True, slots=True)
class SetIndexOptions(_AlterIndex):
    """``ALTER SIEVE INDEX ... SET OPTIONS``: in force from the next refresh on."""

    options: Mapping[str, OptionValue]


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """``SHOW SIEVE INDEXES`` of a table, of a database, or (neither) of the current database."""

    result_columns: ClassVar[ResultColumns] = (
        ("namespace", "STRING"),
        ("table", "STRING"),
        ("index", "STRING"),
        ("column", "STRING"),
        ("type", "STRING"),
        ("shape", "STRING"),
        ("state", "STRING"),
        ("version", "BIGINT"),
        ("instant", "STRING"),
        ("files", "BIGINT"),
        ("bytes", "BIGINT"),
    )

    table: TableName | None = None
    namespace: Namespace | None = None


@dataclass(frozen=True, slots=True)
class ShowVersions:
    """``SHOW SIEVE VERSIONS``: of one index, or of every index of a table; the newest first."""

    result_columns: ClassVar[ResultColumns] = (
        ("index", "STRING"),
        ("version", "BIGINT"),
        ("change", "STRING"),
        ("state", "STRING"),
        ("instant", "STRING"),
        ("published", "STRING"),
        ("files", "BIGINT"),
        ("runs", "BIGINT"),
        ("bytes", "BIGINT"),
        ("retained", "STRING"),
    )

    table: TableName
    name: str | None = None


@dataclass(frozen=True, slots=True)
class OptimizeIndex:
    """``OPTIMIZE SIEVE INDEX``: one run, as if the index had just been created."""

    result_columns: ClassVar[ResultColumns] = _BUILT

    table: TableName
    name: str | None = None


@dataclass(frozen=True, slots=True)
class VacuumIndex:
    """``VACUUM SIEVE INDEX``: remove what only versions of the past need.

    Attributes:
        table: the table.
        name: of one index; None for all.
        hours: age up to which versions are kept; None for what is set.
    """

    result_columns: ClassVar[ResultColumns] = (
        ("index", "STRING"),
        ("versions", "BIGINT"),
        ("files", "BIGINT"),
        ("bytes", "BIGINT"),
    )

    table: TableName
    name: str | None = None
    hours: float | None = None


@dataclass(frozen=True, slots=True)
class VacuumIndexes:
    """``VACUUM SIEVE INDEXES``: remove what a database's folder holds of no table.

    Attributes:
        namespace: the database; None for the current one.
        hours: age from which what nobody refers to is taken to be left behind; None: 24.
    """

    result_columns: ClassVar[ResultColumns] = (
        ("index", "STRING"),
        ("table", "STRING"),
        ("why", "STRING"),
        ("path", "STRING"),
    )

    namespace: Namespace | None = None
    hours: float | None = None


@dataclass(frozen=True, slots=True)
class DescribeIndex:
    """``DESCRIBE SIEVE INDEX``: EXTENDED also compares the index with the table as it is now."""

    result_columns: ClassVar[ResultColumns] = (("property", "STRING"), ("value", "STRING"))

    table: TableName
    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ExplainSieve:
    """``EXPLAIN SIEVE query``: one row per file scan of the query's plan, which is not run.

    Attributes:
        query: the rest of the statement, letter for letter; Spark parses it.
        margin: as many blanks and line ends as stand before it, so that what Spark says of a
            position counts from the start of the statement.
    """

    result_columns: ClassVar[ResultColumns] = (
        ("scan", "BIGINT"),
        ("table", "STRING"),
        ("indexes", "STRING"),
        ("predicate", "STRING"),
        ("files_total", "BIGINT"),
        ("files_read", "BIGINT"),
        ("bytes_total", "BIGINT"),
        ("bytes_read", "BIGINT"),
        ("reasons", "STRING"),
    )

    query: str
    margin: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EstimateIndex:
    """``ESTIMATE SIEVE INDEX``: what an index would cost and read, told before it is built.

    Attributes:
        table: the table.
        columns: to be indexed, at least one.
        options: as of ``CREATE``.
        predicate: what stands behind WHERE, letter for letter; Spark parses it.
        margin: as of `ExplainSieve`.
    """

    result_columns: ClassVar[ResultColumns] = (
        ("column", "STRING"),
        ("budget", "STRING"),
        ("shape", "STRING"),
        ("bytes", "BIGINT"),
        ("percent", "DOUBLE"),
        ("seconds", "DOUBLE"),
        ("files", "BIGINT"),
        ("files_present", "DOUBLE"),
        ("bytes_present", "BIGINT"),
        ("files_absent", "DOUBLE"),
        ("bytes_absent", "BIGINT"),
        ("files_range", "DOUBLE"),
        ("bytes_range", "BIGINT"),
        ("files_predicate", "BIGINT"),
        ("bytes_predicate", "BIGINT"),
        ("advice", "STRING"),
    )

    table: TableName
    columns: tuple[ColumnPath, ...]
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    predicate: str | None = None
    margin: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckIndex:
    """``CHECK SIEVE INDEX``: by name, or every index of the table.

    Attributes:
        table: the table.
        name: the index's name; ``None``: all of them.
        sample: percent of the files to be read, above 0 and at most 100.
    """

    result_columns: ClassVar[ResultColumns] = (
        ("index", "STRING"),
        ("file", "STRING"),
        ("status", "STRING"),
        ("detail", "STRING"),
    )

    table: TableName
    name: str | None = None
    sample: float = 100


Command = (
    CreateIndex
    | RefreshIndex
    | DropIndex
    | EnableIndex
    | DisableIndex
    | SetIndexOptions
    | ShowIndexes
    | DescribeIndex
    | ExplainSieve
    | EstimateIndex
    | ShowVersions
    | OptimizeIndex
    | VacuumIndex
    | VacuumIndexes
    | CheckIndex
)
