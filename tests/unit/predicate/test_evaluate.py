"""Tests predicates: their parsing, the key ranges of their leaves, and the kept locations."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.errors import InvalidInputError
from sieve.predicate.evaluate import evaluate
from sieve.predicate.key_ranges import key_ranges
from sieve.predicate.parse_predicate import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_VALUES,
    And,
    Comparison,
    Membership,
    NullTest,
    Or,
    StartsWith,
    Unknown,
    _names_in,
    not_understood,
    parse,
)

NAN = 0x7FF8 << 48
EVERYTHING = [[LEAST, GREATEST]]


class Listed:
    """An index that stores the exact values of each location."""

    def __init__(self, *values, null_proof=True):
        self.encoder = Encoder("bigint")
        self.null_proof = null_proof
        self._values = values
        self.asked = []

    def keep(self, wanted):
        """Returns true for each location that has a value in the intervals."""
        self.asked.append(wanted)
        return np.array(
            [
                any(
                    wanted.null
                    if value is None
                    else any(first <= value <= last for first, last in wanted.intervals.tolist())
                    for value in values
                )
                for values in self._values
            ]
        )


def compare(op, value, column="x", **more):
    """A comparison in its wire form."""
    return {"op": op, "col": [column], "value": value, **more}


def both(*args):
    """AND in its wire form."""
    return {"op": "and", "args": list(args)}


def any_of(*args):
    """OR in its wire form."""
    return {"op": "or", "args": list(args)}


def kept_locations(tree, n=None, **indexes):
    """Returns the numbers of the kept locations. Each keyword argument is a column's index."""
    over = {(name,): index for name, index in indexes.items()}
    n = n or len(next(iter(indexes.values()))._values)
    return np.flatnonzero(evaluate(parse(tree), over, n).keep).tolist()


def key_ranges_of(tree, encoder):
    """Returns the intervals of a leaf's key ranges, and whether these include NULL and NaN."""
    wanted = key_ranges(parse(tree), encoder)
    return wanted.intervals.tolist(), wanted.null, wanted.nan


def test_every_node_is_read():
    """The parser reads each operator of the protocol as a record, from text and from objects."""
    tree = both(
        compare("<", 1),
        any_of({"op": "in", "col": ["a", "b"], "values": [1, 2]}, {"op": "is null", "col": ["x"]}),
        {"op": "not in", "col": ["x"], "values": ["eA=="], "null": True},
        {"op": "is not null", "col": ["x"]},
        {"op": "starts with", "col": ["x"], "value": "eA=="},
        {"op": "unknown", "why": "rand()"},
    )
    expected = And(
        (
            Comparison("<", ("x",), 1),
            Or((Membership(("a", "b"), (1, 2)), NullTest(("x",)))),
            Membership(("x",), ("eA==",), negated=True, null=True),
            NullTest(("x",), negated=True),
            StartsWith(("x",), "eA=="),
            Unknown("rand()"),
        )
    )
    assert parse(tree) == expected


@pytest.mark.parametrize(
    "tree",
    [
        "not json",
        b"\xff",
        None,
        [],
        {},
        {"op": 1},
        {"op": "not", "args": []},
        {"op": "and"},
        {"op": "or", "args": {}},
        {"op": "or", "args": [1]},
        {"op": "=", "value": 1},
        {"op": "=", "col": [], "value": 1},
        {"op": "=", "col": "x", "value": 1},
        {"op": "=", "col": [1], "value": 1},
        {"op": "=", "col": ["x"] * 101, "value": 1},
        {"op": "=", "col": ["x"]},
        {"op": "=", "col": ["x"], "value": None},
        {"op": "=", "col": ["x"], "value": 1.5},
        {"op": "=", "col": ["x"], "value": 1, "null": 1},
        {"op": "in", "col": ["x"], "values": 1},
        {"op": "in", "col": ["x"], "values": [None]},
        {"op": "starts with", "col": ["x"], "value": 1},
        {"op": "unknown", "why": 1},
    ],
)
def test_malformed_trees_are_refused(tree):
    """The parser refuses a predicate that does not follow the protocol."""
    with pytest.raises(InvalidInputError) as refusal:
        parse(tree)
    assert refusal.value.condition == "SIEVE_BAD_PREDICATE"


