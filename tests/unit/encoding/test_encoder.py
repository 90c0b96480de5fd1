"""Tests the codes of keys and literals: their order, exactness, and refused values."""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from sieve.encoding.decimal_codec import Window
from sieve.encoding.encoder import GREATEST, LEAST, MAX_PREFIX, Encoder
from sieve.encoding.split_points import Point, Splits
from sieve.errors import CorruptError, InvalidInputError, UnsupportedError


def codes(encoder: Encoder, array: pa.Array) -> list[int]:
    """Returns the codes of an array as integers."""
    return encoder.encode(array).codes.tolist()


def wire(value: bytes) -> str:
    """A string constant or binary constant in its wire form."""
    return base64.b64encode(value).decode()


@pytest.mark.parametrize(
    ("spark_type", "arrow_type"),
    [("tinyint", pa.int8()), ("smallint", pa.int16()), ("int", pa.int32()), ("bigint", pa.int64())],
)
def test_integers_are_their_own_codes(spark_type, arrow_type):
    """For each integer type, the least value, the greatest value and 0 are their own codes."""
    half = 1 << (arrow_type.bit_width - 1)
    values = [-half, -1, 0, 1, half - 1]
    encoder = Encoder(spark_type)
    assert codes(encoder, pa.array(values, arrow_type)) == values
    assert [encoder.literal(value).code for value in values] == values
    assert encoder.exact


@pytest.mark.parametrize(
    ("spark_type", "arrow_type", "bits"),
    [("float", pa.float32(), 32), ("double", pa.float64(), 64)],
)
def test_floats_are_in_total_order(spark_type, arrow_type, bits):
    """Codes of floats ascend from -inf through subnormals to inf; literals get the same codes."""
    numpy_type = np.float32 if bits == 32 else np.float64
    tiny = np.nextafter(numpy_type(0), numpy_type(1))
    values = np.array([-np.inf, -1e30, -1.5, -tiny, 0, tiny, 1.5, 1e30, np.inf], numpy_type)
    encoder = Encoder(spark_type)
    found = codes(encoder, pa.array(values, arrow_type))
    assert found == sorted(set(found))
    images = values.view(np.int32 if bits == 32 else np.int64).tolist()
    assert [encoder.literal(image).code for image in images] == found


@pytest.mark.parametrize(("spark_type", "arrow_type"), [("float", "f4"), ("double", "f8")])
def test_minus_zero_is_zero(spark_type, arrow_type):
    """-0.0 has the same code as 0.0, both in columns and in literals."""
    zeros = np.array([0.0, -0.0], arrow_type)
    encoder = Encoder(spark_type)
    assert codes(encoder, pa.array(zeros)) == [0, 0]
    image = zeros.view(arrow_type.replace("f", "i")).tolist()
    assert [encoder.literal(bits).code for bits in image] == [0, 0]


@pytest.mark.parametrize(
    ("spark_type", "images", "arrow_type"),
    [
        ("float", [0x7FC00000, 0xFFC00000, 0x7F800001], np.uint32),
        ("double", [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1], np.uint64),
    ],
)
def test_every_nan_is_valid_and_flagged(spark_type, images, arrow_type):
    """Quiet, negative and signalling NaNs are flagged as valid NaNs, in columns and literals."""
    bits = np.array(images, arrow_type)
    encoder = Encoder(spark_type)
    encoded = encoder.encode(pa.array(bits.view(f"f{bits.itemsize}")))
    assert encoded.nan.all()
    assert encoded.valid.all()
    signed = bits.view(f"i{bits.itemsize}").tolist()
    assert all(encoder.literal(image).nan for image in signed)


def test_null_is_neither_valid_nor_nan():
    """`encode` marks a NULL in a column of doubles as invalid, and not as NaN."""
    encoded = Encoder("double").encode(pa.array([None, float("nan"), 1.0]))
    assert encoded.valid.tolist() == [False, True, True]
    assert encoded.nan.tolist() == [False, True, False]


def test_dates_and_timestamps_count_from_1970():
    """The code of a date counts days since 1970; the code of a timestamp counts microseconds."""
    days = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]
    assert codes(Encoder("date"), pa.array(days)) == [-719162, -1, 2932896]
    micros = [LEAST, -1, 0, GREATEST]
    zoned = pa.array(micros).cast(pa.timestamp("us", "Europe/Berlin"))
    assert codes(Encoder("timestamp"), zoned) == micros
    assert codes(Encoder("timestamp_ntz"), pa.array(micros).cast(pa.timestamp("us"))) == micros


