"""Tests split points: the codes of values, and the points' stored form and validation."""

from __future__ import annotations

import base64
import itertools

import pyarrow as pa
import pytest

from sieve.encoding.encoder import GREATEST, LEAST, Encoder, Splits
from sieve.encoding.split_points import LONGEST_POINT, MOST_BYTES, MOST_POINTS, Point
from sieve.errors import CorruptError, InvalidInputError

HOSTS = Splits((Point(b"a.com/", 6), Point(b"b.org/img/", 10), Point(b"c", 0)), b"/abcx")
ENCODER = Encoder("binary", b"www.", HOSTS)


def codes(encoder: Encoder, values: list[bytes]) -> list[int]:
    """Returns the codes of binary values."""
    return encoder.encode(pa.array(values, pa.binary())).codes.tolist()


def wire(value: bytes) -> str:
    """A binary constant in its wire form."""
    return base64.b64encode(value).decode()


def test_code_is_the_number_of_a_point_and_the_digits_after_it():
    """A code combines a split point's number with digits from the bytes after the point.

    Three split points divide the 2^64 codes into four parts.
    """
    assert (HOSTS.radix, HOSTS.digits) == (6, 24)
    size = 6**24
    first = LEAST + 1
    values = [b"www.a.com/", b"www.a.com/x", b"www.b.org/img/a", b"www.c"]
    digits = [0, 5 * 6**23, 2 * 6**23, 4 * 6**23]
    points = [0, 0, 1, 2]
    expected = [first + p * size + d for p, d in zip(points, digits, strict=True)]
    assert codes(ENCODER, values) == expected


def test_value_above_the_shared_bytes_has_the_last_code():
    """A value above all values with its split point's shared bytes has the last code of the point.

    A value below the first point has the least code of all.
    """
    size = 6**24
    last = [LEAST + (number + 1) * size for number in range(3)]
    values = [b"www.a.come", b"www.az", b"www.b.org/img0"]
    assert codes(ENCODER, values) == [last[0], last[0], last[1]]
    assert [ENCODER.literal(wire(value)).code for value in values] == [last[0], last[0], last[1]]
    assert codes(ENCODER, [b"www.", b"www.a", b"ww", b"www/"]) == [LEAST, LEAST, LEAST, GREATEST]


def test_values_differing_after_an_odd_byte_share_a_code():
    """Two values have the same code if they differ only after a byte outside of the alphabet."""
    found = codes(ENCODER, [b"www.a.com/" + end for end in (b"ax", b"axxx", b"a~", b"a~/", b"b")])
    assert found == sorted(found)
    assert found[2] == found[3]
    assert len(set(found)) == 4


def test_code_does_not_depend_on_bytes_behind_the_value():
    """A value's code does not depend on the bytes that follow the value in the buffer."""
    values = [b"www.a.com/" + b"x" * n for n in range(30)]
    alone = [codes(ENCODER, [value])[0] for value in values]
    assert codes(ENCODER, values) == alone == [ENCODER.literal(wire(v)).code for v in values]


def test_points_that_share_many_bytes_have_right_codes():
    """Codes are right even if split points share bytes, extend each other, or have zero bytes."""
    starts = [b"", b"\0\0\0\0\0\0\0\0\1", b"\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\2", b"abcdefgh"]
    starts += [b"abcdefgh\0\0\0\0\0\0\0\0\1", b"abcdefgha", b"abcdefghb", b"abcdefghbcdefghij"]
    encoder = Encoder("binary", splits=Splits(tuple(Point(s, 0) for s in sorted(starts))))
    values = sorted(
        {s[:cut] + more for s in starts for cut in range(20) for more in (b"", b"\0", b"z")}
    )
    assert codes(encoder, values) == [encoder.literal(wire(value)).code for value in values]


