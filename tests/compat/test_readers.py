"""Spark's release lines read columns of the kinds in `spark_lines.py` alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spark_session import Lab

from sieve.metadata.spark_lines import alike
from tests.compat.make_readers import VALUES, Golden, Reader, digests, files, line_of

GOLDEN: Golden = json.loads(VALUES.read_text())
BATCHES = [
    f"spark.sql.{kind}.{own}"
    for kind in ("parquet", "orc")
    for own in ("enableVectorizedReader", "enableNestedColumnVectorizedReader")
]
LINES = ("3.5", "4.1")
KINDS = {
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
}
"""The kind of a column by its type, if the kind is not the type's name."""


def _shared(line: str, file: str, how: str) -> str:
    """The release lines of Spark whose index on such a column serves the given release line."""
    kind = how.partition(",")[0]
    return alike(line, Path(file).suffix[1:], KINDS.get(kind, kind))


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_this_line_reads_what_is_known(lab: Lab, path: Path) -> None:
    """Reads each column of each file as each type, in batches and in rows, also within a struct."""
    line = line_of(lab.spark)
    with lab.settings(dict.fromkeys(BATCHES, "true")):
        found = digests(Reader(lab.spark, path).values())
    known = {
        how: own
        for how, columns in GOLDEN.get(path.name, {}).items()
        if (own := {name: lines[line] for name, lines in columns.items() if line in lines})
    }
    assert found == known


def test_lines_that_share_an_index_read_the_same_values() -> None:
    """Compares columns that both lines can read: a reader that fails has no value to lose."""
    for file, hows in GOLDEN.items():
        for how, columns in hows.items():
            for name, lines in columns.items():
                seen: dict[str, set[str]] = {}
                for line, values in lines.items():
                    seen.setdefault(_shared(line, file, how), set()).add(values)
                assert all(len(values) == 1 for values in seen.values()), (file, how, name, lines)


def test_lines_that_share_an_index_are_known() -> None:
    """Only a release line whose values are in the list may share an index."""
    known = {
        line
        for hows in GOLDEN.values()
        for own in hows.values()
        for c in own.values()
        for line in c
    }
    assert set(LINES) <= known
    assert all(alike(line, "parquet", "integer") == line for line in ("3.4", "4.4", "5.0"))
