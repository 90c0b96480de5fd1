"""Command records: one frozen record type per SIEVE statement, with the statement's columns.

A record contains the parts of a statement's text. The record's ``result_columns`` lists the name
and the Spark SQL type of each result column. Clients that read results by column name depend on
these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from sieve.client import answer_columns

OptionValue = str | int | float | bool
ResultColumns = tuple[tuple[str, str], ...]

_SQL_TYPES = {"str": "STRING", "int": "BIGINT", "float": "DOUBLE"}


def _columns(record: type) -> ResultColumns:
    """The result columns of a statement, derived from ``record``, the class of a result row."""
    # The annotations of the class's fields are strings, such as ``int | None``.
    members = ((one.name, str(one.type).partition(" ")[0]) for one in fields(record))
    return tuple((name, _SQL_TYPES[kind]) for name, kind in members)


def quote(name: str) -> str:
    """Puts a name in backquotes; a quoted name can contain any character."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class _Name:
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(map(quote, self.parts))


class TableName(_Name):
    """A table's name as typed: ``table``, ``database.table`` or ``catalog.database.table``."""


class Namespace(_Name):
    """A database's name as typed: ``database`` or ``catalog.database``."""


class ColumnPath(_Name):
    """Name of a column or of a struct's field (``a.b``), in the user's spelling."""


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``CREATE SIEVE INDEX``: creates an index for each column, or no index if a build fails.

    Attributes:
        columns: columns to index, at least one. With ``name``, the statement has exactly one
            column.
        name: the index's name. ``None`` means the default name, ``<column>_sieve``.
        if_not_exists: whether CREATE keeps an existing index of the same name.
        replace: whether CREATE replaces an existing index of the same name after the build.
        options: values of options by lower-case name. The grammar accepts any name.
        comment: a text that Sieve stores with the index.
    """

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Built)

    table: TableName
    columns: tuple[ColumnPath, ...]
    name: str | None = None
    if_not_exists: bool = False
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    comment: str | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    """``REFRESH SIEVE INDEX``: updates one index, given by name or column, or all indexes."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Built)

    table: TableName
    name: str | None = None
    column: ColumnPath | None = None
    full: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """``DROP SIEVE INDEX``: deletes the index of this name, or the indexes of this column."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Dropped)

    table: TableName
    name: str | None = None
    column: ColumnPath | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterIndex:
    """``ALTER SIEVE INDEX ... ENABLE``, ``DISABLE`` or ``SET OPTIONS``.

    Attributes:
        state: the new state. None for SET OPTIONS.
        options: new values of options. ``refresh`` takes effect at once. All other options take
            effect at the next REFRESH.
    """

    result_columns: ClassVar[ResultColumns] = (("index", "STRING"), ("state", "STRING"))

    table: TableName
    name: str
    state: Literal["ready", "disabled"] | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """``SHOW SIEVE INDEXES``: lists the indexes of a table or database.

    The default is the current database.
    """

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.IndexState)

    table: TableName | None = None
    namespace: Namespace | None = None


@dataclass(frozen=True, slots=True)
class ShowVersions:
    """``SHOW SIEVE VERSIONS``: lists the versions of one or all indexes, the newest first."""

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
    """``OPTIMIZE SIEVE INDEX``: replaces all runs of an index by one run, as built by CREATE."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Built)

    table: TableName
    name: str | None = None


@dataclass(frozen=True, slots=True)
class VacuumIndex:
    """``VACUUM SIEVE INDEX``: deletes the files of an index that only old versions use.

    Attributes:
        name: the index's name. None means all indexes of the table.
        hours: maximum age, in hours, of old versions that VACUUM keeps. None means the setting
            ``spark.sieve.versions.retain``.
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
    """``VACUUM SIEVE INDEXES``: deletes the index folders that no table of a database registers.

    Attributes:
        namespace: the database. None means the current database.
        hours: minimum age of a deleted folder, in hours. None means 24 hours.
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
    """``DESCRIBE SIEVE INDEX``; with EXTENDED, also compares the index with the table's files."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Property)

    table: TableName
    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ExplainSieve:
    """``EXPLAIN SIEVE query``: describes each file scan of a query without running it.

    Attributes:
        query: text of the query, unchanged. Spark parses it.
        margin: text before the query, with a blank in place of each character; line breaks remain.
            Spark parses margin and query together, so positions in Spark's messages are positions
            in the whole statement.
    """

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Scan)

    query: str
    margin: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EstimateIndex:
    """``ESTIMATE SIEVE INDEX``: predicts the size and the skipped files of an unbuilt index.

    With ``EXTENDED``, the result has `extended_columns`, and a row for each of several budgets.

    Attributes:
        columns: columns to index, at least one.
        options: options of the index, as in `CreateIndex`.
        predicate: text after WHERE, unchanged. Spark parses it.
        margin: blanks in place of the text before the predicate, as in `ExplainSieve`.
        extended: whether the statement contains EXTENDED.
    """

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Estimated)
    extended_columns: ClassVar[ResultColumns] = _columns(answer_columns.EstimatedBudget)

    table: TableName
    columns: tuple[ColumnPath, ...]
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    predicate: str | None = None
    margin: str = field(default="", compare=False, repr=False)
    extended: bool = False


@dataclass(frozen=True, slots=True)
class CheckIndex:
    """``CHECK SIEVE INDEX``: compares one index, or all indexes of a table, with the files.

    Attributes:
        name: the index's name. ``None`` means all indexes of the table.
        sample: percentage of the table's files that CHECK reads, above 0 and at most 100.
        extended: whether the result lists all files, including files that are ok.
    """

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.CheckedFile)

    table: TableName
    name: str | None = None
    sample: float = 100
    extended: bool = False


@dataclass(frozen=True, slots=True)
class AdviseIndexes:
    """``ADVISE SIEVE INDEXES``: advice for a table or database (default: the current database)."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Advised)

    table: TableName | None = None
    namespace: Namespace | None = None


Command = (
    CreateIndex
    | RefreshIndex
    | DropIndex
    | AlterIndex
    | ShowIndexes
    | DescribeIndex
    | ExplainSieve
    | EstimateIndex
    | ShowVersions
    | OptimizeIndex
    | VacuumIndex
    | VacuumIndexes
    | CheckIndex
    | AdviseIndexes
)


def columns_of(command: Command) -> ResultColumns:
    """Columns of a statement's result.

    The columns of ESTIMATE depend on EXTENDED.
    """
    if isinstance(command, EstimateIndex) and command.extended:
        return command.extended_columns
    return command.result_columns
