"""Command records: one frozen record per SIEVE statement, with its result schema.

A record contains the parts of a statement. ``result_columns`` of each record lists the name and the
Spark SQL type of each result column. Clients that read results by name depend on these names.
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
    """The columns of a result, derived from the Python class of a result row."""
    # Annotations are strings, such as ``int | None``.
    members = ((one.name, str(one.type).partition(" ")[0]) for one in fields(record))
    return tuple((name, _SQL_TYPES[kind]) for name, kind in members)


def quote(name: str) -> str:
    """Puts a name in backquotes, so that the name can contain any character."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class _Name:
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(map(quote, self.parts))


class TableName(_Name):
    """A table as typed: ``table``, ``database.table`` or ``catalog.database.table``."""


class Namespace(_Name):
    """A database as typed: ``database`` or ``catalog.database``."""


class ColumnPath(_Name):
    """A column or a struct field (``a.b``), in the letter case that the user typed."""


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``CREATE SIEVE INDEX``: creates an index for each column, or no index if one build fails.

    Attributes:
        columns: the columns to index, at least one; exactly one column if ``name`` is given.
        name: the index's name; ``None`` for the default, ``<column>_sieve``.
        if_not_exists: whether to leave an existing index of that name unchanged.
        replace: whether to replace an existing index of that name after the new index is built.
        options: options by lower-case key; the grammar accepts any key.
        comment: a text that is stored with the index.
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
    """``REFRESH SIEVE INDEX``: updates an index, by name or column, or all indexes of a table."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Built)

    table: TableName
    name: str | None = None
    column: ColumnPath | None = None
    full: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """``DROP SIEVE INDEX``: deletes an index. Either ``name`` or ``column`` is given."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Dropped)

    table: TableName
    name: str | None = None
    column: ColumnPath | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterIndex:
    """``ALTER SIEVE INDEX ... ENABLE``, ``DISABLE`` or ``SET OPTIONS``.

    Attributes:
        state: the new state; None with SET OPTIONS.
        options: the new options. The option ``refresh`` applies at once, and the next REFRESH
            applies the other options.
    """

    result_columns: ClassVar[ResultColumns] = (("index", "STRING"), ("state", "STRING"))

    table: TableName
    name: str
    state: Literal["ready", "disabled"] | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """``SHOW SIEVE INDEXES``: lists indexes of a table or a database (default: the current one)."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.IndexState)

    table: TableName | None = None
    namespace: Namespace | None = None


@dataclass(frozen=True, slots=True)
class ShowVersions:
    """``SHOW SIEVE VERSIONS``: lists versions of one index or of all indexes, newest first."""

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
    """``OPTIMIZE SIEVE INDEX``: merges the runs of an index into one run, as after CREATE."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Built)

    table: TableName
    name: str | None = None


@dataclass(frozen=True, slots=True)
class VacuumIndex:
    """``VACUUM SIEVE INDEX``: deletes index files that only old versions use.

    Attributes:
        name: the index; None for all.
        hours: hours for which VACUUM keeps old versions; None for the configured number.
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
    """``VACUUM SIEVE INDEXES``: deletes index folders that no table of the database refers to.

    Attributes:
        namespace: the database; None for the current one.
        hours: minimum age of such a folder in hours; None for 24.
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
    """``DESCRIBE SIEVE INDEX``; with EXTENDED, also compares the index with the current table."""

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Property)

    table: TableName
    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ExplainSieve:
    """``EXPLAIN SIEVE query``: describes each file scan of the query, without running the query.

    Attributes:
        query: the unchanged rest of the statement, which Spark parses.
        margin: blanks and line breaks of the same length as the text before the query, so that
            positions in Spark's messages are positions in the whole statement.
    """

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.Scan)

    query: str
    margin: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EstimateIndex:
    """``ESTIMATE SIEVE INDEX``: predicts size and skipped files before an index is built.

    With ``EXTENDED``, the result has other columns and a row for each of several budgets.

    Attributes:
        columns: the columns to index, at least one.
        options: as in ``CREATE``.
        predicate: the unchanged text after WHERE, which Spark parses.
        margin: as in `ExplainSieve`.
        extended: whether EXTENDED was given.
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
    """``CHECK SIEVE INDEX``: checks an index by name, or all indexes of the table.

    Attributes:
        name: the index's name; ``None`` for all.
        sample: percentage of files to read, above 0 and at most 100.
        extended: whether to show every file, including files that are ok.
    """

    result_columns: ClassVar[ResultColumns] = _columns(answer_columns.CheckedFile)

    table: TableName
    name: str | None = None
    sample: float = 100
    extended: bool = False


@dataclass(frozen=True, slots=True)
class AdviseIndexes:
    """``ADVISE SIEVE INDEXES``: advice for a table or a database, by default the current one."""

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
    """The columns of a statement's result."""
    if isinstance(command, EstimateIndex) and command.extended:
        return command.extended_columns
    return command.result_columns