def test_limits_make_parts_unknown():
    """If a part exceeds the limit of depth, nodes or values, it becomes an unknown part.

    Because of an unknown part, a scan reads more files, but the query succeeds.
    """
    deep = compare("=", 1)
    for _ in range(MAX_DEPTH):
        deep = both(deep)
    assert kept_locations(deep, x=Listed([0], [1])) == [0, 1]
    assert kept_locations(both(compare("=", 1), deep), x=Listed([0], [1])) == [1]
    many = both(compare("=", 1), *[compare("=", 0)] * MAX_NODES)
    assert [one.why for one in parse(many).args if isinstance(one, Unknown)][:1] == [
        "the predicate has too many parts"
    ]
    # The parser records columns of an unknown part, so a scan can report their unused index.
    deeply = parse(deep)
    while not isinstance(deeply, Unknown):
        (deeply,) = deeply.args
    assert deeply.names == ("x",)
    either = parse({"op": "or", "args": [compare("=", k) for k in range(MAX_NODES)]})
    assert not_understood(either)[-1].names == ("x",)
    long = {"op": "in", "col": ["x"], "values": [1] * (MAX_VALUES + 1)}
    assert parse(long) == Unknown("the predicate has too many values", ("x",))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (compare("=", 5), ([[5, 5]], False, False)),
        (compare("!=", 5), ([[LEAST, 4], [6, GREATEST]], False, True)),
        (compare("!=", 5, null=True), ([[LEAST, 4], [6, GREATEST]], True, True)),
        (compare("!=", LEAST), ([[LEAST + 1, GREATEST]], False, True)),
        (compare("!=", GREATEST), ([[LEAST, GREATEST - 1]], False, True)),
        (compare("<", 5), ([[LEAST, 4]], False, False)),
        (compare("<=", 5), ([[LEAST, 5]], False, False)),
        (compare(">", 5), ([[6, GREATEST]], False, True)),
        (compare(">=", 5), ([[5, GREATEST]], False, True)),
        (compare("<", LEAST), ([], False, False)),
        (compare(">", GREATEST), ([], False, True)),
        (compare("<=", GREATEST), (EVERYTHING, False, False)),
        ({"op": "is null", "col": ["x"]}, ([], True, False)),
        ({"op": "is not null", "col": ["x"]}, (EVERYTHING, False, True)),
        ({"op": "in", "col": ["x"], "values": [7, 1, 2, 1]}, ([[1, 2], [7, 7]], False, False)),
        ({"op": "in", "col": ["x"], "values": []}, ([], False, False)),
        ({"op": "not in", "col": ["x"], "values": []}, (EVERYTHING, True, True)),
        (
            {"op": "not in", "col": ["x"], "values": [3, LEAST, 1, 2, GREATEST], "null": True},
            ([[LEAST + 1, 0], [4, GREATEST - 1]], True, True),
        ),
    ],
)
def test_exact_leaves_select_exactly_their_values(tree, expected):
    """For integers, each operator selects exactly the values that can make it TRUE.

    The tested values include both ends of the domain.
    """
    assert key_ranges_of(tree, Encoder("bigint")) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("=", ([], False, True)),
        ("!=", (EVERYTHING, False, False)),
        ("<", (EVERYTHING, False, False)),
        ("<=", (EVERYTHING, False, True)),
        (">", ([], False, False)),
        (">=", ([], False, True)),
    ],
)
def test_nan_is_greatest_and_equal_to_itself(op, expected):
    """As in Spark, comparisons treat NaN as equal to itself and greater than all other values."""
    assert key_ranges_of(compare(op, NAN), Encoder("double")) == expected


def test_nan_in_lists():
    """IN with NaN selects rows with NaN, and NOT IN with NaN does not select them."""
    values = [NAN, 0]
    assert key_ranges_of({"op": "in", "col": ["x"], "values": values}, Encoder("double")) == (
        [[0, 0]],
        False,
        True,
    )
    assert key_ranges_of({"op": "not in", "col": ["x"], "values": values}, Encoder("double")) == (
        [[LEAST, -1], [1, GREATEST]],
        False,
        False,
    )


def test_equality_selects_zeros_of_both_signs():
    """Equality with -0.0 also selects 0.0, and "less than -0.0" does not select 0.0."""
    minus_zero = struct.unpack("<q", struct.pack("<d", -0.0))[0]
    assert key_ranges_of(compare("=", minus_zero), Encoder("double"))[0] == [[0, 0]]
    assert key_ranges_of(compare("<", minus_zero), Encoder("double"))[0] == [[LEAST, -1]]


