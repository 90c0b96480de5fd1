from __future__ import annotations

import pytest

from sieve.metadata.records import Expected
from sql_ext.statements.describe import advice


def _advice(expected: float, total: int, type_name: str) -> str | None:
    kinds = (Expected("present", expected, expected, float(total)),)
    return advice(kinds, total, type_name)


@pytest.mark.parametrize(("expected", "total"), [(51.0, 100), (400.0, 400), (8.0, 8)])
def test_an_index_whose_keys_are_in_most_files_says_so(expected: float, total: int) -> None:
    """Where a key is in more than half of the files, DESCRIBE says that the index cannot help."""
    assert "cannot help" in (_advice(expected, total, "bigint") or "")


@pytest.mark.parametrize("type_name", ["string", "binary", "varchar(40)", "decimal(30,2)"])
def test_values_that_may_share_a_code_are_not_given_up(type_name: str) -> None:
    """A map tells apart what key codes do not."""
    words = _advice(60.0, 100, type_name) or ""
    assert "shape = 'map'" in words
    assert "cannot help" not in words


@pytest.mark.parametrize(("expected", "total"), [(1.0, 100), (50.0, 100), (7.0, 7), (0.0, 0)])
def test_others_are_left_in_peace(expected: float, total: int) -> None:
    """An index that skips half of the files or more, or one over few files, gets no advice."""
    assert _advice(expected, total, "string") is None
