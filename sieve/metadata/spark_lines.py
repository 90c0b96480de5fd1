"""Lines of Spark whose readers read a column of some kinds alike.

`tests/compat/test_readers.py` shows it: it reads columns of each type as these types, in batches
and in rows, also within structs, without a setting or an option of the reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_LINES: Final = ("3.5", "4.1")
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "parquet": frozenset({"short", "integer", "long", "string"}),
}
"""By the format of files: kinds of columns that these lines read alike."""


def alike(line: str, files: str, kind: str) -> str:
    """The lines of Spark that read a column as a line does.

    Args:
        line: of Spark, such as 4.1.
        files: their format.
        kind: of the column.
    """
    return " or ".join(_LINES) if line in _LINES and kind in _KINDS.get(files, ()) else line
