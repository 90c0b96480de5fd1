"""Quoting: names of tables and columns as Spark parses them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"\d*[^\W\d]\w*")


def quoted(parts: Sequence[str]) -> str:
    """A qualified name in backquotes, so that its parts can contain any character."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def spelled(parts: Sequence[str]) -> str:
    """A qualified name as a user would type it, with quotes only around parts that need them."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted([part]) for part in parts)
