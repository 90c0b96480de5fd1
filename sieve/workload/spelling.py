"""Spells statements that users can paste, with backquotes around the names that need them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sieve.index_key import SUBSTRING, expression_of, kind_of
from sieve.workload.column_use import Column
from sieve.workload.scan_groups import Table, parts

_NAME = r"(?:`(?:[^`]|``)*`|\w+)"
_PATH = rf"{_NAME}(?:\.{_NAME})*"
# In Sieve's grammar, ON cannot be a name. In an expression, Spark reads NULL, TRUE and FALSE as
# constants.
_PLAIN = re.compile(r"(?!(?:on|null|true|false)\b)[A-Za-z_]\w*", re.IGNORECASE | re.ASCII)


def spelled(parts: Sequence[str]) -> str:
    """Returns a qualified name, with backquotes around each part that is not a plain word."""
    return ".".join(
        part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in parts
    )


def tuple_of(sql: str) -> tuple[str, ...] | None:
    """The spelled columns of a tuple, given the tuple's SQL; None for any other expression."""
    inner = re.fullmatch(rf"\(({_PATH}(?:, {_PATH})+)\)", sql)
    return inner and tuple(_respelled(path) for path in re.findall(_PATH, inner[1]))


def _respelled(path: str) -> str:
    names = re.findall(_NAME, path)
    return spelled([n[1:-1].replace("``", "`") if n.startswith("`") else n for n in names])


def listed(column: Column) -> str:
    """Spells a column or an expression for the column list of a CREATE statement."""
    sql = expression_of(column)
    if sql is None:
        return spelled(column)
    if names := tuple_of(sql):
        return f"({', '.join(names)})"
    return _respelled(sql) if re.fullmatch(_PATH, sql) else sql


def create_statement(table: Table, column: Column) -> str:
    """The statement that creates an index on a column, with the default name."""
    return f"CREATE SIEVE INDEX {_on(table, column)}"


def estimate_statement(table: Table, column: Column) -> str:
    """The statement that estimates an index on a column."""
    return f"ESTIMATE SIEVE INDEX {_on(table, column)}"


def _on(table: Table, column: Column) -> str:
    options = " OPTIONS (kind = 'substring')" if kind_of(column) == SUBSTRING else ""
    return f"ON {spelled(parts(table))} ({listed(column)}){options}"


def drop_statement(table: Table, index: str) -> str:
    """The statement that drops an index."""
    return f"DROP SIEVE INDEX {spelled((index,))} ON {spelled(parts(table))}"
