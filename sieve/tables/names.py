"""Quoting: names of tables and columns as Spark parses them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"\d*[^\W\d]\w*")


def quoted(parts: Sequence[str]) -> str:
    """A qualified name in backquotes, so that its parts can contain any character."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def spelled(parts: Sequence[str]) -> str:
    """A qualified name as one would type it: parts are quoted only where they must be."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted([part]) for part in parts)
