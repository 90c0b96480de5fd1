"""Release lines of Spark whose readers return the same values for columns of some kinds.

`tests/compat/test_readers.py` proves this for each release line, format and kind below, and fails
if the test does not cover one of them. The test reads files that PyArrow and each release line have
written. The test reads columns of each type as each of these types, in batches and in rows, also
within structs. The reader has its default settings and options.
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
    """The release lines of Spark that read a column like the given line, as text.

    Args:
        line: a release line of Spark, such as 4.1.
        files: the format of the table's files.
        kind: the kind of the column.
    """
    return " or ".join(LINES) if line in LINES and kind in KINDS.get(files, ()) else line