def test_booleans_are_zero_and_one():
    """False has a lower code than true, as in Spark."""
    assert codes(Encoder("boolean"), pa.array([True, False])) == [1, 0]
    assert Encoder("boolean").literal(True).code == 1


def test_short_decimals_are_their_unscaled_integers():
    """Each decimal of up to 18 digits has its own code, even in a slice of an array."""
    ends = [Decimal(-(10**18 - 1)).scaleb(-4), Decimal("-0.0001"), None, Decimal("1.5")]
    encoder = Encoder("decimal(18,4)")
    encoded = encoder.encode(pa.array([Decimal(0), *ends], pa.decimal128(18, 4)).slice(1))
    assert encoded.codes[encoded.valid].tolist() == [-(10**18 - 1), -1, 15000]
    assert encoder.exact
    assert encoder.literal("-1").code == -1


def test_long_decimals_near_zero_have_different_codes():
    """In a column decimal(38, s), different unscaled values below 2^57 have different codes.

    If an unscaled value exceeds 2^57, its code keeps the 57 most significant bits.
    """
    unscaled = [0, 1, 2**57 - 1, 2**57, 2**57 + 2, 2**64, 2**64 + 2**8, 10**38 - 2**80, 10**38 - 1]
    values = [sign * value for sign in (-1, 1) for value in unscaled[1:]] + [0]
    values.sort()
    encoder = Encoder("decimal(38,0)")
    found = codes(encoder, pa.array([Decimal(value) for value in values], pa.decimal128(38, 0)))
    assert found == sorted(set(found))
    assert found == [encoder.literal(str(value)).code for value in values]
    assert not encoder.exact


def test_strings_are_coded_by_eight_bytes_past_the_prefix():
    """The code of a string is the eight bytes after the prefix, as an unsigned number.

    If fewer than eight bytes follow the prefix, zeros are appended.
    """
    encoder = Encoder("string", b"user-")
    values = ["user-", "user-a", "user-é", "user-12345678tail"]
    expected = [
        int.from_bytes(v[5:13].ljust(8, b"\0"), "big") - (1 << 63)
        for v in (value.encode() for value in values)
    ]
    assert codes(encoder, pa.array(values)) == expected
    assert not encoder.exact


def test_value_before_the_prefix_has_the_least_code():
    """If a value sorts before the prefix, it has the least code.

    A value that sorts after all values with the prefix has the greatest code.
    """
    encoder = Encoder("binary", b"m\xff")
    below, above = [b"", b"m", b"m\xfe\xff", b"a"], [b"n", b"\xff"]
    assert codes(encoder, pa.array(below)) == [LEAST] * 4
    assert codes(encoder, pa.array(above)) == [GREATEST] * 2
    assert [encoder.literal(wire(value)).code for value in below + above] == (
        [LEAST] * 4 + [GREATEST] * 2
    )


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.string_view()])
def test_strings_in_any_arrow_form_slice_and_chunk_are_equal(arrow_type):
    """Arrow layouts, offsets, NULLs and borders of chunks do not change the codes of strings."""
    values = ["", None, "a", "ab\0", "abcdefgh", "abcdefghi", None, "", "ü"]
    array = pa.array(["x" * 20, *values], arrow_type).slice(1)
    chunked = pa.chunked_array([array.slice(0, 3), array.slice(3, 0), array.slice(3)])
    for prefix in (b"", b"ab"):
        encoder = Encoder("string", prefix)
        whole, parts = encoder.encode(array), encoder.encode(chunked)
        assert whole.valid.tolist() == [value is not None for value in values]
        expected = [encoder.literal(wire(v.encode())).code for v in values if v is not None]
        assert whole.codes[whole.valid].tolist() == expected
        assert parts.codes[parts.valid].tolist() == expected


