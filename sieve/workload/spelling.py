"""Spells statements that users can paste, with backquotes around the names that need them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sieve.index_key import SUBSTRING, expression_of, kind_of
from sieve.workload.column_use import Column
from sieve.workload.record import Table, parts

# ON is the only word that cannot be a name in Sieve's grammar.
_PLAIN = re.compile(r"(?!on\b)[A-Za-z_]\w*", re.IGNORECASE | re.ASCII)


def spelled(parts: Sequence[str]) -> str:
    """Returns a qualified name, with backquotes around each part that is not a plain word."""
    return ".".join(
        part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in parts
    )


def listed(column: Column) -> str:
    """Spells a column or an expression for the column list of a CREATE statement."""
    return expression_of(column) or spelled(column)


def create_statement(table: Table, column: Column) -> str:
    """The statement that creates an index on a column."""
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
