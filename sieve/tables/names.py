"""Quoting: names of tables and columns as Spark parses them."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(parts: Sequence[str]) -> str:
    """A qualified name in backquotes, so that its parts can contain any character."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
