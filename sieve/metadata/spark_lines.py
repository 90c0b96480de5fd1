"""Release lines of Spark whose readers return the same values for columns of some kinds.

`tests/compat/test_readers.py` verifies the table below, for each release line, format and kind. The
test fails if it leaves out a release line, a format or a kind. The test reads files that PyArrow
and each release line wrote, with default settings and options. For each pair of types, the test
reads a column of one type as the other type, in batches and by row, at top level and within
structs.
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
"""The kinds of columns for which these release lines read the same values, by file format."""


def alike(line: str, files: str, kind: str) -> str:
    """The release lines of Spark that read a column as the given line does, joined to one text.

    Args:
        line: a release line of Spark, such as 4.1.
        files: the format of the table's files.
        kind: the kind of the column.
    """
    return " or ".join(LINES) if line in LINES and kind in KINDS.get(files, ()) else line
