"""Predicate tree: a scan's filter as a tree of records, and the parser that reads it from JSON.

The tree has no NOT. The indexes find the locations that *might* match a condition; some of these
locations might also match the negated condition. Therefore the shim pushes NOT down to the leaves
(negation normal form). A part that the shim cannot translate is `Unknown`.

Example: the filter ``day >= 3 OR day IS NULL``, as JSON and as records:

    {"op": "or", "args": [{"op": ">=", "col": ["day"], "value": 3},
                          {"op": "is null", "col": ["day"]}]}
    Or((Comparison(">=", ("day",), 3), NullTest(("day",))))

``exists`` means that one element of an array satisfies all conditions in `args`.

A column is given by its path, in exact case. Constants have this wire form: booleans and integers
are JSON values. Dates (in days), timestamps (in microseconds) and floats (as IEEE bits) are
integers. Decimals are strings of the digits of the unscaled value. Strings and binary are base64
strings. ``!=`` and ``not in`` have ``"null": true`` if a row with NULL satisfies the condition.

``signature`` means that a text contains all long grams with the hashes in `values` (32 bits).

The operator ``in`` can have ``packed`` instead of `values`: many ascending int64 keys
(little-endian) in base64. A packed key is an integer, a date or a timestamp in wire form. With
``"hashed": true``, each packed key is the XXH64 hash of a string or binary value
(`sieve/encoding/hashing.py`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from sieve.errors import InvalidInputError
from sieve.index_key import expression_of

MAX_DEPTH: Final = 200
MAX_NODES: Final = 10_000
MAX_VALUES: Final = 200_000
MAX_PACKED_KEYS: Final = 1_000_000
"""The maximum number of packed keys that the shim sends (`mostPacked` in
`plan/RunTimeFilters.scala`)."""
KEY_BYTES: Final = 8
MAX_NAME_PARTS: Final = 100

Column: TypeAlias = tuple[str, ...]
Scalar: TypeAlias = bool | int | str

COMPARISONS: Final = frozenset(("=", "!=", "<", "<=", ">", ">="))


@dataclass(frozen=True, slots=True)
class Constant:
    """A condition that is TRUE for every row, or FALSE for every row."""

    value: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a predicate that Sieve does not understand; any row may satisfy this part.

    `why` says why Sieve does not understand the part; `names` are the part's columns.
    """

    why: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    """The conjunction of the predicates `args`."""

    args: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The disjunction of the predicates `args`."""

    args: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """TRUE if a row has at least one indexed value that satisfies `arg`.

    A leaf outside of any `Exists` is about a column with one value per row. Therefore only an index
    with one value per row can evaluate a leaf outside of any `Exists`.
    """

    arg: Predicate


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op value`, where `op` is one of ``= != < <= > >=``.

    `null` says whether the comparison is also TRUE for a row with NULL.
    """

    op: str
    column: Column
    value: Scalar
    null: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    """`column [NOT] IN values`; `null` says whether the condition is also TRUE for NULL."""

    column: Column
    values: tuple[Scalar, ...]
    negated: bool = False
    null: bool = False


@dataclass(frozen=True, slots=True)
class PackedKeys:
    """`column IN keys`; `keys` consists of ascending int64 values or hashes (little-endian).

    If `hashed` is set, the condition is TRUE for each value whose XXH64 hash is in `keys`.
    """

    column: Column
    keys: bytes
    hashed: bool


