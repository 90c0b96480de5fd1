"""Release lines of Spark whose readers give the same values for columns of some kinds.

`tests/compat/test_readers.py` proves this. It reads columns of each type as each of these types, in
batches and in rows, also within structs. It sets no settings or options of the reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_LINES: Final = ("3.5", "4.1")
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "parquet": frozenset({"short", "integer", "long", "string"}),
}
"""By file format: the kinds of columns for which these release lines give the same values."""


def alike(line: str, files: str, kind: str) -> str:
    """All release lines of Spark that read a column as the given line does, as text.

    Args:
        line: a release line of Spark, such as 4.1.
        files: the format of the table's files.
        kind: the kind of the column.
    """
    return " or ".join(_LINES) if line in _LINES and kind in _KINDS.get(files, ()) else line