@pytest.mark.parametrize(
    ("spark_type", "arrow_type"),
    [
        ("bigint", pa.int64()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("decimal(38,3)", pa.decimal128(38, 3)),
        ("decimal(9,3)", pa.decimal128(9, 3)),
        ("boolean", pa.bool_()),
        ("date", pa.date32()),
    ],
)
def test_empty_and_null_columns_are_encoded(spark_type, arrow_type):
    """`encode` accepts empty arrays, arrays of NULLs, and columns without chunks."""
    encoder = Encoder(spark_type)
    assert len(encoder.encode(pa.array([], arrow_type)).codes) == 0
    assert len(encoder.encode(pa.chunked_array([], arrow_type)).valid) == 0
    encoded = encoder.encode(pa.nulls(3, arrow_type))
    assert encoded.valid.tolist() == [False] * 3
    assert encoded.nan.tolist() == [False] * 3
    assert encoded.codes.shape == (3,)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (b"ab", "abc", "abd"),
        (b"user-1", "user-1", "user-1\uffff"),
        (b"", "", "\uffff"),
    ],
)
def test_span_of_a_prefix_has_all_strings_that_begin_with_it(value, low, high):
    """The span of LIKE 'x%' includes the codes of all strings that begin with x."""
    for prefix in (b"", b"user-", b"ab", b"abcd", b"zz"):
        encoder = Encoder("string", prefix)
        least, greatest = encoder.starting_with(wire(value))
        for text in (low, high):
            assert least <= encoder.literal(wire(text.encode())).code <= greatest


def test_span_ends_below_the_next_prefix():
    """The span of LIKE 'ab%' ends below the code of "ac".

    The span is a single code if no string can have both the LIKE's and the encoder's prefix.
    """
    assert (
        Encoder("string").starting_with(wire(b"ab"))[1]
        < codes(Encoder("string"), pa.array(["ac"]))[0]
    )
    assert Encoder("string", b"m").starting_with(wire(b"a")) == (LEAST, LEAST)
    assert Encoder("string", b"m").starting_with(wire(b"z")) == (GREATEST, GREATEST)


def test_prefix_of_a_run_is_common_to_its_ends():
    """`for_type` uses the common first bytes of the least and the greatest string as prefix."""
    assert Encoder.for_type("string", b"abc1", b"abd") == Encoder("string", b"ab")
    assert Encoder.for_type("varchar(9)", b"same", b"same").prefix == b"same"
    assert Encoder.for_type("bigint", b"1", b"1").prefix == b""
    assert Encoder.for_type("string").prefix == b""
    assert len(Encoder.for_type("binary", b"x" * 9999, b"x" * 9999).prefix) == MAX_PREFIX


@pytest.mark.parametrize(
    "spark_type",
    [
        "char(3)",
        "string collate UTF8_LCASE",
        "array<int>",
        "struct<a:int>",
        "map<int,int>",
        "void",
        "variant",
        "interval day",
        "time(6)",
        "decimal(39,0)",
        "decimal(3,4)",
        "BIGINT",
        "",
    ],
)
def test_other_types_are_refused_by_name(spark_type):
    """If a type cannot be indexed, the error names the types that can be indexed."""
    with pytest.raises(UnsupportedError) as refusal:
        Encoder.for_type(spark_type)
    assert refusal.value.condition == "SIEVE_UNSUPPORTED_TYPE"
    assert spark_type in refusal.value.message
    assert "timestamp_ntz" in refusal.value.message


@pytest.mark.parametrize(
    ("spark_type", "array"),
    [
        ("int", pa.array([1], pa.int64())),
        ("bigint", pa.array([1], pa.int32())),
        ("int", pa.array([1], pa.uint32())),
        ("timestamp", pa.array([1]).cast(pa.timestamp("ns"))),
        ("decimal(9,2)", pa.array([Decimal("1.5")], pa.decimal128(9, 1))),
        ("string", pa.array([b"x"])),
        ("double", pa.array([1.0], pa.float32())),
    ],
)
def test_an_array_of_another_type_is_refused(spark_type, array):
    """`encode` refuses an array whose type, unit or scale differs from the encoder's."""
    with pytest.raises(UnsupportedError):
        Encoder(spark_type).encode(array)


@pytest.mark.parametrize(
    ("spark_type", "value"),
    [
        ("int", True),
        ("int", 1.5),
        ("int", 1 << 31),
        ("int", None),
        ("bigint", "1"),
        ("boolean", 1),
        ("date", 1 << 40),
        ("float", 1 << 40),
        ("string", 5),
        ("string", "a"),
        ("string", "ü"),
        ("decimal(4,2)", 5),
        ("decimal(4,2)", "10000"),
        ("decimal(4,2)", "1e3"),
        ("decimal(38,0)", "9" * 39),
        ("timestamp", []),
    ],
)
def test_literals_in_another_form_are_refused(spark_type, value):
    """A literal in the wire form of another type raises an error; it does not get a wrong code."""
    with pytest.raises(InvalidInputError) as refusal:
        Encoder(spark_type).literal(value)
    assert refusal.value.condition == "SIEVE_BAD_LITERAL"