@pytest.mark.parametrize(
    ("start", "among"),
    [
        (b"www.a.com/x", [b"www.a.com/x", b"www.a.com/x\xff\xff", b"www.a.com/xa"]),
        (b"www.b.org/", [b"www.b.org/", b"www.b.org/img/cc", b"www.b.org/x"]),
        (b"www.b", [b"www.b", b"www.bz", b"www.b.org/img/"]),
        (b"www", [b"www", b"www.", b"www0"]),
        (b"www.0", [b"www.0"]),
        (b"x", [b"x", b"xyz"]),
    ],
)
def test_a_prefix_spans_the_values_that_begin_with_it(start, among):
    """All values that begin with a prefix have codes in the prefix's span.

    A span can include all codes of several split points.
    """
    low, high = ENCODER.starting_with(wire(start))
    assert all(low <= code <= high for code in codes(ENCODER, among))


def test_a_span_is_no_wider_than_its_points():
    """The span of a prefix excludes codes of other values that have the same split point."""
    low, high = ENCODER.starting_with(wire(b"www.b.org/img/a"))
    assert codes(ENCODER, [b"www.b.org/img/0"])[0] < low
    assert high < codes(ENCODER, [b"www.b.org/img/b"])[0]


def test_codes_are_shown_as_their_least_value():
    """DESCRIBE shows a code as the split point's bytes, then the shared bytes, then the digits."""
    assert [ENCODER.decode(code) for code in codes(ENCODER, [b"www.b.org/img/cab"])] == [
        b"www.b.org/img/cab".hex().upper()
    ]
    assert ENCODER.decode(LEAST) == ""
    assert Encoder("string", splits=HOSTS).decode(GREATEST) == "c"


def test_stored_point_omits_bytes_of_the_previous_point():
    """A stored split point omits the leading bytes in common with the previous split point."""
    assert HOSTS.to_bytes() == (
        b"\x00\x06a.com/\x06" b"\x00\x0ab.org/img/\x0a" b"\x00\x01c\x00"
    )  # fmt: skip
    near = Splits((Point(b"abc", 1), Point(b"abd", 3)))
    assert near.to_bytes() == b"\x00\x03abc\x01\x02\x01d\x03"
    for splits in (HOSTS, near, Splits((Point(b"", 0),))):
        encoder = Encoder("varchar(9)", b"p", splits)
        assert Encoder.from_json(encoder.to_json()) == encoder


