"""Names of tables and columns as Spark parses them."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(parts: Sequence[str]) -> str:
    """A name of several parts, whatever its characters."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
