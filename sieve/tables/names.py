"""Quoting: names of tables and columns as Spark parses them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sieve.index_key import expression_of

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def quoted(parts: Sequence[str]) -> str:
    """A qualified name whose parts are in backquotes, so that they can contain any character."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def spelled(parts: Sequence[str]) -> str:
    """A qualified name for people, with quotes only around parts that need quotes.

    Spark reads some of the returned names, such as ``null``, as literals.
    """
    return ".".join(part if _PLAIN.fullmatch(part) else quoted([part]) for part in parts)


def same_value(key: Sequence[str], other: Sequence[str]) -> bool:
    """Returns whether two index keys name the same column or expression, ignoring case.

    The kinds of the two indexes can differ.
    """
    one, two = (expression_of(each) or spelled(each) for each in (key, other))
    return one.lower() == two.lower()
