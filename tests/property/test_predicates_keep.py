"""For random tables and predicates, look-ups keep each location with a matching row.

The test's oracle evaluates a predicate row by row in three-valued logic, with Spark's rules for
NaN, zeros and bytes. The oracle shares no code with the evaluation under test.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.arrays.interval_set import merge
from sieve.encoding.encoder import Encoder
from sieve.predicate.evaluate import evaluate
from sieve.predicate.parse_predicate import parse
from sieve.reader.entry_table import assemble
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.segments.payload import decode
from tests.generated_encoders import encoders_for
from tests.generated_values import KINDS, image, ordered


@dataclass(frozen=True)
class Table:
    """Rows (location, {column: value}) and the types of the columns."""

    kinds: dict
    rows: list
    n_locations: int


class Column:
    """The index of one column of the table. The column is encoded as in a build."""

    null_proof = True

    def __init__(self, encoder, kind, table, name, options):
        self.encoder = encoder
        places = np.array([at for at, _ in table.rows], np.int32)
        encoded = encoder.encode(kind.column([row[name] for _, row in table.rows]))
        keyed = encoded.valid & ~encoded.nan
        order = np.argsort(encoded.codes[keyed], kind="stable")
        codes, locations = encoded.codes[keyed][order], places[keyed][order]
        chunk = (codes, locations, np.ones(len(codes), np.int64))
        payloads = [encode_segment(segment) for segment in cut_segments([chunk], **options)]
        self._run = assemble(map(decode, payloads))
        self._n_locations = table.n_locations
        self._nulls = np.bincount(places[~encoded.valid], minlength=table.n_locations)
        self._nans = np.bincount(places[encoded.nan], minlength=table.n_locations)

    def keep(self, wanted):
        """Returns the locations that have a key in the intervals, or a wanted NULL or NaN."""
        found = np.zeros(self._n_locations, np.bool_)
        asked = merge(wanted.intervals)
        self._run.mark(asked, found)
        found |= wanted.null & (self._nulls > 0)
        return found | (wanted.nan & (self._nans > 0))


@st.composite
def tables(draw):
    """Tables of up to 40 rows in up to 6 locations. The two columns can contain NULL and NaN."""
    kinds = {name: draw(st.sampled_from(KINDS)) for name in ("x", "y")}
    n_locations = draw(st.integers(1, 6))
    row = st.tuples(
        st.integers(0, n_locations - 1),
        st.fixed_dictionaries(
            {name: st.one_of(st.none(), st.sampled_from(k.values)) for name, k in kinds.items()}
        ),
    )
    return Table(kinds, draw(st.lists(row, max_size=40)), n_locations)


def leaves(table):
    """Leaf predicates on the two indexed columns, and on the column z, which has no index."""

    def over(name):
        kind = table.kinds[name]
        value = st.sampled_from(kind.values)
        column = st.just(name)
        kinds = [
            st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), column, value),
            st.tuples(st.sampled_from(["in", "not in"]), column, st.lists(value, max_size=4)),
            st.tuples(st.just("!= or null"), column, value),
            st.tuples(st.sampled_from(["is null", "is not null"]), column),
        ]
        if kind.name in ("string", "binary"):
            starts = st.builds(lambda v, n: image(v)[:n], value, st.integers(0, 15))
            kinds.append(st.tuples(st.just("starts with"), column, starts))
        return st.one_of(kinds)

    plain = st.sampled_from([("true",), ("false",), ("unknown",), ("=", "z", 1)])
    return st.one_of(over("x"), over("y"), over("x"), over("y"), plain)


def trees(table):
    """Trees that combine leaf predicates with AND and OR."""
    return st.recursive(
        leaves(table),
        lambda inner: st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, max_size=4)),
        max_leaves=12,
    )


def wire(tree, table):
    """A predicate in the JSON form that the driver sends."""
    op, *rest = tree
    if op in ("and", "or"):
        return {"op": op, "args": [wire(arg, table) for arg in rest[0]]}
    if not rest:
        return {"op": op}
    node = {"op": op, "col": [rest[0]]}
    if len(rest) == 1:
        return node
    if rest[0] == "z":
        return {**node, "value": rest[1]}
    kind = table.kinds[rest[0]]
    if op in ("in", "not in"):
        node["values"] = [kind.wire(value) for value in rest[1]]
    else:
        node["value"] = kind.wire(rest[1])
    return {**node, "op": "!=", "null": True} if op == "!= or null" else node


COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(tree, row):
    """Evaluates a predicate for a row: the result is TRUE, FALSE or NULL (None).

    Parts of the predicate that the index cannot evaluate count as TRUE.
    """
    op, *rest = tree
    if op in ("and", "or"):
        found = [holds(arg, row) for arg in rest[0]]
        decisive = op == "or"
        return decisive if decisive in found else None if None in found else not decisive
    if op == "false":
        return False
    if op in ("true", "unknown") or rest[0] == "z":
        return True
    return leaf_holds(op, row[rest[0]], *rest[1:])


def leaf_holds(op, value, constant=None):
    """Evaluates a leaf predicate for one value of the leaf's column."""
    if op in ("is null", "is not null"):
        return (value is None) == (op == "is null")
    if op == "!= or null":
        return value is None or ordered(value) != ordered(constant)
    if value is None:
        return True if op == "not in" and not constant else None
    if op in ("in", "not in"):
        return (ordered(value) in map(ordered, constant)) == (op == "in")
    if op == "starts with":
        return image(value).startswith(constant)
    return COMPARE[op](ordered(value), ordered(constant))


