"""Tests predicates on array elements. Different elements can make two `exists` true."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.predicate.evaluate import evaluate
from sieve.predicate.parse_predicate import columns, parse
from sieve.reader.pruner import narrows

TAGS = ("", "tags", "elements")


class Listed:
    """An index that stores the exact values of each location."""

    encoder = Encoder("bigint")
    null_proof = True

    def __init__(self, *values):
        self._values = values

    def keep(self, wanted):
        """Returns true for each location that has a value in the intervals."""
        spans = wanted.intervals.tolist()
        return np.array(
            [any(a <= value <= b for a, b in spans for value in some) for some in self._values]
        )


def leaf(op, value, column=TAGS):
    """A comparison in its wire form."""
    return {"op": op, "col": list(column), "value": value}


def exists(*args):
    """A predicate on one element of an array, in its wire form."""
    return {"op": "exists", "args": list(args)}


def joined(op, *args):
    """AND or OR in its wire form."""
    return {"op": op, "args": list(args)}


@pytest.mark.parametrize(
    ("tree", "kept"),
    [
        (exists(leaf("=", 3)), [1]),
        (exists(leaf(">", 2), leaf("<", 8)), [1, 2]),
        (exists(leaf(">", 5), leaf("<", 9)), []),
        (joined("and", exists(leaf("=", 1)), exists(leaf("=", 9))), [0]),
        (joined("and", exists(leaf("=", 1)), exists(leaf("=", 3))), []),
        (
            joined(
                "and",
                joined("or", exists(leaf("=", 1)), exists(leaf("=", 4))),
                joined("or", exists(leaf("=", 5)), exists(leaf("=", 9))),
            ),
            [0, 2],
        ),
        (
            joined(
                "or",
                joined("and", exists(leaf("=", 1)), exists(leaf("=", 9))),
                exists(leaf("=", 3)),
            ),
            [0, 1],
        ),
        (exists(leaf("=", 1), exists(leaf("=", 9))), [0]),
        (exists(leaf("=", 4), leaf("=", 2, ("id",))), [2]),
        (joined("and", exists(leaf("=", 4)), leaf("=", 1, ("id",))), []),
        (leaf("=", 3), [0, 1, 2]),
        (joined("and", leaf("=", 1), leaf("=", 9)), [0, 1, 2]),
        (joined("or", leaf("=", 3), exists(leaf("=", 3))), [0, 1, 2]),
    ],
)
def test_ranges_of_several_elements_are_not_intersected(tree, kept):
    """Ranges within one `exists` intersect, but ranges of two `exists` do not intersect.

    A comparison outside of `exists` uses no index on elements.
    """
    over = {TAGS: Listed([1, 9], [3], [4, 5]), ("id",): Listed([0], [1], [2])}
    assert np.flatnonzero(evaluate(parse(tree), over, 3).keep).tolist() == kept


def test_the_columns_of_a_predicate_of_one_element():
    """An `exists` names its indexed column, and counts as a predicate that can skip files."""
    tree = parse(exists(leaf("=", 3)))
    assert columns(tree) == {TAGS}
    assert narrows(tree, {TAGS})
    assert not narrows(parse(exists({"op": "unknown", "why": "reverse"})), {TAGS})
