"""A SQLAlchemy dialect, ``hive+sieve://host:10000/database``, for Spark's Thrift server.

PyHive's dialect expects Hive's results, but Spark's results differ. The first column of SHOW TABLES
is the database in Spark, but PyHive expects the table's name there. Spark has a separate statement
for views, and reports a missing table by an SQLSTATE. This dialect reads Spark's results, and also
reports Sieve's indexes. The dialect's backend name is still ``hive``, because tools such as
Superset choose their SQL by this name.
"""

from __future__ import annotations

from typing import Any

from pyhive.sqlalchemy_hive import HiveDialect
from sqlalchemy import exc

_NO_TABLE = "42P01"
_NO_FUNCTION = "42883"


class SieveDialect(HiveDialect):  # type: ignore[misc]
    """PyHive's dialect with methods that read Spark's catalog and report Sieve's indexes."""

    driver = "sieve"
    supports_statement_cache = False
    # SQLAlchemy 2 calls import_dbapi. If a dialect has only the method's old name, dbapi,
    # SQLAlchemy logs a warning.
    import_dbapi = HiveDialect.import_dbapi

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """Names of a database's tables, without its views."""
        views = set(self._names(connection, "VIEWS", schema))
        return [name for name in self._names(connection, "TABLES", schema) if name not in views]

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """Names of a database's permanent views."""
        return self._names(connection, "VIEWS", schema)

    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> bool:
        """Returns whether a database contains a table or view with this name."""
        names = self._names(connection, "TABLES", schema)
        return table_name.lower() in {name.lower() for name in names}

    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[dict[str, Any]]:
        """The Sieve indexes of a table. If the server has no Sieve, the list is empty."""
        database = "" if schema is None else _literal(_quoted(schema))
        query = (
            f"SELECT index, column FROM sieve_indexes({database}) "
            f"WHERE lower(table) = {_literal(table_name.lower())} ORDER BY index"
        )
        try:
            rows = _rows(connection, query)
        except exc.DBAPIError as error:
            if _state(error) == _NO_FUNCTION:
                return []
            raise
        return [{"name": row[0], "column_names": [row[1]], "unique": False} for row in rows]

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Sends a statement without parameters unchanged, because it may contain ``%``."""
        raw = not parameters and context is not None and context.compiled is None
        try:
            cursor.execute(statement, None if raw else parameters)
        except Exception as error:
            _show_message_first(error)
            raise

    def _names(self, connection: Any, kind: str, schema: str | None) -> list[str]:
        place = "" if schema is None else f" IN {_quoted(schema)}"
        rows = _rows(connection, f"SHOW {kind}{place}")
        # Each row holds the database, the name, and whether the view is temporary. The list omits
        # temporary views, because only this session can use them.
        return [row[1] for row in rows if not row[2]]

    def _get_table_columns(self, connection: Any, table_name: str, schema: str | None) -> list[Any]:
        parts = [table_name] if schema is None else [schema, table_name]
        try:
            return _rows(connection, f"DESCRIBE {'.'.join(map(_quoted, parts))}")
        except exc.DBAPIError as error:
            if _state(error) == _NO_TABLE:
                raise exc.NoSuchTableError(".".join(parts)) from error
            raise


class _Answer:
    """A response to a failed statement. Its text has only the message and the SQLSTATE."""

    def __init__(self, answer: Any) -> None:
        self.status = answer.status

    def __repr__(self) -> str:
        return f"{self.status.errorMessage} (SQLSTATE {self.status.sqlState})"


def _show_message_first(error: Exception) -> None:
    """Shortens an error of PyHive, whose text would otherwise contain the server's stack trace."""
    answer = error.args[0] if error.args else None
    if getattr(getattr(answer, "status", None), "errorMessage", None):
        error.args = (_Answer(answer), *error.args[1:])


def _rows(connection: Any, statement: str) -> list[Any]:
    return list(connection.exec_driver_sql(statement).fetchall())


def _state(error: Any) -> str | None:
    """The SQLSTATE of an error that the server reported. If the error has none, returns None."""
    (answer, *_) = getattr(error.orig, "args", None) or (None,)
    return getattr(getattr(answer, "status", None), "sqlState", None)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
