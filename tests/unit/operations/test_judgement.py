"""Tests of `sieve.operations.judgement`: the benefit of an index, from expected reads."""

from __future__ import annotations

import pytest

from sieve.index_key import ELEMENTS, SUBSTRING
from sieve.metadata.records import Expected
from sieve.operations.judgement import benefit, of_queries, of_text
from sieve.workload.benefit import Benefit

_KEY = Expected("present", 80.0, 60.0, 100.0, 800.0, 600.0)


@pytest.mark.parametrize(("length", "files"), [(4, 80.0), (5, 64.0), (6, 51.2), (40, 1.0)])
def test_text_has_all_its_keys(length: int, files: float) -> None:
    """A query for a text reads the locations that contain each of the text's keys."""
    (read,) = of_text((_KEY,), length, 100, 1000)
    assert read.files == pytest.approx(files)
    assert read.bytes == pytest.approx(10 * files)
    assert read.exact <= read.files
    assert read.exact_bytes == pytest.approx(10 * read.exact)


def test_text_in_no_location_is_in_no_location() -> None:
    """If no location contains the keys of a text, no location contains the text.

    If there are no locations, no location contains the text.
    """
    nowhere = Expected("present", 0.0, 0.0, 0.0, 0.0, 0.0)
    for locations in (0, 100):
        (read,) = of_text((nowhere,), 12, locations, 10 * locations)
        assert (read.files, read.exact, read.bytes, read.exact_bytes) == (0, 0, 0, 0)


def test_only_substrings_are_judged_by_texts() -> None:
    """Queries for texts decide on a substring index, and queries for keys on any other index."""
    others = (_KEY, Expected("absent", 0.0, 0.0, 0.0, 0.0, 0.0))
    for kind in (None, ELEMENTS):
        assert of_queries(others, kind, 100, 1000) == others
    (text,) = of_queries(others, SUBSTRING, 100, 1000)
    assert benefit([_KEY], 100, 1000) is Benefit.SCATTERED
    assert benefit([text], 100, 1000) is Benefit.HELPS


def test_substring_index_is_never_useless() -> None:
    """Queries for a rare word skip files even if almost all 4-byte sequences are in all files."""
    everywhere = Expected("present", 99.9, 99.9, 100.0, 999.0, 999.0)
    assert benefit([everywhere], 100, 1000) is Benefit.CANNOT
    assert benefit([everywhere], 100, 1000, kind=SUBSTRING) is Benefit.SCATTERED


def test_judgement_allows_an_error() -> None:
    """If the expected reads may be too low, an index that barely helps counts as no help."""
    just = Expected("present", 48.0, 48.0, 100.0, 480.0, 480.0)
    assert benefit([just], 100, 1000) is Benefit.HELPS
    assert benefit([just], 100, 1000, error=0.1) is Benefit.SCATTERED
