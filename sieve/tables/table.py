"""Catalog tables: files and rows of a table that Spark has resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_schema

from sieve.errors import UnsupportedError
from sieve.index_key import ELEMENTS, SUBSTRING, expression_of, kind_of
from sieve.metadata.records import Commit
from sieve.metadata.text_formats import TEXT_FORMATS
from sieve.metadata.timestamps import ms_since_epoch
from sieve.tables import delta, hudi, iceberg
from sieve.tables.column import Column
from sieve.tables.data_file import Changes, DataFile, FileCuts
from sieve.tables.names import quoted, spelled
from sieve.tables.reading_conf import Conf, reading_conf
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.table_info import TableInfo, has_array, resolve_column, table_info_from

DAMAGED = "__sieve_damaged__"
"""Name of a flag column. The flag is true in the row of a text format's corrupt record."""

FAILED = "__sieve_failed__"
"""Name of a flag column. The flag is true in a row for which the expression fails."""

LOCATION = "__sieve_location__"
"""Name of the column in `CatalogTable.frame` that identifies a row's file."""

SIGNATURE = "__sieve_signature__"
"""Name of the column with the signature of a location's texts, for the kind `SUBSTRING`."""


PLACE = "__sieve_place__"
"""Name of the column that contains `LOCATION` even in a row for which the expression fails."""


