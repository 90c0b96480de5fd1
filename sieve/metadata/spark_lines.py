"""The release lines of Spark whose readers return the same values for certain kinds of columns.

`tests/compat/test_readers.py` verifies `KINDS` for each release line, file format and kind of
column. The test reads files that PyArrow and each release line wrote with default settings and
options. For each pair of types, the test reads a column of the first type as the second type. The
test reads columns in batches and row by row, at top level and within structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LINES: Final = ("3.5", "4.0", "4.1")
_PLAIN: Final = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
        *("string", "binary", "date"),
    }
)
KINDS: Final[Mapping[str, frozenset[str]]] = {"parquet": _PLAIN, "orc": _PLAIN}
"""For each file format, the kinds of columns for which all `LINES` read the same values."""


def alike(line: str, files: str, kind: str) -> str:
    """Returns all release lines that read a column as ``line`` does, joined by " or ".

    Args:
        line: a release line of Spark, such as 4.1.
        files: the file format of the table.
        kind: the kind of the column's type.
    """
    return " or ".join(LINES) if line in LINES and kind in KINDS.get(files, ()) else line