def test_only_strings_have_prefixes():
    """For types other than string and binary, a prefix or a LIKE raises an error."""
    with pytest.raises(InvalidInputError):
        Encoder("int", b"x")
    with pytest.raises(InvalidInputError):
        Encoder("int").starting_with(wire(b"x"))


@pytest.mark.parametrize(
    "encoder", [Encoder("decimal(10,2)"), Encoder("string"), Encoder("binary", b"\xff\0")]
)
def test_encoders_survive_json(encoder):
    """An encoder that is read back from a manifest equals the written encoder."""
    assert Encoder.from_json(encoder.to_json()) == encoder


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {},
        {"type": 1},
        {"type": "string", "prefix": 5},
        {"type": "string", "prefix": "!"},
        {"type": "string", "prefix": "e!A=="},
        {"type": "int", "prefix": "eA=="},
        {"type": "no such type"},
    ],
)
def test_damaged_encoders_are_corrupt(form):
    """Sieve reports a malformed encoder in a manifest as damage, not as a user's mistake."""
    with pytest.raises(CorruptError):
        Encoder.from_json(form)


@pytest.mark.parametrize(
    ("encoder", "code", "text"),
    [
        (Encoder("boolean"), 1, "true"),
        (Encoder("boolean"), 0, "false"),
        (Encoder("bigint"), LEAST, "-9223372036854775808"),
        (Encoder("date"), -719162, "0001-01-01"),
        (Encoder("timestamp"), LEAST, "-290308-12-21 19:59:05.224192Z"),
        (Encoder("timestamp_ntz"), 1_500_000, "1970-01-01 00:00:01.500000"),
        (Encoder("double"), struct.unpack("<q", struct.pack("<d", 0.1))[0], "0.1"),
        (Encoder("double"), GREATEST, "inf"),
        (Encoder("double"), LEAST, "-inf"),
        (Encoder("double"), -1, "-5e-324"),
        (Encoder("float"), -1, "-1e-45"),
        (Encoder("float"), 0, "0.0"),
        (Encoder("float"), GREATEST, "inf"),
        (Encoder("float"), struct.unpack("<i", struct.pack("<f", 0.1))[0], "0.1"),
        (Encoder("float"), LEAST, "-inf"),
        (Encoder("decimal(38,0)", window=Window(0, 64)), GREATEST, "9" * 38),
        (Encoder("decimal(38,0)", window=Window(0, 64)), LEAST, "-" + "9" * 38),
        (Encoder("decimal(38,0)", window=Window(7, 1)), LEAST + 3, "13"),
        (Encoder("float"), struct.unpack("<i", struct.pack("<f", 0.5))[0], "0.5"),
        (Encoder("double"), -struct.unpack("<q", struct.pack("<d", 0.1))[0], "-0.1"),
        (Encoder("decimal(10,2)"), -5, "-0.05"),
        (Encoder("decimal(10,2)"), 0, "0.00"),
        (Encoder("decimal(10,1)"), 5, "0.5"),
        (Encoder("decimal(10,0)"), 12, "12"),
        (Encoder("string", b"ab"), int.from_bytes(b"c".ljust(8, b"\0"), "big") + LEAST, "abc"),
        (Encoder("string", b"ab"), LEAST, ""),
        (Encoder("string", b"ab"), GREATEST, "ab"),
        (Encoder("binary"), int.from_bytes(b"\1\xff".ljust(8, b"\0"), "big") + LEAST, "01FF"),
    ],
)
def test_codes_are_shown_as_values(encoder, code, text):
    """`decode` returns a code's value as text, for DESCRIBE and for plans."""
    assert encoder.decode(code) == text


def test_long_decimals_are_shown_by_their_least_value():
    """Many long decimals can share a code; `decode` shows the code as its least decimal."""
    encoder = Encoder("decimal(38,0)")
    for value in (10**37 + 12345, -(10**37) - 12345, 2**57 + 1, -(2**57) - 1, 2**56, -7):
        code = encoder.literal(str(value)).code
        least = int(encoder.decode(code))
        assert least <= value
        assert encoder.literal(str(least)).code == code
        assert encoder.literal(str(least - 1)).code < code


