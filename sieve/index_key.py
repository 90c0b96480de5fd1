"""The key of an index: the column or the expression that the index is on.

A key is a tuple of strings. A column's key is its path in the data files. An expression's key
begins with an empty string, which cannot be a column's name. The expression's SQL follows, with
column names as in the data files: ``("", "lower(email)")``. Releases that do not support
expressions refuse to register a key with an empty string.

An ordinary index has one value per row. If an index can have several values per row, its key also
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
"""The kinds of indexes that can have several values per row."""
GRAM_BYTES: Final = 4
"""The length in bytes of each value in a substring index. `predicate/PartsOfText.scala` has the
same number."""
LONG_GRAM_BYTES: Final = 8
"""The length in bytes of a long gram, whose hash sets one bit of a location's signature.
`predicate/PartsOfText.scala` has the same number."""


def expression_key(sql: str, kind: str | None = None) -> Key:
    """The key of an expression, given the expression's SQL and the kind of the index."""
    return ("", sql) if kind is None else ("", sql, kind)


def expression_of(key: Sequence[str]) -> str | None:
    """The SQL that an expression's key contains; None for a column's key."""
    if not key or key[0]:
        return None
    return key[1] if len(key) == 2 or (len(key) == 3 and key[2] in KINDS) else None


def kind_of(key: Sequence[str]) -> str | None:
    """The kind of index, as named in the index's key.

    None for an ordinary index, which has one value per row.
    """
    return key[2] if len(key) == 3 and expression_of(key) is not None else None


def shown(key: Sequence[str]) -> str:
    """The text that users see for a key: an expression's SQL, or a path with dots."""
    return expression_of(key) or ".".join(key)
