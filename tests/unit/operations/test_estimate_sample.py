"""ESTIMATE predicts an index of a whole table from a sample of the table's files."""

from __future__ import annotations

import pytest

from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import Expected
from sieve.operations.estimate_sample import ALL_UP_TO, FILES, sample_files, seconds_to_make


def test_small_tables_are_read_whole() -> None:
    """ESTIMATE reads all files of a small table, and all files if it has a predicate."""
    assert list(sample_files([5] * ALL_UP_TO, every=False).numbers) == list(range(ALL_UP_TO))
    assert sample_files([5] * 1000, every=True).is_all
    some = sample_files([5] * 1000, every=False)
    assert len(some.numbers) == len(set(some.numbers)) == FILES
    assert list(some.numbers) == sorted(some.numbers)
    assert not some.is_all
    assert some.share == FILES / 1000


def test_sample_gets_its_share_of_the_budget() -> None:
    """From a budget in bytes, a sample gets only the sample's share."""
    some = sample_files([10] * 100, every=False)
    assert some.of_all(FILES) == 100
    assert some.scaled_budget(IndexOptions(budget="50%"), 1_000_000).budget == "500000B"
    assert some.scaled_budget(IndexOptions(budget="1MB"), 1_000_000).budget == f"{(1 << 20) // 5}B"
    for options in (IndexOptions(), IndexOptions("sieve")):
        assert some.scaled_budget(options, 1_000_000) is options
    whole = sample_files([10] * 4, every=False)
    one = IndexOptions(budget="1%")
    assert whole.scaled_budget(one, 1_000_000) is one


@pytest.mark.parametrize(
    ("kind", "read", "of_all"),
    [
        # A query for an existing key reads at least the key's own file. So the read of one file
        # does not depend on the sample's size.
        ("present", 1.0, 1.0), ("present", 20.0, 100.0), ("present", 1.19, 1 + 0.19 * 99 / 19),
        ("value", 20.0, 100.0), ("range", 2.0, 1 + 99 / 19), ("absent", 0.2, 1.0),
        ("absent", 0.0, 0.0),
    ],
)  # fmt: skip
def test_reads_are_scaled_by_the_other_files(kind: str, read: float, of_all: float) -> None:
    """The expected reads of a sample are scaled to the whole table, in files and in bytes."""
    some = sample_files([10] * 100, every=False)
    expected = (Expected(kind, read, read, 20.0, 10 * read, 10 * read),)
    (found,) = some.reads_of_all(expected, FILES, 10.0)
    assert (found.kind, found.minmax) == (kind, pytest.approx(100.0))
    assert found.files == found.exact == pytest.approx(of_all)
    assert found.bytes == found.exact_bytes == pytest.approx(10 * of_all)


def test_fixed_time_of_a_job_is_not_scaled() -> None:
    """ESTIMATE scales the time of reading to all files, but not the fixed time of a job."""
    some = sample_files([10] * 100, every=False)
    assert some.seconds_to_read(0.5, 0.1) == pytest.approx(0.5)
    assert some.seconds_to_read(3.0, 2.1) == pytest.approx(3.0 + 1.5 * 4 * 2.0)
    whole = sample_files([10] * 4, every=False)
    assert whole.seconds_to_read(3.0, 2.1) == pytest.approx(3.0)
    assert seconds_to_make(0.2, 31) == pytest.approx(0.2)
    assert seconds_to_make(1.3, 5) == pytest.approx(1.3 + 4 * 1.0)