@pytest.mark.parametrize(
    "points",
    [
        [],
        [Point(b"b", 0), Point(b"a", 0)],
        [Point(b"a", 0), Point(b"a", 1)],
        [Point(b"a\0", 0)],
        [Point(b"a", 2)],
        [Point(b"a", -1)],
        [Point(b"a" * (LONGEST_POINT + 1), 0)],
        [Point(b"%04d" % n, 0) for n in range(MOST_POINTS + 1)],
        [Point(b"%03d" % n + b"x" * 99, 0) for n in range(MOST_BYTES // 100)],
    ],
)
def test_invalid_split_points_are_refused(points):
    """Split points are refused if they are unordered, too long, too many, or end in a zero byte."""
    with pytest.raises(InvalidInputError):
        Splits(tuple(points))


@pytest.mark.parametrize("alphabet", [b"ba", b"aa", b"\0a", bytes(range(1, 130))])
def test_invalid_alphabets_are_refused(alphabet):
    """The digits of a valid alphabet ascend, exclude zero, and fit into seven bits."""
    with pytest.raises(InvalidInputError):
        Splits((Point(b"", 0),), alphabet)


GOOD = {"type": "string", "splits": wire(b"\x00\x03abc\x01\x02\x01d\x03"), "alphabet": ""}


@pytest.mark.parametrize(
    "damage",
    [
        {"splits": ""},
        {"splits": 5},
        {"splits": None},
        {"splits": "!"},
        {"splits": wire(b"\x00\x03abc\x01\x02\x01d")},
        {"splits": wire(b"\x00\x03abc\x01\x04\x01d\x03")},
        {"splits": wire(b"\x00\x03abc\x01\x01\x02bd\x03")},
        {"splits": wire(b"\x00\x03abc\x01\x02\x01c\x03")},
        {"splits": wire(b"\x00\x00\x00" * 9)},
        {"alphabet": wire(b"ba")},
        {"alphabet": None},
        {"alphabets": ""},
        {"prefix": ""},
        {"low": "0", "shift": 0},
        {"type": "bigint"},
        {"type": "decimal(38,0)"},
    ],
)
def test_damaged_splits_are_corrupt(damage):
    """Split points are reported as damaged if their JSON is truncated, unordered, or mistyped."""
    assert Encoder.from_json(GOOD).splits == Splits((Point(b"abc", 1), Point(b"abd", 3)))
    with pytest.raises(CorruptError):
        Encoder.from_json(GOOD | damage)


def test_splits_without_their_alphabet_are_corrupt():
    """Split points without their alphabet are corrupt, because codes depend on the alphabet."""
    with pytest.raises(CorruptError):
        Encoder.from_json({"type": "string", "splits": GOOD["splits"]})


WINDOW = {"type": "decimal(38,2)", "low": "-5", "shift": 3}


@pytest.mark.parametrize(
    "damage",
    [
        {"low": -5},
        {"low": "x"},
        {"low": " -5"},
        {"low": "-05"},
        {"low": "1" + "0" * 38},
        {"low": "9" * 5000},
        {"shift": 65},
        {"shift": -1},
        {"shift": True},
        {"shift": "3"},
        {"shift": None},
        {"type": "decimal(18,2)"},
        {"type": "string"},
    ],
)
def test_damaged_windows_are_corrupt(damage):
    """A stored window is damaged if its encoder is for other types than wide decimals.

    A window must start at a decimal, and its steps must be at most 2^64.
    """
    assert Encoder.from_json(WINDOW).to_json() == WINDOW
    with pytest.raises(CorruptError):
        Encoder.from_json(WINDOW | damage)


def ascending(count: int) -> list[Point]:
    """Ascending split points, each at most one byte longer than an earlier point."""
    lasts: list[list[int]] = [[], *([last] for last in range(1, 256))]
    starts = (bytes([first, *last]) for first in range(1, 256) for last in lasts)
    return [Point(start, len(start)) for start in itertools.islice(starts, count)]


@pytest.mark.parametrize(
    ("points", "alphabet"),
    [
        (ascending(4096), b""),
        ([Point(bytes([k]) * 125, 0) for k in range(1, 129)], b""),
        ([Point(b"a" * 128, 128)], b""),
        ([Point(b"", 0)], bytes(range(1, 128))),
    ],
    ids=["points", "bytes", "length", "alphabet"],
)
def test_split_points_may_reach_their_limits(points: list[Point], alphabet: bytes) -> None:
    """Split points exactly at a limit are valid, because other releases may have written them."""
    made = Splits(tuple(points), alphabet)
    assert Splits.from_bytes(made.to_bytes(), alphabet) == made


@pytest.mark.parametrize(
    ("points", "alphabet", "problem"),
    [
        ([], b"", "there are 0 points, not 1 to 4096"),
        (ascending(4097), b"", "there are 4097 points"),
        (
            [Point(bytes([k]) * 125, 0) for k in range(1, 128)] + [Point(b"\x80" * 126, 0)],
            b"",
            "take more than 16384 bytes",
        ),
        ([Point(b"a" * 129, 0)], b"", "too long"),
        ([Point(b"a\0", 0)], b"", "ends in a zero byte"),
        ([Point(b"a", 2)], b"", "shares more bytes than it has"),
        ([Point(b"a", -1)], b"", "shares more bytes than it has"),
        ([Point(b"a", 0), Point(b"a", 0)], b"", "do not ascend"),
        ([Point(b"", 0)], bytes(range(1, 129)), "alphabet"),
        ([Point(b"", 0)], b"\0a", "alphabet"),
        ([Point(b"", 0)], b"ba", "alphabet"),
    ],
)
def test_error_names_the_rule_that_split_points_break(
    points: list[Point], alphabet: bytes, problem: str
) -> None:
    """The error for invalid split points names the broken rule."""
    with pytest.raises(InvalidInputError, match=problem):
        Splits(tuple(points), alphabet)
