"""Chooses the names of new indexes, and refuses names that are in use."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sieve.errors import InvalidInputError
from sieve.index_key import SUBSTRING
from sieve.metadata.registration import NAME_LIMIT
from sieve.tables.column import Column
from sieve.tables.table_info import TableInfo

Taken: TypeAlias = Mapping[str, tuple[str, ...]]
"""A dict from the name of each index of a table to the key of the index."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The name and the column of an index that the statement creates."""

    name: str
    column: Column


def with_default_names(columns: Sequence[Column], taken: Taken, info: TableInfo) -> list[Wanted]:
    """Gives an index on each column its default name.

    If an index on another column has this name, the function appends a number. Example: the indexes
    on ``a + b`` and ``a * b`` get the names ``a_b_sieve`` and ``a_b_sieve_2``. If the table no
    longer has the other column, the function appends no number. `refuse_taken` then tells the user
    to drop the index on the dropped column.
    """
    others = {name: key for name, key in taken.items() if info.column_of(key) is not None}
    wanted = []
    for column in columns:
        name = next(name for name in _names(column) if others.get(name) in (None, column.key))
        others[name] = column.key
        wanted.append(Wanted(name, column))
    return wanted


def _names(column: Column) -> itertools.chain[str]:
    """Yields the default name, and the default name with the numbers 2, 3, ..."""
    default = default_name(column)
    ends = (f"_{number}" for number in itertools.count(2))
    return itertools.chain([default], (default[: NAME_LIMIT - len(end)] + end for end in ends))


def default_name(column: Column) -> str:
    """The default name of an index: ``a_b_sieve`` for column ``a.b``.

    For the expression ``lower(email)``, the name is ``lower_email_sieve``. For a substring index on
    the same expression, the name is ``lower_email_substring_sieve``.
    """
    if not column.computed:
        return "_".join(column.path).lower() + "_sieve"
    words = re.sub(r"\W+", "_", column.path[-1]).strip("_")
    end = "_substring_sieve" if column.kind == SUBSTRING else "_sieve"
    return words[: NAME_LIMIT - len(end)].lower() + end


def refuse_taken(wanted: Sequence[Wanted], taken: Taken, info: TableInfo) -> None:
    """Raises InvalidInputError if an index's name is in use, or occurs twice in the statement."""
    for one in wanted:
        key = taken.get(one.name.lower())
        if key == one.column.key:
            raise InvalidInputError(
                "SIEVE_INDEX_EXISTS",
                f"table {info.label} already has an index {one.name}; choose another name, REFRESH "
                "it, or use CREATE SIEVE INDEX IF NOT EXISTS",
            )
        if key is not None:
            other = "a dropped column" if (column := info.column_of(key)) is None else column.typed
            raise InvalidInputError(
                "SIEVE_INDEX_EXISTS",
                f"table {info.label} already has an index {one.name}, on {other}; use CREATE SIEVE "
                f"INDEX <another name> ON ... for {one.column.typed}, or DROP that index first",
            )
    if len({one.name.lower() for one in wanted}) < len(wanted):
        raise InvalidInputError(
            "SIEVE_INDEX_EXISTS", f"the statement names index {wanted[0].name} twice"
        )
