"""Reads the SQL inputs of Spark's test suite from Spark's published test jar."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = "sql-tests/inputs/"
# Only the Scala and Python sources of Spark's test suite define these functions, which queries
# call.
_OWN_FUNCTIONS = ("udf/", "udaf/", "udtf/")
_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*` | --[^\n]* | /\*.*?\*/ | ; | . """,
    re.DOTALL | re.VERBOSE,
)
_BLOCK = re.compile(
    r"^--QUERY-DELIMITER-START$(.*?)^--QUERY-DELIMITER-END$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class SqlInput:
    """An input file of Spark's SQL tests.

    Attributes:
        name: the path of the input file, relative to the folder of all inputs.
        settings: the settings that the session needs to run the file.
        statements: the statements of the file, in order.
    """

    name: str
    settings: dict[str, str]
    statements: tuple[str, ...]


def read_inputs(jar: Path, only: str = "") -> Iterator[SqlInput]:
    """The inputs whose name contains the text ``only``, ordered by name."""
    with zipfile.ZipFile(jar) as archive:
        names = sorted(n.removeprefix(_ROOT) for n in archive.namelist() if n.startswith(_ROOT))
        for name in names:
            wanted = name.endswith(".sql") and only in name
            if wanted and not name.startswith(_OWN_FUNCTIONS):
                yield _parse(archive, name)


def extract_data(jar: Path, folder: Path) -> None:
    """Extracts the data files for the suite's tables from the jar."""
    with zipfile.ZipFile(jar) as archive:
        for name in ("agg.data", "onek.data", "tenk.data"):
            (folder / name).write_bytes(archive.read(f"test-data/postgresql/{name}"))


def _parse(archive: zipfile.ZipFile, name: str) -> SqlInput:
    text = archive.read(_ROOT + name).decode()
    imported = re.findall(r"^--IMPORT (\S+)", text, re.MULTILINE)
    before = [s for other in imported for s in _parse(archive, other).statements]
    settings = {
        "spark.sql.ansi.enabled": str(not name.startswith("nonansi/")).lower(),
        "spark.sql.timestampType": (
            "TIMESTAMP_NTZ" if name.startswith("timestampNTZ/") else "TIMESTAMP_LTZ"
        ),
    }
    for line in re.findall(r"^--SET (.+)", text, re.MULTILINE):
        for pair in line.split(","):
            key, _, value = pair.partition("=")
            settings[key.strip()] = value.strip()
    return SqlInput(name, settings, (*before, *split(text)))


def split(text: str) -> list[str]:
    """The statements of a script. The text between two query delimiters is one statement."""
    found: list[str] = []
    end = 0
    for block in _BLOCK.finditer(text):
        found += [*_split(text[end : block.start()]), block[1].strip().rstrip(";")]
        end = block.end()
    return [statement for statement in [*found, *_split(text[end:])] if statement]


def _split(text: str) -> list[str]:
    statements = [""]
    for token in _TOKEN.findall(text):
        if token == ";":
            statements.append("")
        elif not token.startswith("--"):
            statements[-1] += token
    return [statement.strip() for statement in statements]
