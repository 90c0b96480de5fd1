"""A path list stores strings in a single buffer, and behaves like a list of strings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.metadata import path_list
from sieve.metadata.path_list import PathList, concat_paths

TEXTS = st.lists(st.sampled_from(["", "a", "b", "ab", "é/\n", "x" * 300]), max_size=12)


@given(TEXTS, TEXTS)
def test_path_list_acts_like_a_list_of_strings(one: list[str], two: list[str]) -> None:
    """Each operation returns the same result on a path list as on a list, even with repetitions."""
    left, right = PathList.of(one), PathList.of(two)
    assert (len(left), list(left), left == tuple(one), left == two) == (
        len(one),
        one,
        True,
        one == two,
    )
    assert [left[k] for k in range(len(one))] == one
    assert left[1:3] == one[1:3]
    assert concat_paths([left, right, left]) == [*one, *two, *one]
    assert left.is_distinct == (len(set(one)) == len(one))
    assert sorted(left.repeated()) == sorted(p for p, times in Counter(one).items() if times > 1)
    assert left.within(right).tolist() == [path in two for path in one]
    each = list(dict.fromkeys(two))
    places = left.places_in(PathList.of(each))
    assert places.tolist() == [each.index(path) if path in each else -1 for path in one]
    first = list(dict.fromkeys(one))
    assert left.numbered().tolist() == [first.index(path) for path in one]
    which = np.array([path != "a" for path in one], np.bool_)
    assert left.chosen(which) == [path for path in one if path != "a"]
    assert left.at(np.arange(len(one))[::-1]) == one[::-1]


def test_iteration_returns_all_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iteration returns all paths, for any number of paths that it decodes at once."""
    monkeypatch.setattr(path_list, "_AT_ONCE", 2)
    for n in range(6):
        names = [str(k) for k in range(n)]
        assert list(PathList.of(names)) == names


def test_path_list_equals_only_sequences() -> None:
    """A path list equals only sequences of the same strings."""
    one = PathList.of(["a"])
    assert PathList.of(one) is one
    assert one != 5
    assert one == ["a"]
    assert one != ["a", "b"]
