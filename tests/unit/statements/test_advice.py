from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.metadata.options import IndexOptions
from sieve.metadata.records import BuildStats, Expected
from sieve.operations.estimate import Estimate
from sieve.operations.estimate_predicate import Reads
from sieve.tables.column import Column
from sql_ext.statements import describe
from sql_ext.statements.describe import advice
from tests.unit.metadata.manifest_sample import SAMPLE


def _advice(
    expected: float, total: int, value: float | None = None, *, mapped: bool = False
) -> str | None:
    kinds = [Expected("present", expected, expected, float(total), expected, expected)]
    if value is not None:
        kinds.append(Expected("value", expected, value, float(total), expected, value))
    return advice(kinds, total, total, mapped=mapped)


@pytest.mark.parametrize(("expected", "total"), [(51.0, 100), (400.0, 400), (2.0, 2)])
def test_an_index_whose_keys_are_in_most_files_says_so(expected: float, total: int) -> None:
    """If a key is in more than half of the files, DESCRIBE states that the index cannot help."""
    words = _advice(expected, total) or ""
    assert "cannot help" in words
    assert f"in {expected:.3g} of {total} files" in words


def test_a_table_of_one_file_has_nothing_to_skip() -> None:
    """If there are more files, the index can help, so the advice does not suggest a DROP."""
    words = _advice(1.0, 1) or ""
    assert "cannot help yet" in words
    assert "DROP" not in words


def test_values_that_may_share_a_code_are_not_given_up() -> None:
    """A map can distinguish values that share a key code."""
    for value in (1.0, 50.0):
        words = _advice(60.0, 100, value) or ""
        assert "shape = 'map'" in words
        assert "cannot help" not in words


def test_values_that_are_in_most_files_are_given_up() -> None:
    """If a value is in all files, a map cannot exclude a file."""
    words = _advice(60.0, 100, 51.0) or ""
    assert "cannot help" in words
    assert "in 51 of 100 files" in words
    assert "map" not in words


def test_a_map_is_not_advised_to_an_index_that_has_one() -> None:
    """The budget can cause short fingerprints in the index's map; the advice suggests no map."""
    words = _advice(60.0, 100, 1.0, mapped=True) or ""
    assert "helps little" in words
    assert "map" not in words


@pytest.mark.parametrize(("expected", "total"), [(1.0, 100), (50.0, 100), (1.0, 2), (0.0, 0)])
def test_others_are_left_in_peace(expected: float, total: int) -> None:
    """For an index that skips half of the files or more, there is no advice."""
    assert _advice(expected, total) is None


@pytest.mark.parametrize(("larger", "words"), [(52, None), (90, "cannot help")])
def test_one_of_two_uneven_files_is_half_of_the_table(larger: int, words: str | None) -> None:
    """Files are never of one size, and a value is more often in the larger file."""
    least = (larger**2 + (100 - larger) ** 2) / 100
    told = advice((Expected("present", 1.0, 1.0, 2.0, least, least),), 2, 100)
    assert (told is None) if words is None else (words in (told or ""))


MB = 1 << 20


@pytest.mark.parametrize(
    ("read", "least", "words"),
    [(10, 9, None), (90, 9, "helps little"), (90, 80, "cannot help")],
)
def test_bytes_count_where_they_are_known(read: int, least: int, words: str | None) -> None:
    """A query reads one of a hundred files, but this file can have most of the table's bytes."""
    kinds = (Expected("present", 1.0, 1.0, 100.0, read * MB, least * MB),)
    told = advice(kinds, 100, 100 * MB)
    assert (told is None) if words is None else (words in (told or ""))


def test_describe_has_bytes_beside_files() -> None:
    """DESCRIBE shows the bytes read, the bytes of the table, and the minimum."""
    with_bytes = Expected("present", 1.0, 1.0, 3.0, 1_200_000.4, 1e6)
    stats = BuildStats(9, 0, 0, 72, 1.0, (with_bytes,), 4, 4, 4_000_000)
    assert list(describe._expected(stats)) == [
        (
            "files read for a key that occurs",
            "1.00 of 4 expected; at least 1.00, by min and max 3.00",
        ),
        ("bytes read for a key that occurs", "1200000 of 4000000 expected; at least 1000000"),
    ]


