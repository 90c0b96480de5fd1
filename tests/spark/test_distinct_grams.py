"""The shim finds the same grams in texts as a simple implementation in Python."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame
from spark_session import Lab

Rows = Sequence[tuple[bytes | None, int]]


def number(gram: bytes) -> int:
    """The key of a gram, that is, the bytes of the gram as a signed number."""
    return int.from_bytes(gram, "big", signed=True)


def expected(rows: Rows) -> list[tuple[int | None, int]]:
    """Each location's distinct grams in ascending order; a location without grams has NULL."""
    found: list[tuple[int | None, int]] = [(None, place) for _, place in rows if place < 0]
    for place in {place for _, place in rows if place >= 0}:
        texts = [text or b"" for text, other in rows if other == place]
        grams = {number(text[k : k + 4]) for text in texts for k in range(len(text) - 3)}
        found += [(gram, place) for gram in sorted(grams) or [None]]
    return found


def found(lab: Lab, rows: Rows) -> list[tuple[int | None, int]]:
    """The rows that the shim returns if all input rows are in one partition."""
    frame = lab.spark.createDataFrame([*rows], "`a``b` BINARY, location INT").coalesce(1)
    shim = lab.spark._jvm.org.apache.spark.sql.sieve.statements.DistinctGrams
    grams = DataFrame(shim.of(frame._jdf, "`a``b`", "location", 0, True), lab.spark)
    assert grams.columns == ["a`b", "location", "__sieve_signature__"]
    return [(gram, place) for found, place, _ in grams.collect() for gram in found or [None]]


def test_the_rows_of_each_location(lab: Lab) -> None:
    """Each location has each gram of its texts once; no gram extends from one text into the next.

    A location without a gram has one NULL in the result. Each row with a negative location adds one
    NULL, too.
    """
    rows: Rows = [
        (b"abcdef", 0), (None, 0), (b"", 0), (b"abc", 0), (b"cdefg", 0),
        (b"\xff\xfe\xfd\xfc\xfb", 0), ("\u20ac\u00e9".encode(), 1), (b"abc", 2), (None, 2),
        (None, -3), (None, -3), (b"abcd", 4), (b"bcde", 4), (b"\0\0\0\0\0", 5), (b"\0\0\0\1\0", 6),
    ]  # fmt: skip
    result = found(lab, rows)
    assert sorted(result, key=repr) == sorted(expected(rows), key=repr)
    places = [place for _, place in result]
    assert places == sorted(places, key=[place for _, place in rows].index)


@pytest.mark.parametrize(("seed", "letters", "length"), [(1, 2, 12), (2, 6, 40), (3, 256, 3000)])
def test_drawn_texts(lab: Lab, seed: int, letters: int, length: int) -> None:
    """In random texts, the shim finds each gram once, even if many grams share a cache slot."""
    drawn = random.Random(seed)
    rows = [
        (bytes(drawn.randrange(letters) for _ in range(drawn.randrange(length))), place)
        for place in range(3)
        for _ in range(100)
    ]
    assert found(lab, rows) == expected(rows)


def bits_of_texts(texts: Sequence[bytes | None], bits: int) -> set[int]:
    """The bits of a signature with 2^bits bits, computed from its definition."""
    grams = {text[k : k + 8] for text in texts if text for k in range(len(text) - 7)}
    hashes = {int.from_bytes(gram, "big") * 0x9E3779B97F4A7C15 % (1 << 64) >> 32 for gram in grams}
    return {value >> (32 - bits) for value in hashes}


def signatures(lab: Lab, rows: Rows, bits: int, *, folds: bool) -> dict[int, tuple[int, set[int]]]:
    """For each location, the number of bits of the shim's signature, and the bits that are set."""
    frame = lab.spark.createDataFrame([*rows], "text BINARY, location INT").coalesce(1)
    shim = lab.spark._jvm.org.apache.spark.sql.sieve.statements.DistinctGrams
    made = DataFrame(shim.of(frame._jdf, "text", "location", bits, folds), lab.spark)
    return {
        place: (
            8 * len(image),
            {k for k in range(8 * len(image)) if image[k // 8] >> (k % 8) & 1},
        )
        for _, place, image in made.collect()
        if image is not None
    }


def test_signatures_of_locations(lab: Lab) -> None:
    """A signature has exactly the bits of its texts' sequences of 8 bytes, and folds if sparse."""
    drawn = random.Random(8)
    rows = [
        (drawn.randbytes(drawn.randrange(40)), place)
        for place, count in ((0, 3), (1, 40), (2, 400))
        for _ in range(count)
    ]
    rows += [(b"short", 3), (None, 3), (None, -2)]
    texts = {place: [text for text, other in rows if other == place] for place in range(4)}
    whole = signatures(lab, rows, 12, folds=False)
    assert whole == {place: (1 << 12, bits_of_texts(texts[place], 12)) for place in range(4)}
    folded = signatures(lab, rows, 12, folds=True)
    for place, (size, found) in folded.items():
        assert found == bits_of_texts(texts[place], size.bit_length() - 1)
        assert size == 512 or 4 * len(found) > size // 2
        assert size == 4096 or 4 * len(bits_of_texts(texts[place], size.bit_length())) <= 2 * size
    assert len({size for size, _ in folded.values()}) == 3