@pytest.mark.parametrize(
    ("op", "low", "high"),
    [("=", 0, 0), ("<", None, 0), ("<=", None, 0), (">", 0, None), (">=", 0, None)],
)
def test_inexact_leaves_include_values_of_equal_codes(op, low, high):
    """Strings that share their first eight bytes share a code, so < and > also select this code."""
    encoder = Encoder("string")
    value = base64.b64encode(b"12345678abc").decode()
    code = encoder.literal(value).code
    expected = [[LEAST if low is None else code, GREATEST if high is None else code]]
    assert key_ranges_of(compare(op, value), encoder)[0] == expected


def test_inexact_inequality_excludes_no_code():
    """For strings, `!= 'a'` selects all codes, because other strings can share the code of 'a'."""
    encoder = Encoder("string")
    assert key_ranges_of(compare("!=", "YQ=="), encoder)[0] == EVERYTHING
    assert (
        key_ranges_of({"op": "not in", "col": ["x"], "values": ["YQ=="]}, encoder)[0] == EVERYTHING
    )


def test_starts_with_selects_a_span():
    """LIKE 'ab%' selects the codes of all strings from "ab" to the last string with this prefix."""
    tree = {"op": "starts with", "col": ["x"], "value": base64.b64encode(b"ab").decode()}
    ((first, last),), null, nan = key_ranges_of(tree, Encoder("string"))
    assert (first + (1 << 63)).to_bytes(8, "big") == b"ab\0\0\0\0\0\0"
    assert (last + (1 << 63)).to_bytes(8, "big") == b"ab\xff\xff\xff\xff\xff\xff"
    assert not null
    assert not nan


def test_range_needs_one_key_within_both_bounds():
    """To match a range, a location needs one key within both bounds, not one key on each side."""
    tree = both(compare(">", 1), compare("<", 9))
    assert kept_locations(tree, x=Listed([0, 20], [5], [1, 9])) == [1]
    nested = both(both(compare(">", 1)), both(both(compare("<", 9))))
    assert kept_locations(nested, x=Listed([0, 20], [5], [1, 9])) == [1]


def test_range_narrows_the_or_below_it():
    """A range in an AND also narrows an OR within the AND, for comparisons of the same column."""
    tree = both(compare(">", 1), any_of(compare("<", 5), compare("=", 2, "y")))
    assert kept_locations(tree, x=Listed([0, 9], [3], [9]), y=Listed([0], [0], [2])) == [1, 2]
    inner = any_of(
        compare("=", 2, "y"), both(compare("<", 5), compare(">", 2), compare("=", 0, "y"))
    )
    twice = both(compare("!=", 3), inner)
    assert kept_locations(twice, x=Listed([3, 9], [4], [3, 4]), y=Listed([0], [0], [2])) == [1, 2]


def test_ors_of_one_column_become_one_look_up():
    """Three comparisons of one column under OR become one look-up."""
    index = Listed([0], [2], [9])
    tree = any_of(compare("=", 1), any_of(compare("=", 2), compare(">", 8)))
    assert kept_locations(tree, x=index) == [1, 2]
    assert len(index.asked) == 1


def test_columns_are_combined():
    """AND keeps a location if both columns have a match; OR keeps it if one column has a match."""
    x, y = Listed([1], [1], [0]), Listed([0], [1], [1])
    assert kept_locations(both(compare("=", 1), compare("=", 1, "y")), x=x, y=y) == [1]
    assert kept_locations(any_of(compare("=", 1), compare("=", 1, "y")), x=x, y=y) == [0, 1, 2]


def test_nested_ands_are_flattened():
    """Nested ANDs are flattened: the ranges of all levels intersect.

    An OR within the inner AND is used, too.
    """
    x, y = Listed([1, 9], [5], [5], [5]), Listed([1], [1], [2], [3])
    inner = both(compare(">", 2), any_of(compare("=", 1, "y"), both(compare("=", 2, "y"))))
    assert kept_locations(both(inner, compare("<", 8)), x=x, y=y) == [1, 2]
    several = both(compare(">", 2), any_of(compare("=", 8), compare("=", 1, "y")))
    assert kept_locations(both(several, compare("<", 8)), x=x, y=y) == [1]