@pytest.mark.parametrize(
    ("format_name", "parts", "words"),
    [
        ("delta", {}, "files of Delta tables"),
        ("hudi", {}, "file slices of Hudi tables"),
        ("json", {"option.multiline": "TRUE"}, "text files"),
        ("csv", {"option.linesep": "||"}, "text files"),
        ("csv", {}, None),
        ("parquet", {}, None),
    ],
)
def test_ranges_in_vain_are_told(
    format_name: str, parts: dict[str, str], words: str | None
) -> None:
    """Advice on useless ranges is for an index that exists, will change, or does not exist yet."""
    ranges = IndexOptions(granularity="range")
    table: Any = SimpleNamespace(
        info=SimpleNamespace(format_name=format_name, fingerprint_parts=parts)
    )
    own: Any = {"format_name": format_name, "fingerprint_parts": parts, "next_options": None}
    one = replace(SAMPLE, **own)
    estimate = Estimate(ranges, ("intervals",), 5000, 0.01, 2.0, 4, None, 100 * MB, (), None)
    found = (
        describe.advice_on(replace(one, options=ranges)),
        describe.advice_on(replace(one, next_options=ranges)),
        describe.estimate_row(table, Column(("id",), "bigint"), estimate)[-1],
    )
    for told in found:
        assert (told is None) if words is None else f"no effect: {words}" in (told or "")
    assert describe.advice_on(one) is None


@pytest.mark.parametrize(("files", "drop"), [(4, True), (1, False)])
def test_an_index_that_cannot_help_is_to_be_dropped(files: int, drop: bool) -> None:
    """A table of one file can get more files, and then the index can help."""
    each = Expected("present", float(files), float(files), float(files), 1e6, 1e6)
    stats = BuildStats(9, 0, 0, 72, 1.0, (each,), files, files, 1_000_000)
    words = describe.advice_on(replace(SAMPLE, stats=stats)) or ""
    assert "cannot help" in words
    assert ("; DROP this one, unless" in words) == drop


def test_an_estimate_has_the_bytes_of_the_files_that_are_read() -> None:
    """The bytes are the bytes of the files that are read, and not of files of mean size.

    For a kind of query without a probe, the value is NULL.
    """
    present = Expected("present", 1.5, 1.0, 4.0, 90 * MB + 0.4, 80 * MB)
    estimate = Estimate(
        IndexOptions(), ("intervals",), 5000, 0.01, 2.0, 4, None, 100 * MB, (present,), None
    )
    table: Any = SimpleNamespace(info=SimpleNamespace(format_name="parquet", fingerprint_parts={}))
    row = describe.frontier_row(table, Column(("id",), "bigint"), estimate)
    assert row[7:13] == (1.5, 90 * MB, None, None, None, None)


def test_an_estimate_says_how_many_files_it_has_read() -> None:
    """The advice states that only a sample of the files was read.

    If there is a query, its reads are shown instead of the reads of a key.
    """
    present = Expected("present", 1.504, 1.0, 40.0, 1.0 * MB, 1.0 * MB)
    estimate = Estimate(
        IndexOptions(), ("intervals",), 5000, 0.01, 2.0, 40, None, 40 * MB, (present,), None
    )
    table: Any = SimpleNamespace(info=SimpleNamespace(format_name="parquet", fingerprint_parts={}))
    column = Column(("id",), "bigint")
    row = describe.estimate_row(table, column, estimate)
    assert row == ("id", 40, 1.5, 5000, 2.0, None)
    asked = replace(estimate, asked=Reads(40, 7, 7 * MB, understood=True))
    assert describe.estimate_row(table, column, asked)[2] == 7.0
    some = replace(estimate, sampled=20)
    assert describe.estimate_row(table, column, some)[-1] == "estimated by a sample of 20 files"
    everywhere = replace(some, expected=(replace(present, bytes=40.0 * MB, exact_bytes=40.0 * MB),))
    words = describe.estimate_row(table, column, everywhere)[-1]
    # There is no index that the advice could drop.
    assert words.endswith("of the table with any index. Estimated by a sample of 20 files")
