"""Spark's release lines read equal values from the kinds of columns that `spark_lines.py` lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spark_session import Lab

from sieve.metadata.spark_lines import KINDS, LINES, alike
from tests.compat.make_readers import TYPES, VALUES, Golden, Reader, digests, files, line_of

GOLDEN: Golden = json.loads(VALUES.read_text())
BATCHES = [
    f"spark.sql.{kind}.{own}"
    for kind in ("parquet", "orc")
    for own in ("enableVectorizedReader", "enableNestedColumnVectorizedReader")
]
OF_TYPES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""Maps a column's type to the column's kind, if the kind has another name than the type."""
WRITTEN = {
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "boolean": "bool",
    "float": "float32",
    "double": "float64",
    "decimal": "decimal5",
    "string": "text",
    "binary": "raw",
    "date": "date",
}
"""Maps each kind to the column of this kind in the written files."""
SHARED = [(files, kind) for files, kinds in KINDS.items() for kind in sorted(kinds)]


def _type(how: str) -> str:
    """The type at the start of a description such as `decimal(5,2), rows, nested`."""
    return how[: how.rindex("batches" if "batches" in how else "rows") - 2]


def _kind(how: str) -> str:
    name = _type(how).partition("(")[0]
    return OF_TYPES.get(name, name)


def _shared(line: str, file: str, how: str) -> str:
    """The release lines that can use the given line's indexes on a column of this kind."""
    return alike(line, Path(file).suffix[1:], _kind(how))


def _check(lab: Lab, path: Path, types: tuple[str, ...]) -> None:
    """Reads a file's columns as each type, and asserts the recorded values.

    Reads each column in batches, in rows, and as a field of a struct.
    """
    line = line_of(lab.spark)
    with lab.settings(dict.fromkeys(BATCHES, "true")):
        found = digests(Reader(lab.spark, path).values(types))
    known = {
        how: own
        for how, columns in GOLDEN.get(path.name, {}).items()
        if _type(how) in types
        and (own := {name: lines[line] for name, lines in columns.items() if line in lines})
    }
    assert found == known


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.long if number % 2 else ())
        for number, path in enumerate(files())
    ],
    ids=lambda path: path.name,
)
def test_this_line_reads_the_recorded_values(lab: Lab, path: Path) -> None:
    """The running Spark reads each file as one of the types, and gets the recorded values.

    Different test files are read as different types, so that all types occur.
    """
    number = files().index(path)
    _check(lab, path, TYPES[number % len(TYPES) :][:1])


@pytest.mark.soak
@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_this_line_reads_recorded_values_as_each_type(lab: Lab, path: Path) -> None:
    """The running Spark reads each file as every type, and gets the recorded values."""
    _check(lab, path, TYPES)


def test_lines_that_share_an_index_read_the_same_values() -> None:
    """Release lines that share an index read equal values from a column that both can read."""
    for file, hows in GOLDEN.items():
        for how, columns in hows.items():
            for name, lines in columns.items():
                seen: dict[str, set[str]] = {}
                for line, values in lines.items():
                    seen.setdefault(_shared(line, file, how), set()).add(values)
                assert all(len(values) == 1 for values in seen.values()), (file, how, name, lines)


@pytest.mark.parametrize(("kind_of_files", "kind"), SHARED)
def test_each_line_has_read_columns_of_shared_kinds(kind_of_files: str, kind: str) -> None:
    """For each shared kind of column, each release line has read the files of every writer.

    The writers are PyArrow and each line's Spark. Each line reads in batches and in rows.
    """
    column = WRITTEN[kind]
    for writer in ("arrow", *(f"spark-{line}" for line in LINES)):
        for manner in ("batches", "rows"):
            read = [
                columns[column].keys()
                for file, hows in GOLDEN.items()
                if file.startswith(writer) and file.endswith(f".{kind_of_files}")
                for how, columns in hows.items()
                if _kind(how) == kind and how.endswith(manner) and column in columns
            ]
            assert any(lines >= set(LINES) for lines in read), (writer, manner)


@pytest.mark.parametrize("kind_of_files", KINDS)
def test_each_file_and_type_has_recorded_values(kind_of_files: str) -> None:
    """For each file and each type, every release line has recorded values."""
    for path in files():
        if path.suffix == f".{kind_of_files}":
            for line in LINES:
                own = GOLDEN[path.name].items()
                types = {_type(how) for how, of in own if any(line in c for c in of.values())}
                assert types == set(TYPES), (path.name, line)


def test_other_lines_share_no_index() -> None:
    """A release line outside of the table shares no index with another line."""
    assert all(alike(line, "parquet", "integer") == line for line in ("3.4", "4.4", "5.0"))


def test_readers_of_batches_and_of_rows_agree_in_orc() -> None:
    """ORC's batch reader and row reader return equal values, so settings may select any of them."""
    for file, hows in GOLDEN.items():
        if file.endswith(".orc"):
            for how, columns in hows.items():
                other = how.replace("batches", "rows") if "batches" in how else None
                assert other is None or hows[other] == columns, (file, how)