def test_unknown_part_is_harmless_in_and_but_not_in_or():
    """If a column has no index, AND uses the other column's index, and OR uses no index."""
    x = {("x",): Listed([1], [0])}
    verdict = evaluate(parse(both(compare("=", 1), compare("=", 1, "y"))), x, 2)
    assert verdict.keep.tolist() == [True, False]
    assert verdict.used == {("x",)}
    twice = any_of(compare("=", 1), compare("=", 1, "y"), compare("=", 2, "y"))
    verdict = evaluate(parse(twice), x, 2)
    assert verdict.keep.all()
    assert verdict.used == frozenset()


def test_constants():
    """TRUE keeps all locations, and FALSE keeps none.

    An AND without parts is TRUE, and an OR without parts is FALSE.
    """
    assert kept_locations({"op": "true"}, 2) == [0, 1]
    assert kept_locations({"op": "false"}, 2) == []
    assert kept_locations(both(), 2) == [0, 1]
    assert kept_locations(any_of(), 2) == []
    assert kept_locations(both(compare("=", 1), {"op": "false"}), x=Listed([1])) == []
    assert kept_locations(both({"op": "false"}, {"op": "true"}), 2) == []
    assert kept_locations(any_of(compare("=", 1), {"op": "false"}), x=Listed([0], [1])) == [1]
    assert kept_locations(any_of(compare("=", 1), {"op": "true"}), x=Listed([0], [1])) == [0, 1]


def test_contradictions_keep_nothing():
    """A predicate that requires two values of x at once, or NULL and a value, keeps no location."""
    x = Listed([1, 2, None])
    assert kept_locations(both(compare("=", 1), compare("=", 2)), x=x) == []
    assert kept_locations(both({"op": "is null", "col": ["x"]}, compare("=", 1)), x=x) == []


def test_null_is_selected_only_if_it_can_match():
    """IS NULL and `NOT (x <=> 1)` select rows with NULL, but `x != 1` selects none."""
    x = Listed([None], [1], [2])
    assert kept_locations({"op": "is null", "col": ["x"]}, x=x) == [0]
    assert kept_locations({"op": "is not null", "col": ["x"]}, x=x) == [1, 2]
    assert kept_locations(compare("!=", 1, null=True), x=x) == [0, 2]
    assert kept_locations(compare("!=", 1), x=x) == [2]


def test_null_without_proof_keeps_all():
    """If an index proves nothing about NULL, equality uses the index, but tests for NULL do not.

    An index proves nothing about NULL if NULLs depend on which other columns are read.
    """
    x = Listed([None], [1], [2], null_proof=False)
    verdict = evaluate(parse({"op": "is null", "col": ["x"]}), {("x",): x}, 3)
    assert verdict.keep.all()
    assert verdict.used == frozenset()
    assert kept_locations(compare("=", 1), x=x) == [1]
    assert kept_locations(any_of(compare("=", 1), {"op": "is null", "col": ["x"]}), x=x) == [
        0,
        1,
        2,
    ]
    assert kept_locations(both(compare("=", 1), compare("!=", 5, null=True)), x=x) == [1]
    y = Listed([0], [1], [0], null_proof=False)
    neither = both({"op": "is null", "col": ["x"]}, {"op": "is null", "col": ["y"]})
    assert kept_locations(neither, x=x, y=y) == [0, 1, 2]
    null_or_y = any_of({"op": "is null", "col": ["x"]}, compare("=", 1, "y"))
    assert kept_locations(null_or_y, x=x, y=y) == [0, 1, 2]
    assert kept_locations(both(null_or_y, compare("=", 0, "y")), x=x, y=y) == [0, 2]


def test_nested_columns_match_by_their_whole_path():
    """Look-ups of b, a and A.b ignore an index on a.b."""
    index = {("a", "b"): Listed([1], [0])}
    for path, expected in (
        (["a", "b"], [True, False]),
        (["b"], [True, True]),
        (["A", "b"], [True, True]),
    ):
        tree = {"op": "=", "col": path, "value": 1}
        assert evaluate(parse(tree), index, 2).keep.tolist() == expected


