"""A column of a table: its path and its type."""

from __future__ import annotations

from dataclasses import dataclass

from sieve.tables.names import quoted


@dataclass(frozen=True, slots=True)
class Column:
    """A column or struct leaf.

    Attributes:
        path: names in the table, in exact case.
        type: Catalyst type.
        stored: names in the data files, by which an index identifies the column; empty if the same.
    """

    path: tuple[str, ...]
    type: str
    stored: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join(self.path)

    @property
    def key(self) -> tuple[str, ...]:
        """The path by which an index identifies the column.

        ALTER TABLE RENAME COLUMN does not change this path.
        """
        return self.stored or self.path

    @property
    def expression(self) -> str:
        """A Spark expression for the column of `CatalogTable.frame`.

        Quoting allows any character.
        """
        return quoted(self.key)

    @property
    def any_width(self) -> bool:
        """Returns whether the length of values is unbounded."""
        return self.type.startswith(("string", "varchar", "binary"))