class CatalogTable(RegisteredTable):
    """A table that Spark has resolved in a session. Each statement resolves the table again."""

    info: TableInfo

    def __init__(self, access: Any, spark: SparkSession) -> None:
        super().__init__(access, table_info_from(json.loads(access.info())))
        self._spark = spark
        self._sessions: dict[Conf, Any] = {}

    def fingerprint(self) -> str:
        """The current fingerprint.

        Another thread can have changed a reader setting after `info` was read.
        """
        return str(self._access.fingerprint())

    def files(self) -> tuple[DataFile, ...]:
        """All files of the table; the first call lists them."""
        return tuple(DataFile(*row) for row in json.loads(self._access.list()))

    def changes(self, instant: str, commit: Commit | None = None) -> Changes | None:
        """The part of the table that, according to its commits, may have changed since an instant.

        Args:
            instant: instant of an index version, ISO 8601.

        Returns:
            The changes; None if the commits are incomplete, or the table has no commits.
        """
        listed, instant_ms = None, ms_since_epoch(instant)
        if self.info.format_name == "hudi":
            listed = hudi.list_changed(self._access, instant_ms)
        elif commit is not None:
            log = iceberg if self.info.format_name == "iceberg" else delta
            listed = log.list_changed(self._access, commit, instant_ms)
        if listed is None:
            return None
        files = tuple(DataFile(*row) for row in json.loads(listed[1]))
        if commit is not None:
            return Changes(frozenset(), files, listed[0])
        return Changes(listed[0], files)

    def instant_ms(self) -> int | None:
        """Time of the listed commit, ms since the epoch; None if the table has no commits."""
        if self.info.format_name == "delta":
            return delta.listed_commit(self._access)[1]
        told = int(self._access.instant())
        return None if told < 0 else told

    def commit(self) -> Commit | None:
        """The listed commit of a Delta or Iceberg table; without a listing, the newest commit.

        Returns:
            None for tables of other formats, and for tables without numbered commits.
        """
        if self.info.format_name == "iceberg":
            return iceberg.listed_commit(self._access)
        return delta.listed_commit(self._access)[0] if self.info.format_name == "delta" else None

    def appended(self, files: Mapping[int, tuple[int, int, bool]]) -> frozenset[int]:
        """Files that changed only by appended rows, which a build can read separately.

        Args:
            files: maps a file's number in the last listing to an earlier length and time, and to a
                flag. The flag is true if the index contains all rows that the file ever had,
                including hidden rows.
        """
        if self.info.format_name != "hudi" or not files:
            return frozenset()
        return hudi.find_appended(self._access, files, self.info.fingerprint_parts)

    def cuts(self, numbers: Sequence[int], least: int) -> list[FileCuts | None]:
        """The offsets at which Sieve can split files into ranges.

        A job on executors reads the footers of the files.

        Args:
            numbers: numbers of the files.
            least: minimum number of bytes of a range.

        Returns:
            The cuts of each file; None for a file that Spark always reads as a whole. Text files
            can be split at any offset, and have no footer.
        """
        found = json.loads(self._access.cuts([*numbers], least))
        return [cuts and FileCuts(tuple(cuts["offsets"]), cuts["footer"]) for cuts in found]

    def frame(
        self,
        numbers: Sequence[int],
        column: Column,
        appended_only: AbstractSet[int] = frozenset(),
        cuts: Sequence[Sequence[int]] = (),
        *,
        whole_texts: bool = False,
        signature_bits: int = 0,
        folds: bool = True,
    ) -> DataFrame:
        """A frame over the rows of some files, from which a build reads one column.

        The frame reads files as a query does, but the job fails if a file is unreadable or missing.
        The column `LOCATION` contains the position p of the row's file in ``numbers``. With
        ``cuts``, p is the position of the row's range among all ranges. For files in
        ``appended_only``, the frame reads only the appended log files. In CSV and JSON, a plan with
        `LOCATION` reads all columns of a record. A corrupt record becomes one row with the location
        -1 - p, and ends the reading of the file or range. A row for which an expression fails also
        gets the location -1 - p. If the column contains arrays, the frame has one row for each
        element; an array without elements gives one row with NULL. For the kind `SUBSTRING`, the
        frame has one row for each location, with an array of all distinct substrings of the
        location's texts.

        Args:
            numbers: numbers of the files.
            appended_only: files (from `appended`) of which the frame reads only the appended log
                files.
            cuts: for each file, the offsets at which to split the file; an empty sequence splits no
                file.
            whole_texts: whether Spark sends whole strings and binary values to Python, not only
                leading bytes.
            signature_bits: for the kind `SUBSTRING`, the binary logarithm of the number of bits in
                a signature (`sieve.segments.signatures`); 0 for no signature.
            folds: whether signatures with few set bits become smaller.
        """
        whole_texts = whole_texts and column.any_width
        session = self._session(whole_texts=whole_texts)
        offsets = json.dumps([[*some] for some in cuts])
        computed = column.computed or "", column.kind or ""
        found = self._access.frame(
            session, [*numbers], [*appended_only], LOCATION, offsets, *computed
        )
        frame = DataFrame(found, self._spark)
        marks = [DAMAGED] if self.info.format_name in TEXT_FORMATS else []
        marks += [FAILED] if column.computed else []
        if not marks:
            return frame
        place = functions.expr(f"if({' OR '.join(marks)}, ~{LOCATION}, {LOCATION})")
        if column.computed:
            frame = frame.withColumn(PLACE, functions.col(LOCATION))
        frame = frame.withColumn(LOCATION, place).drop(*marks)
        if column.kind != SUBSTRING:
            return frame
        texts = frame._jdf, column.in_frame, LOCATION  # noqa: SLF001
        return DataFrame(self._access.grams(*texts, signature_bits, folds), self._spark)

    def column(self, typed: Sequence[str], kind: str | None = None) -> Column:
        """The column or expression that a statement names, given as a path or as a key.

        Args:
            kind: the kind of the index, or None to choose the kind by the column's type.

        Raises:
            InvalidInputError, UnsupportedError: for the reasons of `resolve_column`, or because
                Sieve cannot index the expression.
        """
        shown = sql = expression_of(typed)
        if sql is None:
            if not has_array(self.info, typed):
                column = resolve_column(self.info, typed)
                if kind in (None, ELEMENTS):
                    return column
            shown, sql = spelled(typed), quoted(typed)
        found = json.loads(self._access.define(sql, kind or kind_of(typed) or ""))
        if "column" in found:
            return resolve_column(self.info, found["column"])
        if "refused" in found:
            raise UnsupportedError(
                "SIEVE_UNSUPPORTED_EXPRESSION",
                f"{shown} of {self.info.label} cannot be indexed: {found['refused']}",
            )
        self.info = table_info_from(json.loads(self._access.info()))
        made = self.info.column_of(tuple(found["key"]))
        assert made is not None
        return made

    def write_file(
        self, path: str, schema: pa.Schema, rows: Sequence[Sequence[Any]], **options: str
    ) -> None:
        """Writes rows to a Parquet file in the driver, as Spark's tasks write them.

        Args:
            path: URI of the file without the extension, which the writer appends.
            options: options of Spark's Parquet writer.
        """
        self._access.write(
            path, from_arrow_schema(schema).json(), [[*row] for row in rows], options
        )

    def _session(self, *, whole_texts: bool) -> Any:
        session = self._spark._jsparkSession  # noqa: SLF001 - no other door
        conf = reading_conf(session, self.info.fingerprint_parts, whole_texts=whole_texts)
        if conf and conf not in self._sessions:
            self._sessions[conf] = session.cloneSession()
            for key, value in conf:
                self._sessions[conf].conf().set(key, value)
        return self._sessions.get(conf, session)
