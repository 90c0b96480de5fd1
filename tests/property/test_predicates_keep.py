"""Generated tables and predicates: no location with a row that a query wants is ever dropped.

The oracle evaluates the same tree row by row in three-valued logic with Spark's rules for NaN,
zeros and bytes; it shares no code with what it judges.
"""

from __future__ import annotations

import base64
import math
import operator
import struct
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.blocks import encode_segment
from sieve.keys import Encoder, Window
from sieve.lookup import assemble
from sieve.predicate import evaluate, parse
from sieve.segments import cut_segments
from sieve.shapes import decode
from tests import generated_encoders

FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 2.0**53, 2.0**53 + 2, 0.5, 5e-324]
TEXTS = [
    "",
    "a",
    "a\0",
    "ab",
    "user-",
    "user-1",
    "user-10",
    "user-1\uffff",
    "user-12345678a",
    "user-12345678b",
    "user-12345679",
    "\uffff",
    "z",
]


@dataclass(frozen=True)
class Kind:
    """A column type: Arrow's name for it, and values with the ends of its range among them."""

    name: str
    arrow: pa.DataType
    values: list

    def column(self, values):
        """The values as an Arrow array."""
        if self.name in ("date", "timestamp"):
            width = pa.int32() if self.name == "date" else pa.int64()
            return pa.array(values, width).cast(self.arrow)
        if self.name.startswith("decimal"):
            # From text: arithmetic would round to the context's 28 digits.
            scale = self.arrow.scale
            values = [None if v is None else Decimal(f"{v}E-{scale}") for v in values]
        return pa.array(values, self.arrow)

    def wire(self, value):
        """A constant as it travels."""
        if self.name == "float":
            return struct.unpack("<i", struct.pack("<f", value))[0]
        if self.name == "double":
            return struct.unpack("<q", struct.pack("<d", value))[0]
        if self.name in ("string", "binary"):
            return base64.b64encode(image(value)).decode()
        return str(value) if self.name.startswith("decimal") else value


def image(value):
    """The bytes of a text or binary value."""
    return value.encode() if isinstance(value, str) else value


def ends(bits, *more):
    """Both ends of an integer type with their neighbours, and values around 0."""
    half = 1 << (bits - 1)
    return [-half, -half + 1, -2, -1, 0, 1, 2, half - 2, half - 1, *more]


KINDS = [
    Kind("boolean", pa.bool_(), [False, True]),
    Kind("tinyint", pa.int8(), ends(8)),
    Kind("int", pa.int32(), ends(32, *range(5, 20))),
    Kind("bigint", pa.int64(), ends(64, 1 << 53, (1 << 53) + 1, (1 << 53) + 2, *range(5, 20))),
    Kind("float", pa.float32(), [v for v in FLOATS if v != 5e-324] + [2.0**-149]),
    Kind("double", pa.float64(), FLOATS),
    Kind("decimal(9,2)", pa.decimal128(9, 2), [0, 1, -1, 999999999, -999999999, 150, 151]),
    Kind(
        "decimal(38,3)",
        pa.decimal128(38, 3),
        [
            0,
            1,
            -1,
            10**38 - 1,
            10**38 - 2,
            1 - 10**38,
            1 << 57,
            (1 << 57) + 1,
            (1 << 90) + 1,
            1 << 90,
            -(1 << 90),
            -(1 << 90) - 1,
        ],
    ),
    Kind("date", pa.date32(), ends(32, 18000, 18001)),
    Kind("timestamp", pa.timestamp("us", "UTC"), ends(64, 10**15, 10**15 + 1)),
    Kind("string", pa.string(), TEXTS),
    Kind("binary", pa.binary(), [b"", b"\0", b"\xff" * 9, b"\xff" * 8, b"m", b"m\0", b"m\xff\xff"]),
]


def ordered(value):
    """A value in Spark's order: NaN above all, bytes unsigned, -0.0 equal to 0.0."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return image(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Table:
    """Rows (location, {column: value}) and the types of the columns."""

    kinds: dict
    rows: list
    n_locations: int


class Column:
    """A column's index over the whole table, made as a build makes it."""

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
        self._run = assemble(map(decode, payloads), table.n_locations)
        self._nulls = np.bincount(places[~encoded.valid], minlength=table.n_locations)
        self._nans = np.bincount(places[encoded.nan], minlength=table.n_locations)

    def keep(self, wanted):
        """Locations with a key, a NULL or a NaN that is asked for."""
        found = self._run.locations_in(wanted.intervals)
        found |= wanted.null & (self._nulls > 0)
        return found | (wanted.nan & (self._nans > 0))


@st.composite
def tables(draw):
    """Up to 40 rows of two columns in up to 6 locations, NULL and NaN among them."""
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
    """Leaves over both indexed columns and one (z) without an index."""

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
    """Trees of AND and OR over leaves."""
    return st.recursive(
        leaves(table),
        lambda inner: st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, max_size=4)),
        max_leaves=12,
    )


def wire(tree, table):
    """A tree as it travels."""
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
    """TRUE, FALSE or NULL (None) for a row; whatever cannot be known counts as TRUE."""
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
    """A leaf for one value."""
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


def encoders(kind, table, name):
    """Encoders a run of this column may carry: prefixes, split points and windows of its values."""
    if kind.name.startswith("decimal(38"):
        low = st.sampled_from(kind.values).map(lambda value: value - (value > 0))
        windows = st.builds(Window, low, st.sampled_from([0, 20, 63, 64]))
        return st.builds(Encoder, st.just(kind.name), window=st.one_of(st.none(), windows))
    if kind.name not in ("string", "binary"):
        return st.just(Encoder.for_type(kind.name))
    present = [image(row[name]) for _, row in table.rows if row[name] is not None]
    bound = st.sampled_from([image(value) for value in kind.values])
    kinds = [st.builds(Encoder.for_type, st.just(kind.name), bound, bound)]
    kinds.append(generated_encoders.encoders(bound, kind.name))
    if present:
        lowest, highest = min(present), max(present)
        kinds.append(st.just(Encoder.for_type(kind.name, lowest, highest)))
    return st.one_of(kinds)


OPTIONS = st.fixed_dictionaries(
    {
        "error": st.sampled_from([1, 100]),
        "max_keys": st.sampled_from([2, 1000]),
        "hole": st.sampled_from([3, (1 << 64) - 1]),
    }
)


@given(st.data())
@settings(max_examples=500)
def test_no_location_with_a_wanted_row_is_dropped(data):
    """Whatever the types, values, tree and segments: each location with a TRUE row stays."""
    table = data.draw(tables())
    indexes = {
        (name,): Column(
            data.draw(encoders(kind, table, name)), kind, table, name, data.draw(OPTIONS)
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
    """An index that answers for each location by the requirement alone, without blocks."""

    null_proof = True

    def __init__(self, table, name):
        self.encoder = Encoder("bigint")
        self._values = [
            [row[name] for at, row in table.rows if at == number]
            for number in range(table.n_locations)
        ]

    def keep(self, wanted):
        """Locations with a value in the intervals."""
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


@given(st.data())
@settings(max_examples=200)
def test_one_column_is_decided_exactly(data):
    """Over one exact column a location stays only if a row of it is wanted: nothing is wasted."""
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
    """Whether any of the words is an op or a column of the tree."""
    op, *rest = tree
    if op in ("and", "or"):
        return any(mentions(arg, words) for arg in rest[0])
    return op in words or bool(rest and rest[0] in words)
