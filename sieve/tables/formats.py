"""Supported formats, and the errors (with remedies) for tables that Sieve cannot index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sieve.errors import SieveError, UnsupportedError
from sieve.metadata.text_formats import TEXT_FORMATS, has_void, lines_vary, splits_keep_lines

INDEXED = ("parquet", "orc", "csv", "json", "hudi", "delta", "iceberg")
"""Formats that Sieve can index."""

COUNTED = ("parquet", "orc", "hudi", "delta", "iceberg")
"""Formats whose metadata contains row counts, so Spark counts rows without reading a column."""

RECORDED = ("iceberg",)
"""Formats whose listing contains the row count of each file in place of its modification time."""


RESERVED = "__sieve_"
"""Lower-case prefix of the names of all columns that a build adds to a table's columns."""

UNCHANGING = ("hudi", "delta", "iceberg")
"""Formats with immutable files; a listing contains only complete files."""

RENAMING = ("delta", "iceberg")
"""Formats in which a column can have another name in the table than in a registration."""

_INDEXED = (
    "Sieve indexes Parquet, ORC, CSV, JSON, Hudi, Delta and Iceberg tables of the session catalog, "
    "and Iceberg tables of their own catalogs"
)

_LAKES = {
    "delta": "a Delta table that is read by its path, by changes or through a catalog of its own; "
    "name a table of the session catalog",
    "iceberg": "an Iceberg table that is read by its path, by a branch or a tag, or by another "
    "release of Iceberg than Sieve knows; name a table of an Iceberg catalog",
    "hudi": "a Hudi table without a commit, or one that is read by changes; insert rows first",
}

_HUDI = {
    "version": "a Hudi table of version {}, and Sieve knows 8 and 9, which Hudi 1 writes: upgrade "
    "it (CALL upgrade_table)",
    "formats": "a Hudi table whose base files are {}, and Sieve knows Parquet",
    "bootstrap": "a Hudi table made by bootstrap, whose files lie partly in another table: copy it "
    "(CREATE TABLE ... USING hudi AS SELECT ...)",
}


def reads_whole_files(format_name: str, parts: Mapping[str, str]) -> bool:
    """Returns whether every scan of a table reads each file as a whole, even a large file."""
    if format_name in UNCHANGING:
        return format_name != "iceberg"
    return format_name in TEXT_FORMATS and (
        parts.get("option.multiline", "").lower() == "true" or not splits_keep_lines(parts)
    )


def refuse_kind(name: str, kind: str) -> SieveError:
    """The error for a relation whose kind Sieve does not support.

    Args:
        name: the table as typed.
        kind: ``view``, ``temporary view``, ``stream``, ``path``, ``hive <serde>``, ``v2 <class>``,
            ``source <class>``, ``location <class>``, ``format <name>``, ``hudi version <number>``,
            ``hudi formats <names>`` or ``hudi bootstrap``.
    """
    word, _, detail = kind.partition(" ")
    return UnsupportedError("SIEVE_UNSUPPORTED_TABLE", f"{name} {_what_it_is(kind, word, detail)}")


def refuse_names(name: str, columns: Sequence[str]) -> SieveError | None:
    """Returns the error for a table with a column name that is reserved for builds.

    Args:
        columns: the table's top-level columns, including partition columns.
    """
    taken = [column for column in columns if column.lower().startswith(RESERVED)]
    if not taken:
        return None
    return UnsupportedError(
        "SIEVE_UNSUPPORTED_TABLE",
        f"{name} has the column {taken[0]}; names that begin with {RESERVED} are reserved for "
        "columns that a build adds: rename it (ALTER TABLE ... RENAME COLUMN)",
    )


def refuse_option(name: str, parts: Mapping[str, str]) -> SieveError | None:
    """Returns an error if a value depends on a query's other columns or on Spark's file splits."""
    if has_void(parts):
        return UnsupportedError(
            "SIEVE_UNSUPPORTED_TABLE",
            f"{name} is stored as JSON and has a column or a field of type VOID. If a record has "
            "an object in this column, the values of other columns depend on whether a query reads "
            "it. Create a table of the same files without this column, or with another type",
        )
    if parts["format"].partition(" ")[0] in TEXT_FORMATS and lines_vary(parts):
        return UnsupportedError(
            "SIEVE_UNSUPPORTED_TABLE",
            f"the lines of {name} depend on where Spark splits its files, because the line "
            "separator (option lineSep) overlaps with itself, as two blanks do, or because "
            "Hadoop's mapreduce.input.linerecordreader.line.maxlength is set. Use another "
            "separator, and unset this property",
        )
    quotes = parts.get("option.unescapedquotehandling", "STOP_AT_DELIMITER")
    if not parts["format"].startswith("csv ") or quotes.upper() == "STOP_AT_DELIMITER":
        return None
    return UnsupportedError(
        "SIEVE_UNSUPPORTED_TABLE",
        f"{name} has the option unescapedQuoteHandling = {quotes}. The values after a "
        "stray quote then depend on the other columns that a query reads. Only STOP_AT_DELIMITER, "
        "the default, can be indexed",
    )


def _what_it_is(kind: str, word: str, detail: str) -> str:
    if word == "hudi":
        what, _, which = detail.partition(" ")
        return f"is {_HUDI[what].format(which)}"
    lake = next((lake for lake in _LAKES if lake in detail.lower()), "")
    plain = {
        "view": "is a view; create the index on the table it reads",
        "temporary": f"is a {kind}; create the index on the table it reads",
        "stream": "is a streaming source; write it to a table and create the index on that",
        "path": "is read by its path alone; save it as a table first (CREATE TABLE ... USING ... "
        "LOCATION ...)",
        "hive": _hive(detail.lower()),
        "format": f"is stored as {detail}; {_INDEXED}: copy it into one (CREATE TABLE ... USING "
        "parquet AS SELECT ...)",
    }
    if lake:
        return f"is {_LAKES[lake]}; {_INDEXED}"
    return plain.get(word, f"is read through {detail}, which Sieve does not know; {_INDEXED}")


def _hive(serde: str) -> str:
    for format_name, setting in (
        ("parquet", "spark.sql.hive.convertMetastoreParquet"),
        ("orc", "spark.sql.hive.convertMetastoreOrc"),
    ):
        if format_name in serde:
            return (
                f"is a Hive table that Spark reads through the Hive SerDe; set {setting} = "
                "true, so that Spark reads its files itself"
            )
    return (
        f"is a Hive table with SerDe {serde or 'unknown'}, which Spark does not read "
        "itself; store it as Parquet or ORC"
    )