@dataclass(frozen=True, slots=True)
class NullTest:
    """`column IS [NOT] NULL`."""

    column: Column
    negated: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`column LIKE 'value%'`; `value` is in base64."""

    column: Column
    value: str


@dataclass(frozen=True, slots=True)
class Signature:
    """The text `column` contains a long gram with each of `hashes`, which are 32-bit numbers."""

    column: Column
    hashes: tuple[int, ...]


Leaf: TypeAlias = Comparison | Membership | PackedKeys | NullTest | StartsWith | Signature
Predicate: TypeAlias = Constant | Unknown | And | Or | Exists | Leaf


def not_understood(predicate: Predicate) -> tuple[Unknown, ...]:
    """Returns all `Unknown` parts of a predicate."""
    if isinstance(predicate, And | Or):
        return tuple(part for arg in predicate.args for part in not_understood(arg))
    if isinstance(predicate, Exists):
        return not_understood(predicate.arg)
    return (predicate,) if isinstance(predicate, Unknown) else ()


def columns(predicate: Predicate) -> frozenset[Column]:
    """Returns the columns that the leaves of a predicate name."""
    if isinstance(predicate, And | Or):
        return frozenset().union(*map(columns, predicate.args))
    if isinstance(predicate, Exists):
        return columns(predicate.arg)
    if isinstance(predicate, Constant | Unknown):
        return frozenset()
    return frozenset((predicate.column,))


def parse(tree: object) -> Predicate:
    """Parses a predicate tree from the result of `json.loads`.

    If a part exceeds a limit (depth, nodes or values), it becomes `Unknown`. The query then reads
    more files, but loses no row.

    Raises:
        InvalidInputError: the tree does not have the form that the module's docstring describes.
    """
    return _Reader().read(tree, 1)


_JOINED: Final[Mapping[str, Callable[[tuple[Predicate, ...]], Predicate]]] = {
    "and": And,
    "or": Or,
    "exists": lambda args: Exists(And(args)),
}


class _Reader:
    """Parses one tree; counts nodes and values to enforce `MAX_NODES` and `MAX_VALUES`."""

    def __init__(self) -> None:
        self._nodes = 0
        self._values = 0

    def read(self, node: object, depth: int) -> Predicate:
        if depth > MAX_DEPTH:
            return Unknown("the predicate is nested too deeply", _names_in(node))
        self._nodes += 1
        if self._nodes > MAX_NODES:
            return Unknown("the predicate has too many parts", _names_in(node))
        if not isinstance(node, dict) or not isinstance(node.get("op"), str):
            raise _malformed("a node is not an object with an op")
        op = node["op"]
        if op in _JOINED:
            args = node.get("args")
            if not isinstance(args, list):
                raise _malformed(f"the args of {op} are not a list")
            read = tuple(self.read(arg, depth + 1) for arg in args)
            return _JOINED[op](read)
        if op in _PLAIN:
            return _PLAIN[op](node)
        if op in COMPARISONS:
            return Comparison(op, _column(node), _constant(node.get("value")), _null(node))
        if op in ("in", "not in"):
            return self._membership(node, op == "not in")
        raise _malformed(f"there is no op {op[:40]!r}")

    def _membership(self, node: Mapping[str, object], negated: bool) -> Predicate:
        if "packed" in node and not negated:
            return _packed_keys(node)
        values = node.get("values")
        if not isinstance(values, list):
            raise _malformed("the values of in are not a list")
        self._values += len(values)
        if self._values > MAX_VALUES:
            return Unknown("the predicate has too many values", _names_in(node))
        constants = tuple(_constant(value) for value in values)
        return Membership(_column(node), constants, negated, _null(node))


def _names_in(node: object) -> tuple[str, ...]:
    """Returns the names of all columns that an unparsed part contains."""
    names: dict[str, None] = {}
    left = [node]
    while left:
        part = left.pop()
        if not isinstance(part, dict):
            continue
        column, others, args = part.get("col"), part.get("names"), part.get("args")
        if isinstance(column, list) and column and all(isinstance(one, str) for one in column):
            # An expression's key begins with an empty name. Queries name the expression by its SQL.
            names[expression_of(column) or column[0]] = None
        if isinstance(others, list):
            names |= dict.fromkeys(name for name in others if isinstance(name, str))
        if isinstance(args, list):
            left.extend(args)
    return tuple(names)


def _unknown(node: Mapping[str, object]) -> Predicate:
    why = node.get("why", "not understood")
    if not isinstance(why, str):
        raise _malformed("the why of unknown is not text")
    names = node.get("names", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _malformed("the names of unknown are not texts")
    return Unknown(why[:1000], tuple(names))


def _packed_keys(node: Mapping[str, object]) -> Predicate:
    packed, hashed = node["packed"], node.get("hashed", False)
    if not isinstance(packed, str) or not isinstance(hashed, bool):
        raise _malformed("packed keys are not base64 text, or their flag is not a truth value")
    try:
        keys = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("packed keys are not base64 text") from None
    if len(keys) % KEY_BYTES:
        raise _malformed("the last packed key is cut off")
    if len(keys) > MAX_PACKED_KEYS * KEY_BYTES:
        return Unknown("the predicate has too many values", _names_in(node))
    return PackedKeys(_column(node), keys, hashed)


def _signature(node: Mapping[str, object]) -> Predicate:
    values = node.get("values")
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_NODES:
        raise _malformed("the values of signature are no list of hashes")
    hashes = tuple(value for value in values if type(value) is int and 0 <= value < 1 << 32)
    if len(hashes) < len(values):
        raise _malformed("a value of signature is no hash of 32 bits")
    return Signature(_column(node), hashes)


def _starts_with(node: Mapping[str, object]) -> Predicate:
    value = node.get("value")
    if not isinstance(value, str):
        raise _malformed("the value of starts with is not text")
    return StartsWith(_column(node), value)


_PLAIN: Final[Mapping[str, Callable[[Mapping[str, object]], Predicate]]] = {
    "true": lambda _: Constant(True),
    "false": lambda _: Constant(False),
    "unknown": _unknown,
    "signature": _signature,
    "starts with": _starts_with,
    "is null": lambda node: NullTest(_column(node)),
    "is not null": lambda node: NullTest(_column(node), negated=True),
}


def _column(node: Mapping[str, object]) -> Column:
    path = node.get("col")
    if not isinstance(path, list) or not 1 <= len(path) <= MAX_NAME_PARTS:
        raise _malformed("a column is not a list of names")
    if not all(isinstance(name, str) for name in path):
        raise _malformed("a column's name is not text")
    return tuple(path)


def _constant(value: object) -> Scalar:
    if not isinstance(value, bool | int | str):
        raise _malformed("a constant is neither a truth value, nor an integer, nor text")
    return value


def _null(node: Mapping[str, object]) -> bool:
    null = node.get("null", False)
    if not isinstance(null, bool):
        raise _malformed("the null flag is not a truth value")
    return null


def _malformed(problem: str) -> InvalidInputError:
    return InvalidInputError(
        "SIEVE_BAD_PREDICATE",
        f"the predicate cannot be read: {problem}; the query must be read without the index",
    )
