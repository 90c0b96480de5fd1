"""A column of a table: its path and its type."""

from __future__ import annotations

from dataclasses import dataclass

from sieve.index_key import expression_of, kind_of, shown
from sieve.tables.names import quoted, spelled

VALUE = "__sieve_value__"
"""Name of the frame's column that contains the value of an expression."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, a leaf of a struct, or an expression of columns.

    Attributes:
        path: the column's names in the table, in exact case. The path of an expression has one
            element, the expression's SQL.
        type: Catalyst type of the indexed values.
        stored: the key by which an index identifies the column (`sieve.index_key`): the column's
            names in the data files. `stored` is empty if the key equals the path.
    """

    path: tuple[str, ...]
    type: str
    stored: tuple[str, ...] = ()

    def __str__(self) -> str:
        return shown(self.path)

    @property
    def key(self) -> tuple[str, ...]:
        """The path by which an index identifies the column.

        ALTER TABLE RENAME COLUMN does not change this path.
        """
        return self.stored or self.path

    @property
    def computed(self) -> str | None:
        """An expression's SQL, with column names as in the files; None for a plain column."""
        return expression_of(self.key)

    @property
    def kind(self) -> str | None:
        """The kind of the column's index; None for an ordinary index, with one value per row."""
        return kind_of(self.key)

    @property
    def in_frame(self) -> str:
        """The quoted name of the column in `CatalogTable.frame`."""
        return quoted((VALUE,) if self.computed else self.key)

    @property
    def typed(self) -> str:
        """The column as a user writes it in a statement."""
        return self.path[0] if self.computed else spelled(self.path)

    @property
    def sql(self) -> str:
        """The column or expression as SQL that Spark parses; the names of a column are quoted."""
        return self.path[0] if self.computed else quoted(self.path)

    @property
    def any_width(self) -> bool:
        """Returns whether the length of the column's values is unbounded."""
        return self.type.startswith(("string", "varchar", "binary"))