OPTIONS = st.fixed_dictionaries(
    {
        "error": st.sampled_from([1, 100]),
        "max_keys": st.sampled_from([2, 1000]),
        "hole": st.sampled_from([3, (1 << 64) - 1]),
    }
)


@pytest.mark.usefixtures("fifth")
@given(st.data())
@settings(max_examples=100)
def test_no_location_with_a_wanted_row_is_dropped(data):
    """If a predicate is TRUE for a row, the look-up keeps the location of the row.

    Types, values, predicates and segments are random.
    """
    table = data.draw(tables())
    indexes = {
        (name,): Column(
            data.draw(encoders_for(kind, [row[name] for _, row in table.rows])),
            kind,
            table,
            name,
            data.draw(OPTIONS),
        )
        for name, kind in table.kinds.items()
    }
    for _ in range(3):
        tree = data.draw(trees(table))
        verdict = evaluate(parse(wire(tree, table)), indexes, table.n_locations)
        wanted = {at for at, row in table.rows if holds(tree, row)}
        assert wanted <= set(np.flatnonzero(verdict.keep).tolist())
        assert verdict.keep.shape == (table.n_locations,)


class Exact:
    """An exact index that tests each location's values against the key ranges."""

    null_proof = True

    def __init__(self, table, name):
        self.encoder = Encoder("bigint")
        self._values = [
            [row[name] for at, row in table.rows if at == number]
            for number in range(table.n_locations)
        ]

    def keep(self, wanted):
        """Returns the locations that have a value in the intervals, or a wanted NULL."""
        intervals = wanted.intervals.tolist()
        return np.array(
            [
                any(
                    wanted.null if v is None else any(low <= v <= high for low, high in intervals)
                    for v in values
                )
                for values in self._values
            ],
            np.bool_,
        )


@pytest.mark.usefixtures("fifth")
@given(st.data())
@settings(max_examples=40)
def test_exact_index_keeps_only_locations_with_a_match(data):
    """With an exact index on one column, look-ups keep only locations with a matching row."""
    kind = next(kind for kind in KINDS if kind.name == "bigint")
    table = data.draw(tables())
    value = st.one_of(st.none(), st.sampled_from(kind.values))
    places = st.integers(0, table.n_locations - 1)
    rows = data.draw(st.lists(st.tuples(places, st.fixed_dictionaries({"x": value}))))
    table = Table({"x": kind, "y": kind}, rows, table.n_locations)
    tree = data.draw(trees(table).filter(lambda tree: not mentions(tree, {"y", "z", "unknown"})))
    verdict = evaluate(parse(wire(tree, table)), {("x",): Exact(table, "x")}, table.n_locations)
    wanted = {at for at, row in rows if holds(tree, row)}
    if verdict.used:
        assert set(np.flatnonzero(verdict.keep).tolist()) == wanted


def mentions(tree, words):
    """Returns whether the predicate contains any of these operators or columns."""
    op, *rest = tree
    if op in ("and", "or"):
        return any(mentions(arg, words) for arg in rest[0])
    return op in words or bool(rest and rest[0] in words)
