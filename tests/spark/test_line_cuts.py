"""Tests text files with lines that begin just before, at, or just after the end of a range.

A line belongs to the range that contains the first byte of the line. As an exception, a line that
begins exactly where a range ends still belongs to this range. The index and the scan must assign
every line to the same range.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
from spark_session import INTERPRETED, Lab, scans

WIDTH, STEP, LINES = 20, 101, 112
"""Bytes per line, bytes per range, and the number of lines.

There are 21 cuts. The cuts fall on each of the 20 bytes of a line, and on the second byte twice.
"""
CUTS = range(STEP, LINES * WIDTH - STEP, STEP)
FORMS = {
    "csv": ("csv", "", "{},{}", "\n"),
    "csv of two bytes an ending": ("csv", "", "{},{}", "\r\n"),
    "csv with a separator": ("csv", "OPTIONS (lineSep ';')", "{},{}", ";"),
    "json": ("json", "", '{{"k":{},"v":{}}}', "\n"),
}
CONF = INTERPRETED | {
    "spark.sieve.range.bytes": str(STEP),
    "spark.sql.files.openCostInBytes": "0",
}


def keys_by_line() -> list[int]:
    """Three-digit keys in random order; each key occurs once in the file."""
    return random.Random(3).sample(range(100, 1000), LINES)


def write(path: Path, keys: list[int], line: str, ending: str) -> None:
    """Writes a file of lines of equal length; each line has a key, and a number as padding."""
    fixed = len(line.format(100, "")) + len(ending)
    text = "".join(line.format(key, "7" * (WIDTH - fixed)) + ending for key in keys)
    assert len(text) == len(keys) * WIDTH
    path.write_bytes(text.encode())


def _forms(*long: str) -> list[Any]:
    return [pytest.param(form, marks=pytest.mark.long if form in long else ()) for form in FORMS]


@pytest.mark.parametrize("form", _forms("csv with a separator"))
def test_first_line_after_a_cut_is_found(lab: Lab, tmp_path: Path, form: str) -> None:
    """For every third range, a query finds the first line that begins after the range's start.

    Each query reads only every third range. The query skips the next range, so a line that the scan
    assigned to the next range would be missing.
    """
    format_name, options, line, ending = FORMS[form]
    assert sorted(cut % WIDTH for cut in CUTS) == sorted([*range(WIDTH), STEP % WIDTH])
    keys = keys_by_line()
    write(tmp_path / f"lines.{format_name}", keys, line, ending)
    with lab.database("line_cuts"), lab.settings(CONF):
        lab.sql(
            f"CREATE TABLE t (k INT, v BIGINT) USING {format_name} {options} LOCATION '{tmp_path}'"
        )
        lab.sql("CREATE SIEVE INDEX ON t (k) OPTIONS (granularity = 'range', shape = 'map')")
        behind = [keys[-(-cut // WIDTH)] for cut in CUTS]
        for some in (behind[number::3] for number in range(3)):
            query = f"SELECT k, v FROM t WHERE k IN ({', '.join(map(str, some))})"
            assert lab.check(query, exactly=1).rows.total() == len(some)
            frame = lab.spark.sql(query)
            frame.collect()
            (scan,) = scans(frame._jdf.queryExecution().executedPlan())
            skipped = scan.metrics().apply("numRangesSkipped").value()
            assert len(CUTS) + 1 - skipped == len(some)


@pytest.mark.parametrize(
    "form", _forms("json", "csv with a separator", "csv of two bytes an ending")
)
def test_lines_of_split_files_are_found_next_to_ranges(lab: Lab, tmp_path: Path, form: str) -> None:
    """If a scan reads ranges of one file, it still finds all lines of other, split files.

    In one new file, no line begins in the last split. In another new file, four lines begin in the
    last split. Spark never splits a compressed file.
    """
    format_name, options, line, ending = FORMS[form]
    known = random.Random(4).sample(range(100, 500), LINES)
    new, shorter = range(500, 500 + LINES), range(700, 700 + LINES - 1)
    packed = range(850, 850 + LINES)
    write(tmp_path / f"known.{format_name}", known, line, ending)
    split = {"spark.sql.files.maxPartitionBytes": str(STEP)}
    with lab.database("line_splits"), lab.settings(CONF | split):
        lab.sql(
            f"CREATE TABLE t (k INT, v BIGINT) USING {format_name} {options} LOCATION '{tmp_path}'"
        )
        lab.sql("CREATE SIEVE INDEX ON t (k) OPTIONS (granularity = 'range', shape = 'map')")
        write(tmp_path / f"new.{format_name}", list(new), line, ending)
        write(tmp_path / f"shorter.{format_name}", list(shorter), line, ending)
        plain = tmp_path / f"packed.{format_name}"
        write(plain, list(packed), line, ending)
        plain.with_suffix(f".{format_name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
        lab.sql("REFRESH TABLE t")
        query = f"SELECT k, v FROM t WHERE k = {known[0]} OR k >= 500"
        assert lab.check(query, exactly=4).rows.total() == 3 * LINES
        frame = lab.spark.sql(query)
        frame.collect()
        (scan,) = scans(frame._jdf.queryExecution().executedPlan())
        assert scan.metrics().apply("numRangesSkipped").value() >= len(CUTS) - 1