def test_a_constant_of_another_type_is_an_error():
    """A literal is refused if its wire form does not suit the type of its column."""
    with pytest.raises(InvalidInputError):
        kept_locations(compare("=", "text"), x=Listed([1]))


def nested(depth):
    """A comparison nested in AND nodes. The depth counts the AND nodes and the comparison."""
    tree = compare("=", 1)
    for _ in range(depth - 1):
        tree = both(tree)
    return tree


@pytest.mark.parametrize(
    ("made", "most", "problem"),
    [
        (nested, 200, "the predicate is nested too deeply"),
        (lambda n: both(*[compare("=", 1)] * (n - 1)), 10_000, "the predicate has too many parts"),
        (
            lambda n: {"op": "in", "col": ["x"], "values": [1] * n},
            200_000,
            "the predicate has too many values",
        ),
    ],
    ids=["depth", "parts", "values"],
)
def test_a_predicate_may_reach_its_limits(made, most, problem):
    """A predicate that reaches a limit is parsed; beyond the limit, a part becomes `Unknown`.

    Filters of real queries are far below the limits of the parser.
    """

    def parts(tree):
        part = parse(tree)
        while isinstance(part, And) and len(part.args) == 1:
            (part,) = part.args
        return part.args if isinstance(part, And) else [part]

    assert not any(isinstance(part, Unknown) for part in parts(made(most)))
    unknown = [part for part in parts(made(most + 1)) if isinstance(part, Unknown)]
    assert [part.why for part in unknown] == [problem]


def test_an_unparsed_part_names_its_columns_and_expressions():
    """A part beyond a limit is not parsed; it lists its columns, and the SQL of its expressions."""
    keys = (["x"], ["s", "a"], ["", "lower(x)"], ["", "x", "substring"], [])
    leaves = [{"op": "=", "col": key, "value": 1} for key in keys]
    tree = both(*[compare("=", 1)] * 10_000, {"op": "or", "args": leaves})
    (part,) = [
        part for part in parse(tree).args if isinstance(part, Unknown) and len(part.names) > 1
    ]
    assert sorted(part.names) == ["lower(x)", "s", "x"]


def test_a_column_may_be_a_hundred_structs_deep():
    """A column path can have 100 parts. The parser refuses a longer path."""
    deep = {"op": "=", "col": ["x"] * 100, "value": 1}
    assert parse(deep).column == ("x",) * 100
    with pytest.raises(InvalidInputError, match="SIEVE_BAD_PREDICATE"):
        parse(deep | {"col": ["x"] * 101})


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (compare("=", 1), ("x",)),
        (both(compare("=", 1, "y"), both(compare("=", 1), compare("=", 2))), ("x", "y")),
        ({"op": "unknown", "names": ["a", 1, "b"]}, ("a", "b")),
        ({"op": "and", "args": [7, None, {"col": []}, {"col": [5]}, compare("=", 1)]}, ("x",)),
        (7, ()),
    ],
)
def test_columns_of_an_unparsed_part_are_named(part, names):
    """For an unparsed part, the parser names each column in the part once, at any depth.

    The parser ignores malformed columns in an unparsed part.
    """
    assert set(_names_in(part)) == set(names)
    assert len(_names_in(part)) == len(names)


@pytest.mark.parametrize("names", ["x", [1], ["x", None], {"x": 1}])
def test_names_that_are_no_strings_are_malformed(names):
    """In an unknown part, the names of columns and the reason must be strings."""
    with pytest.raises(InvalidInputError, match="names of unknown"):
        parse({"op": "unknown", "why": "a function", "names": names})
    with pytest.raises(InvalidInputError, match="why of unknown"):
        parse({"op": "unknown", "why": names if names != "x" else 7})


def test_reason_of_an_unknown_part_is_truncated():
    """The reason of an unknown part is truncated, because users see this text."""
    assert parse({"op": "unknown", "why": "w" * 1001}).why == "w" * 1000
    assert parse({"op": "unknown"}) == Unknown("not understood", ())


def test_columns_are_found_next_to_any_other_nodes() -> None:
    """The parser finds columns at any depth, next to any other nodes."""
    node = {
        "op": "and",
        "col": ["a", "b"],
        "args": [{"col": ["c"]}, 5, {"args": [None, {"names": ["d", 7]}, "x"]}, {"col": [3]}],
    }
    assert set(_names_in(node)) == {"a", "c", "d"}
