"""Packed keys: many keys of a join in one leaf of the predicate tree."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from sieve.arrays import interval_set
from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.encoding.hashing import hash_bytes, hash_codes
from sieve.errors import InvalidInputError
from sieve.predicate import parse_predicate
from sieve.predicate.evaluate import evaluate
from sieve.predicate.key_ranges import KeyRanges, key_ranges
from sieve.predicate.parse_predicate import Membership, PackedKeys, Unknown, columns, parse

K = ("k",)


def packed(*keys: int) -> str:
    """The wire form of these keys, in this order."""
    return base64.b64encode(np.array(keys, "<i8").tobytes()).decode()


def leaf(*keys: int, hashed: bool = False) -> PackedKeys:
    """The parsed leaf with these ascending keys."""
    node = {"op": "in", "col": ["k"], "packed": packed(*keys), "hashed": hashed}
    parsed = parse(node)
    assert isinstance(parsed, PackedKeys)
    assert columns(parsed) == {K}
    return parsed


@pytest.mark.parametrize("type_", ["tinyint", "smallint", "int", "bigint", "date", "timestamp"])
def test_numbers_are_looked_up_like_a_list(type_: str) -> None:
    """Packed numbers have the intervals and hashes of a list with the same numbers."""
    keys = (-7, 3, 4, 9, 127)
    found = key_ranges(leaf(*keys), Encoder(type_))
    listed = key_ranges(Membership(K, keys), Encoder(type_))
    assert found.intervals.tolist() == listed.intervals.tolist()
    assert found.hashes is not None
    assert listed.hashes is not None
    assert sorted(found.hashes) == listed.hashes.tolist() == sorted(hash_codes(np.array(keys)))
    assert (found.null, found.nan) == (False, False)


def test_ends_of_the_type() -> None:
    """The least and the greatest number can be keys."""
    assert key_ranges(leaf(LEAST, GREATEST), Encoder("bigint")).intervals.tolist() == [
        [LEAST, LEAST],
        [GREATEST, GREATEST],
    ]


@pytest.mark.parametrize("type_", ["string", "binary"])
def test_hashes_of_texts_can_have_any_code(type_: str) -> None:
    """Packed hashes of texts allow all codes, because a hash says nothing about the code."""
    hashes = hash_bytes([b"a", b"bc"])
    found = key_ranges(leaf(*sorted(hashes.view(np.int64).tolist()), hashed=True), Encoder(type_))
    assert found.intervals.tolist() == [[LEAST, GREATEST]]
    assert found.hashes is not None
    assert sorted(found.hashes) == sorted(hashes)


@pytest.mark.parametrize("keys", [(2, 1), (1, 1), (1, 3, 2)])
def test_unsorted_or_repeated_keys_are_refused(keys: tuple[int, ...]) -> None:
    """Packed keys must ascend, because a look-up does not sort them."""
    with pytest.raises(InvalidInputError, match="an ascending key was expected"):
        key_ranges(leaf(*keys), Encoder("bigint"))


@pytest.mark.parametrize(
    ("type_", "hashed"),
    [
        ("bigint", True),
        ("string", False),
        ("double", False),
        ("boolean", False),
        ("decimal(9,2)", False),
        ("decimal(30,2)", False),
    ],
)
def test_keys_of_another_kind_are_refused(type_: str, hashed: bool) -> None:
    """For numbers, the parser refuses hashes; for other types, it refuses numbers."""
    with pytest.raises(InvalidInputError, match="was expected"):
        key_ranges(leaf(1, 2, hashed=hashed), Encoder(type_))


@pytest.mark.parametrize(
    "wrong", [{"packed": "!!"}, {"packed": "QUJD"}, {"packed": 3}, {"packed": "", "hashed": 1}]
)
def test_malformed_keys_are_refused(wrong: dict[str, object]) -> None:
    """The parser refuses keys that are no base64 of whole numbers."""
    with pytest.raises(InvalidInputError, match="packed key"):
        parse({"op": "in", "col": ["k"], **wrong})


def test_too_many_keys_are_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf with too many packed keys becomes unknown, so any row can match."""
    monkeypatch.setattr(parse_predicate, "MAX_PACKED_KEYS", 2)
    assert isinstance(parse({"op": "in", "col": ["k"], "packed": packed(1, 2)}), PackedKeys)
    many = parse({"op": "in", "col": ["k"], "packed": packed(1, 2, 3)})
    assert many == Unknown("the predicate has too many values", ("k",))


def test_no_key_matches_no_row() -> None:
    """If a leaf has no packed keys, no location can match."""
    assert key_ranges(leaf(), Encoder("bigint")).intervals.tolist() == []


class _Everywhere:
    """An index of numbers that keeps every location for each value."""

    encoder = Encoder("bigint")
    null_proof = True

    def keep(self, _wanted: KeyRanges) -> Flags:
        return np.ones(3, np.bool_)


def test_each_branch_of_an_or_narrows_many_keys_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In `k IN (many) AND (k > 0 AND x = 1 OR k < 9 AND x = 2)`, each branch intersects k once.

    An intersection with a million keys takes a large part of a second.
    """
    calls = []
    intersect = interval_set.intersect
    monkeypatch.setattr(interval_set, "intersect", lambda *of: calls.append(of) or intersect(*of))

    def branch(op: str, key: int, x: int) -> dict[str, object]:
        ofs = [{"op": op, "col": ["k"], "value": key}, {"op": "=", "col": ["x"], "value": x}]
        return {"op": "and", "args": ofs}

    many = {"op": "in", "col": ["k"], "packed": packed(*range(0, 100, 7)), "hashed": False}
    either = {"op": "or", "args": [branch(">", 0, 1), branch("<", 9, 2)]}
    predicate = parse({"op": "and", "args": [many, either]})
    found = evaluate(predicate, {K: _Everywhere(), ("x",): _Everywhere()}, 3)
    assert found is not None
    assert found.keep.all()
    assert len(calls) == 2
