"""Quoting: names of tables and columns as Spark parses them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sieve.index_key import expression_of

_PLAIN = re.compile(r"\d*[^\W\d]\w*")


def quoted(parts: Sequence[str]) -> str:
    """A qualified name in backquotes, so that its parts can contain any character."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def spelled(parts: Sequence[str]) -> str:
    """A qualified name as a user would type it, with quotes only around parts that need them."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted([part]) for part in parts)


def same_value(key: Sequence[str], other: Sequence[str]) -> bool:
    """Returns whether two keys of indexes are of the same column or expression, in any case.

    The indexes can be of different kinds.
    """
    one, two = (expression_of(each) or spelled(each) for each in (key, other))
    return one.lower() == two.lower()
