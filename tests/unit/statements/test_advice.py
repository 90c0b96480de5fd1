from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.index_key import SUBSTRING
from sieve.metadata.index_options import IndexOptions
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


@pytest.mark.parametrize(
    ("expected", "total", "judged", "much"),
    [
        (51.0, 100, "helps little", "most"),
        (26.0, 30, "helps little", "most"),
        (99.0, 100, "cannot help", "almost all"),
        (400.0, 400, "cannot help", "almost all"),
        (2.0, 2, "cannot help", "almost all"),
    ],
)
def test_index_with_keys_in_most_files_gets_advice(
    expected: float, total: int, judged: str, much: str
) -> None:
    """If a key is in most files, the advice says that an index helps little.

    If a key is in all files, the advice says that no index can help.
    """
    words = _advice(expected, total) or ""
    assert f"this index {judged}: " in words
    assert f"in {expected:.3g} of {total} files" in words
    assert f"reads {much} of the table with any index" in words


def test_advice_on_substrings_names_what_helps() -> None:
    """Advice says which texts skip files even if almost all 4-byte sequences are in all files."""
    everywhere = Expected("present", 99.9, 99.9, 100.0, 999.0, 999.0)
    words = advice([everywhere], 100, 1000, kind=SUBSTRING) or ""
    assert "helps little: a text of 12 bytes is in 99.9 of 100 files" in words
    assert words.endswith("unless the text contains a rare sequence of 4 bytes")


def test_drop_is_not_advised_for_a_table_of_one_file() -> None:
    """If a table has one file, the advice does not suggest DROP.

    When the table gets more files, its index can help.
    """
    words = _advice(1.0, 1) or ""
    assert "cannot help yet" in words
    assert "DROP" not in words


def test_map_is_advised_if_values_may_share_a_code() -> None:
    """If values can share a code, the advice suggests a map, because a map distinguishes them."""
    for value in (1.0, 50.0):
        words = _advice(60.0, 100, value) or ""
        assert "shape = 'map'" in words
        assert "cannot help" not in words


def test_map_is_not_advised_if_values_are_in_most_files() -> None:
    """If each value is in most files, the advice does not suggest a map."""
    words = _advice(60.0, 100, 51.0) or ""
    assert "helps little" in words
    assert "in 51 of 100 files" in words
    assert "map" not in words


def test_map_is_not_advised_if_the_index_has_one() -> None:
    """The advice suggests no map if an index already has a map, even a poor map."""
    words = _advice(60.0, 100, 1.0, mapped=True) or ""
    assert "helps little" in words
    assert "map" not in words


@pytest.mark.parametrize(("expected", "total"), [(1.0, 100), (50.0, 100), (1.0, 2), (0.0, 0)])
def test_useful_index_gets_no_advice(expected: float, total: int) -> None:
    """If an index skips at least half of the files, there is no advice."""
    assert _advice(expected, total) is None


@pytest.mark.parametrize(("larger", "words"), [(52, None), (90, "in 1 of 2 files")])
def test_larger_of_two_files_counts_by_its_bytes(larger: int, words: str | None) -> None:
    """The advice compares bytes, because a larger file contains a value more often."""
    least = (larger**2 + (100 - larger) ** 2) / 100
    told = advice((Expected("present", 1.0, 1.0, 2.0, least, least),), 2, 100)
    assert (told is None) if words is None else (words in (told or ""))


MB = 1 << 20


@pytest.mark.parametrize(
    ("read", "least", "words"),
    [
        (10, 9, None),
        (90, 9, "try OPTIONS"),
        (90, 80, "most of the table with any index"),
        (100, 99, "cannot help"),
    ],
)
def test_advice_compares_bytes_if_they_are_known(read: int, least: int, words: str | None) -> None:
    """The advice compares bytes, because one of a hundred files can have most of the bytes."""
    kinds = (Expected("present", 1.0, 1.0, 100.0, read * MB, least * MB),)
    told = advice(kinds, 100, 100 * MB)
    assert (told is None) if words is None else (words in (told or ""))


def test_describe_shows_expected_bytes_and_files() -> None:
    """DESCRIBE shows the expected bytes and files of each kind of query."""
    with_bytes = Expected("present", 1.0, 1.0, 3.0, 1_200_000.4, 1e6)
    stats = BuildStats(9, 0, 0, 72, 1.0, (with_bytes,), 4, 4, 4_000_000)
    assert list(describe._expected(replace(SAMPLE, stats=stats))) == [
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
def test_advice_says_that_ranges_have_no_effect(
    format_name: str, parts: dict[str, str], words: str | None
) -> None:
    """If `granularity = 'range'` has no effect on a table, the advice says so.

    The test covers an index's current and pending options, and the options of ESTIMATE.
    """
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


@pytest.mark.parametrize(
    ("read", "files", "drop"), [(4.0, 4, True), (1.0, 1, False), (3.9, 4, False)]
)
def test_drop_is_advised_for_an_index_that_cannot_help(read: float, files: int, drop: bool) -> None:
    """If an index cannot help, the advice suggests DROP, unless the table has one file.

    The advice does not suggest DROP for an index that skips a fortieth of the files.
    """
    size = round(1_000_000 * read / files)
    each = Expected("present", read, read, float(files), size, size)
    stats = BuildStats(9, 0, 0, 72, 1.0, (each,), files, files, 1_000_000)
    words = describe.advice_on(replace(SAMPLE, stats=stats)) or ""
    assert ("cannot help" in words) == (files == read)
    assert ("; DROP this one, unless" in words) == drop


def test_estimate_has_the_bytes_of_the_files_read() -> None:
    """An estimate counts the real bytes of the files that queries read, not a mean file size.

    For a kind of query without a probe, the estimate's columns are NULL.
    """
    present = Expected("present", 1.5, 1.0, 4.0, 90 * MB + 0.4, 80 * MB)
    estimate = Estimate(
        IndexOptions(), ("intervals",), 5000, 0.01, 2.0, 4, None, 100 * MB, (present,), None
    )
    table: Any = SimpleNamespace(info=SimpleNamespace(format_name="parquet", fingerprint_parts={}))
    row = describe.frontier_row(table, Column(("id",), "bigint"), estimate)
    assert row[7:13] == (1.5, 90 * MB, None, None, None, None)


def test_advice_has_the_number_of_sampled_files() -> None:
    """The advice of ESTIMATE says how many files were read as a sample.

    With a predicate, ESTIMATE shows the reads of a query with this predicate.
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
    # The index does not exist yet, so ESTIMATE does not suggest DROP.
    assert words.endswith("of the table with any index. Estimated by a sample of 20 files")
