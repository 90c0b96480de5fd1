"""Checks that each package of the shim uses only packages that are lower in a fixed order.

A package is a folder of ``src``. ``LAYERS`` lists the packages from the lowest to the highest. Only
the package ``formats`` may contain the name of a table format, such as Hudi.

Usage: ``python sql_ext/jvm/layers.py``. The script prints each fault. After a fault, the exit code
    is 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = "org.apache.spark.sql.sieve"
LAYERS: Final = ("base", "formats", "catalog", "predicate", "ask", "plan", "observe", "statements")
"""The packages, lowest first. `SieveExtensions` is above all packages, and may use every
package."""

_PACKAGE: Final = re.compile(rf"^package {re.escape(ROOT)}(?:\.(\w+))?$", re.MULTILINE)
_USED: Final = re.compile(rf"{re.escape(ROOT)}\.([a-z]\w*)")
_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_FORMAT: Final = re.compile(r"\b(?:Hudi|Delta|Iceberg)\w*")


def faults(sources: Path = HERE) -> Iterator[str]:
    """Yields a line of text for each fault.

    The function finds three faults: a file in the wrong folder, the use of a higher package, and
    the name of a table format outside the package ``formats``.

    Args:
        sources: folder that contains ``src`` and ``compat``.
    """
    files = [*(sources / "src").rglob("*.scala"), *(sources / "compat").rglob("*.scala")]
    for file in sorted(files):
        text, name = file.read_text(encoding="utf-8"), file.relative_to(sources).as_posix()
        declared = _PACKAGE.search(text)
        package = declared[1] if declared else None
        if declared is None or (package and package not in LAYERS):
            yield f"{name}: its package is none of {', '.join(LAYERS)}"
            continue
        if name.startswith("src/") and file.parent.name != (package or "src"):
            yield f"{name}: its package is {package or ROOT}, which is another folder"
        height = LAYERS.index(package) if package else len(LAYERS)
        code = _COMMENT.sub("", text)
        for used in sorted(set(_USED.findall(code))):
            if used in LAYERS and LAYERS.index(used) > height:
                yield f"{name}: {package} must not use {used}, which lies above it"
        if package and package != "formats" and (found := _FORMAT.search(code)):
            yield f"{name}: {found[0]}: only formats may name a table format"


if __name__ == "__main__":
    found = list(faults())
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
