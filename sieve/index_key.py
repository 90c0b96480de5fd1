"""The key of an index: the path of a column in the files, or an expression of columns.

A key is a list of names. The key of an expression consists of an empty name, which no column has,
and the expression's SQL, with column names as in the files: ``("", "lower(email)")``. Releases
without support for expressions refuse a registration with an empty name.

An index has one value per row, or any number of values per row. In the second case, the key also
contains the kind of the index: ``("", "tags", "elements")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

Key = tuple[str, ...]

ELEMENTS: Final = "elements"
"""The kind of an index on the non-NULL elements of arrays."""
SUBSTRING: Final = "substring"
"""The kind of an index on all sequences of `GRAM_BYTES` consecutive bytes in texts."""
KINDS: Final = frozenset((ELEMENTS, SUBSTRING))
"""The kinds of indexes with any number of values per row."""
GRAM_BYTES: Final = 4
"""The length of keys of a substring index; `predicate/PartsOfText.scala` has the same number."""


def expression_key(sql: str) -> Key:
    """The key of an expression."""
    return ("", sql)


def expression_of(key: Sequence[str]) -> str | None:
    """The SQL of an expression's key; None for the key of a column."""
    if not key or key[0]:
        return None
    return key[1] if len(key) == 2 or (len(key) == 3 and key[2] in KINDS) else None


def kind_of(key: Sequence[str]) -> str | None:
    """The kind of index that a key contains; None if the index has one value per row."""
    return key[2] if len(key) == 3 and expression_of(key) is not None else None


def shown(key: Sequence[str]) -> str:
    """The text that users see for a key or for the path of a column."""
    return expression_of(key) or ".".join(key)
