"""Reads the golden corpus: files with annotated statements and their expected rows.

In a ``.sql`` file, each statement ends with ``;`` at the end of a line. The statements before the
line ``--@ queries`` make the file's tables, and run once. Each statement after the line ``--@
queries`` runs once in every mode. The ``.out`` file with the same name as the ``.sql`` file
contains the sorted rows of each statement. Annotations precede a statement:

    --! files <= 2 of 20    with the index, a query reads at most 2 files; without it, 20 files --!
    files = 2 of 20     with the index, a query reads exactly 2 files --! modes on strict     the
    statement runs only in the modes ``on`` and ``strict``

Each file runs in strict mode with the index. Files in ``THINNED`` have many similar queries, so
`make test` runs only one in 2 to 12 queries of these files, and no query of the files in
``COVERED``. `make test-long` runs all queries, and also audits the files that scans skip. A file
also runs without the index. The run without the index is omitted if a stored digest proves that it
would pass again (``proven``). The files in ``EVERY_MODE`` also run over the Thrift server and, in
`make test-long`, without the index and with default settings. In `make test-long`, the files in
``OVER_THRIFT`` also run over the Thrift server. Spark compiles the queries of the files in
``EVERY_MODE`` and ``OVER_THRIFT``, and interprets the queries of all other files. With the option
``--every 6``, one query in six of each file runs.

Long lists are hard to read. So in a statement, ``{{3..9 step 2}}`` stands for ``3, 5, 7, 9``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MODES = ("off", "on", "strict", "audited", "thrift")
"""The ways in which a statement can run."""

EVERY_MODE = {"statements"}
"""The files that run in every mode; the other files run only in some modes."""
OVER_THRIFT = {"structs", "timestamps"}
"""The files that also run over the Thrift server. Its results show values in other forms."""

COVERED = {
    "elements", "expressions", "functions", "inlists", "structs", "substrings", "tuples", "zones",
}  # fmt: skip
"""The files about a feature of which tests in ``tests/spark`` run many other queries.

Their tables and indexes take longer to make than one query in twelve takes to run.
"""
THINNED = {
    "dates": 12, "decimals": 12, "dynamic": 12, "floats": 12, "integers": 2, "joinkinds": 12,
    "joins": 12, "partitions": 12, "subqueries": 12, "timestamps": 12, "trees": 4,
}  # fmt: skip
"""The files of which `make test` runs only one query in n, and the number n."""

_QUERIES = "--@ queries"
_SERIES = re.compile(r"\{\{(-?\d+)\.\.(-?\d+)(?: step (\d+))?\}\}")
_ROWS = re.compile(r"\s*(SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE)
_FILES = re.compile(r"files (<=|=) (\d+) of (\d+)")


@dataclass(frozen=True, slots=True)
class Files:
    """How many files a query may read with the index, and how many files it reads without."""

    exact: bool
    most: int
    total: int

    def allow(self, read: int) -> bool:
        """Returns whether the annotation allows a scan with the index to read ``read`` files."""
        return read == self.most if self.exact else read <= self.most


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a corpus file, with its annotations."""

    text: str
    files: Files | None = None
    modes: tuple[str, ...] = MODES

    @property
    def only_reads(self) -> bool:
        """Returns whether the statement only reads. A run can omit a statement that only reads."""
        return _ROWS.match(self.text) is not None

    @property
    def sql(self) -> str:
        """The statement's SQL, with lists in place of series such as ``{{3..9}}``."""
        return _SERIES.sub(_series, self.text)


@dataclass(frozen=True, slots=True)
class Script:
    """A ``.sql`` file in two parts: the statements that make tables, and the queries."""

    path: Path
    setup: tuple[Statement, ...]
    queries: tuple[Statement, ...]

    @property
    def name(self) -> str:
        """The name of the file without its ending."""
        return self.path.stem

    @property
    def expected(self) -> Path:
        """The path of the ``.out`` file with the expected rows."""
        return self.path.with_suffix(".out")


def step(name: str, mode: str) -> int:
    """Returns n if `make test` runs one in n queries of a file in a mode."""
    return THINNED.get(name, 1) if mode == "strict" else 1


def is_long(name: str, mode: str) -> bool:
    """Returns whether only `make test-long` runs a file in a mode."""
    covered = {"off": EVERY_MODE, "strict": COVERED, "thrift": OVER_THRIFT}
    return name in covered[mode] if mode in covered else True


def read_script(path: Path) -> Script:
    """Parses a ``.sql`` file. Raises ValueError if an annotation is invalid."""
    setup, mark, queries = path.read_text(encoding="utf-8").partition(f"{_QUERIES}\n")
    if not mark:
        raise ValueError(f"{path.name} has no line {_QUERIES}")
    return Script(path, tuple(_statements(setup)), tuple(_statements(queries)))


def _statements(text: str) -> Iterator[Statement]:
    lines: list[str] = []
    notes: list[str] = []
    for line in text.splitlines():
        if line.startswith("--!"):
            notes.append(line.removeprefix("--!").strip())
        elif not lines and (not line.strip() or line.startswith("--")):
            continue
        else:
            lines.append(line)
            if line.rstrip().endswith(";"):
                yield _annotated("\n".join(lines).rstrip().removesuffix(";"), notes)
                lines, notes = [], []
    if lines or notes:
        raise ValueError(f"a statement has no end: {lines or notes}")


def _annotated(text: str, notes: Sequence[str]) -> Statement:
    files, modes = None, MODES
    for note in notes:
        if match := _FILES.fullmatch(note):
            files = Files(match[1] == "=", int(match[2]), int(match[3]))
        elif note.startswith("modes ") and set(note.split()[1:]) <= set(MODES):
            modes = tuple(note.split()[1:])
        else:
            raise ValueError(f"not an annotation: --! {note}")
    return Statement(text, files, modes)


def _series(match: re.Match[str]) -> str:
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    return ", ".join(map(str, range(first, last + 1, step)))


def render(statement: Statement, rows: Sequence[str]) -> str:
    """The entry of an ``.out`` file: a statement, then its rows."""
    head = "\n".join(f"> {line}" for line in statement.text.splitlines())
    return "\n".join([head, *rows, ""]) + "\n"


def read_expected(path: Path) -> list[str]:
    """The entries of an ``.out`` file, in order, one per statement."""
    text = path.read_text(encoding="utf-8")
    return [entry.rstrip("\n") + "\n\n" for entry in re.split(r"(?m)^\n(?=> )", text)]