def test_encoders_that_give_other_codes_are_not_equal():
    """Equal encoders share look-ups, so encoders with different codes must be unequal."""
    cut, other = (Splits((Point(word, 2),)) for word in (b"ab", b"cd"))
    wide = "decimal(38,0)"
    encoders = [
        Encoder("string"),
        Encoder("binary"),
        Encoder("string", b"a"),
        Encoder("string", b"b"),
        Encoder("string", b"a", cut),
        Encoder("string", b"a", other),
        Encoder(wide),
        Encoder(wide, window=Window(0, 8)),
        Encoder(wide, window=Window(1, 8)),
        Encoder(wide, window=Window(0, 9)),
    ]
    for one, another in itertools.combinations(encoders, 2):
        assert one != another
    assert len(set(encoders)) == len(encoders)


@pytest.mark.parametrize("shift", [0, 1, 8, 63, 64])
@pytest.mark.parametrize("low", [0, 1, -1, -(1 << 70), (1 << 64) - 1, 10**38 - 1, 1 - 10**38])
def test_window_ends_have_the_codes_of_their_literals(low, shift):
    """Codes in a window of decimals are right, even if a step spans both words of a decimal.

    Values beyond the window's last step have the greatest code.
    """
    encoder = Encoder("decimal(38,0)", window=Window(low, shift))
    step, end = 1 << shift, 10**38 - 1
    corners = [0, 1, 5, (1 << 64) - 1, 1 << 64, (1 << 64) + 5, 1 << 65]
    spots = itertools.product(corners, (step, -step), (-1, 0, 1))
    values = [low + corner * by + off for corner, by, off in spots]
    values = [value for value in values if abs(value) <= end]
    array = pa.array([Decimal(value) for value in values], pa.decimal128(38, 0))
    steps = [min(max((value - low) >> shift, 0), (1 << 64) - 1) for value in values]
    assert encoder.encode(array).codes.tolist() == [LEAST + step for step in steps]
    assert [encoder.literal(str(value)).code for value in values] == [LEAST + s for s in steps]


@pytest.mark.parametrize(
    ("spark_type", "low", "high"),
    [
        ("tinyint", -(1 << 7), (1 << 7) - 1),
        ("smallint", -(1 << 15), (1 << 15) - 1),
        ("int", -(1 << 31), (1 << 31) - 1),
        ("bigint", LEAST, GREATEST),
        ("date", -(1 << 31), (1 << 31) - 1),
        ("timestamp", LEAST, GREATEST),
        ("timestamp_ntz", LEAST, GREATEST),
    ],
)
def test_literals_reach_to_the_ends_of_their_type(spark_type, low, high):
    """Valid integer literals reach from the type's least value to its greatest value."""
    encoder = Encoder(spark_type)
    for value in (low, low + 1, -1, 0, 1, high - 1, high):
        assert encoder.literal(value).code == value
    for value in (low - 1, high + 1):
        with pytest.raises(InvalidInputError):
            encoder.literal(value)


@pytest.mark.parametrize("precision", [10, 38])
def test_decimals_of_a_slice_are_coded(precision):
    """From a slice of an array, `encode` encodes only the decimals of the slice."""
    values = [Decimal(k) for k in (7, -3, 10**9, 0, 5, -1)]
    array = pa.array([*values[:3], None, *values[3:]], pa.decimal128(precision, 0))
    encoder = Encoder(f"decimal({precision},0)")
    whole = encoder.encode(array)
    for start, length in ((0, 2), (1, 3), (3, 2), (6, 1)):
        part = encoder.encode(array.slice(start, length))
        assert part.codes.tolist() == whole.codes[start : start + length].tolist()
        assert part.valid.tolist() == whole.valid[start : start + length].tolist()


@pytest.mark.parametrize(
    ("encoder", "most"),
    [
        (Encoder("string"), 8),
        (Encoder("varchar(9)", b"user-"), 13),
        (Encoder("binary", b"ab", Splits((Point(b"c", 1),), b"")), 2 + 128 + 24),
        (Encoder("bigint"), None),
        (Encoder("decimal(38,0)"), None),
    ],
)
def test_codes_depend_on_leading_bytes(encoder, most):
    """Codes of strings and binary depend only on leading bytes; other codes depend on all bytes."""
    assert encoder.leading_bytes == most
    assert (encoder.of_bytes is encoder) == (most is None)


def test_texts_have_the_same_codes_as_their_bytes():
    """A string has the same code as its UTF-8 bytes, with and without a prefix of the encoder."""
    texts = ["user-1", "user-é", "", "vser", "user-123456789"]
    for prefix in (b"", b"user-"):
        encoder = Encoder("string", prefix)
        as_bytes = encoder.of_bytes.encode(pa.array([t.encode() for t in texts], pa.binary()))
        assert as_bytes.codes.tolist() == encoder.encode(pa.array(texts)).codes.tolist()
