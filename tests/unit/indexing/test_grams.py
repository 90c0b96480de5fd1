"""Tests that each location gets the distinct grams of its texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sieve.indexing import grams
from sieve.indexing.grams import DistinctGrams, distinct_grams

TEXTS = [b"abcdef", None, b"", b"abc", b"cdefg", b"\xff\xfe\xfd\xfc\xfb", "\u20ac\u00e9".encode()]


def number(gram):
    """The key of a gram, that is, its bytes as a signed number."""
    return int.from_bytes(gram, "big", signed=True)


def expected(texts):
    """Returns the distinct grams of some texts."""
    some = (text or b"" for text in texts)
    return sorted({number(text[k : k + 4]) for text in some for k in range(len(text) - 3)})


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_gram_is_in_one_text(kind):
    """Even in a slice of an array, no gram extends from one text into the next."""
    array = pa.array(TEXTS, kind)
    for start in range(len(TEXTS) + 1):
        for end in range(start, len(TEXTS) + 1):
            found = DistinctGrams()
            found.add(array.slice(start, end - start))
            assert found.sorted().tolist() == expected(TEXTS[start:end])


@pytest.mark.parametrize("bits", [1, 4, 18])
def test_grams_that_share_a_slot_are_all_found(monkeypatch, bits):
    """Each gram is found once, also if the hash table is small and texts contain zero bytes."""
    monkeypatch.setattr(grams, "_SLOT_BITS", bits)
    random = np.random.default_rng(5)
    texts = [bytes(random.integers(0, 6, 40, np.uint8)) for _ in range(200)]
    found = DistinctGrams()
    for start in range(0, 200, 50):
        found.add(pa.array(texts[start : start + 50], pa.binary()))
    assert found.sorted().tolist() == expected(texts)


@pytest.mark.parametrize("held", [0, 3, 1 << 22])
def test_the_rows_of_each_location(monkeypatch, held):
    """Each location has each of its grams once.

    If a location has no grams or a record is damaged, the result has a NULL.
    """
    monkeypatch.setattr(grams, "_HELD", held)
    rows = [(0, b"abcde"), (0, b"bcdef"), (1, b"abc"), (1, None), (-3, None), (2, b"abcd")]
    names = ["v", "location"]

    def batch(some):
        places, texts = zip(*some, strict=True)
        return pa.record_batch([pa.array(texts, pa.binary()), pa.array(places, pa.int32())], names)

    step = distinct_grams("location")
    found = pa.Table.from_batches(step(iter([batch(rows[:1]), batch(rows[1:])])))
    pairs = sorted(zip(*found.to_pydict().values(), strict=True), key=str)
    wanted = [(number(gram), 0) for gram in (b"abcd", b"bcde", b"cdef")]
    wanted += [(None, 1), (None, -3), (number(b"abcd"), 2)]
    assert pairs == sorted(wanted, key=str)
