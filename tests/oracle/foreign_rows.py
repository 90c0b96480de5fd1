"""A file's rows before a writer encodes or damages them, and the text form of values."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated_tables import Kind


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows by column.

    Attributes:
        names: the columns of the file, in the order of the table.
        values: the values of each column, by the column's name. Values of ``s`` and ``m`` are
            dictionaries, and values of ``l`` are lists.
        kinds: the kinds of the generated columns, and of ``s.a``. Other columns have plain types.
        damaged: the positions of the rows that a writer has damaged.
    """

    names: tuple[str, ...]
    values: Mapping[str, list[Any]]
    kinds: Mapping[str, Kind]
    damaged: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.values["rid"])

    def family(self, name: str) -> str:
        """The type family of a generated column, or "" for other columns."""
        return self.kinds[name].family if name in self.kinds else ""


def plain_text(family: str, value: Any) -> str:
    """The text that Spark reads as the given value, in CSV and JSON with default options."""
    if family in _TEXTS:
        return _TEXTS[family](value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _real(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")


_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "date": lambda value: str(np.datetime64(value, "D")),
    "timestamp": lambda value: str(np.datetime64(value, "us")) + "Z",
    "timestamp_ntz": lambda value: str(np.datetime64(value, "us")),
    "binary": lambda value: base64.b64encode(value).decode(),
    "decimal": lambda value: format(value, "f"),
    "float": _real,
    "double": _real,
}
