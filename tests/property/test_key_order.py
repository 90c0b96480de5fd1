"""Codes of generated values sort as the values. A literal has the code of an equal value."""

from __future__ import annotations

import base64
import itertools
import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sieve.encoding.encoder import Encoder, Window
from sieve.indexing.fit_encoder import fit_encoder
from tests.generated_encoders import BYTES, encoders


def exact_codes(encoder, array):
    """Returns the codes of an array as integers, without the codes of NULL and NaN."""
    return encoder.encode(array).codes.tolist()


def assert_ordered(pairs, *, exact):
    """Checks pairs of (value, code): if the values ascend, the codes do not descend."""
    pairs = sorted(pairs)
    for (value, code), (above, code_above) in itertools.pairwise(pairs):
        assert code <= code_above
        if exact:
            assert (value == above) == (code == code_above)


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.sampled_from([32, 64]))
@example([0.0, -0.0, math.inf, -math.inf, 5e-324, -5e-324, 2.0**53, 2.0**53 + 2], 64)
def test_float_codes_are_ordered_exactly(values, bits):
    """Codes of floats sort exactly as the floats. -0.0 equals 0.0."""
    with np.errstate(over="ignore"):
        array = np.array(values, np.float32 if bits == 32 else np.float64)
    encoder = Encoder("float" if bits == 32 else "double")
    codes = exact_codes(encoder, pa.array(array))
    assert_ordered(zip(array.tolist(), codes, strict=True), exact=True)
    images = array.view(np.int32 if bits == 32 else np.int64).tolist()
    assert [encoder.literal(image).code for image in images] == codes


@given(st.data(), st.integers(1, 38))
def test_decimal_codes_are_ordered(data, precision):
    """Codes keep the order of decimals. Up to 18 digits, different decimals have unequal codes."""
    end = 10**precision - 1
    near = st.builds(
        lambda power, off, sign: sign * max(0, min(end, (1 << power) + off)),
        st.integers(0, 126),
        st.integers(-3, 3),
        st.sampled_from([1, -1]),
    )
    values = data.draw(st.lists(st.one_of(st.integers(-end, end), near), min_size=1))
    encoder = Encoder(f"decimal({precision},0)")
    array = pa.array([Decimal(value) for value in values], pa.decimal128(precision, 0))
    codes = exact_codes(encoder, array)
    assert_ordered(zip(values, codes, strict=True), exact=encoder.exact)
    assert [encoder.literal(str(value)).code for value in values] == codes
    assert all(int(encoder.decode(c)) <= v for v, c in zip(values, codes, strict=True))


@given(st.lists(BYTES, min_size=1), BYTES, st.integers(0, 3), BYTES)
def test_byte_codes_are_ordered_under_any_prefix(values, prefix, offset, start):
    """For any prefix of the encoder, codes keep the order of byte strings.

    The span of a prefix contains the codes of all values that begin with this prefix.
    """
    encoder = Encoder("binary", prefix)
    array = pa.array([b"x"] * offset + values, pa.binary()).slice(offset)
    codes = exact_codes(encoder, array)
    assert_ordered(zip(values, codes, strict=True), exact=False)
    wires = [base64.b64encode(value).decode() for value in values]
    assert [encoder.literal(wire).code for wire in wires] == codes
    low, high = encoder.starting_with(base64.b64encode(start).decode())
    begins = [c for v, c in zip(values, codes, strict=True) if v.startswith(start)]
    assert all(low <= code <= high for code in begins)


@pytest.mark.usefixtures("fifth")
@given(st.data())
@settings(max_examples=60)
def test_byte_codes_are_ordered_under_any_split_points(data):
    """For any split points and digits, codes keep the order of byte strings.

    A literal has the code of an equal value. The span of a prefix contains the codes of all values
    that begin with the prefix.
    """
    values = data.draw(st.lists(BYTES, min_size=1))
    encoder = data.draw(encoders(st.sampled_from(values)))
    assert Encoder.from_json(encoder.to_json()) == encoder
    assert_codes_fit(encoder, values, data.draw(st.one_of(BYTES, st.sampled_from(values))))


@pytest.mark.usefixtures("fifth")
@given(st.lists(BYTES, min_size=1), BYTES, st.integers(1, 1 << 40))
@settings(max_examples=60)
def test_byte_codes_are_ordered_under_chosen_split_points(values, start, rows):
    """An encoder from a sample keeps the order of all values, even of values outside the sample."""
    sample = pa.chunked_array([pa.array(values[: len(values) // 2 + 1], pa.binary())])
    assert_codes_fit(fit_encoder("binary", sample, rows, 1 << 20), values, start)


def assert_codes_fit(encoder, values, start):
    """Checks that codes keep the order of values, and that literals have the codes of equal values.

    Also checks that a value lies in the span of each of its prefixes.
    """
    array = pa.array([b"x", *values, None], pa.binary()).slice(1)
    codes = exact_codes(encoder, array)[: len(values)]
    assert_ordered(zip(values, codes, strict=True), exact=False)
    wires = [base64.b64encode(value).decode() for value in values]
    assert [encoder.literal(wire).code for wire in wires] == codes
    prefixes = [start, *(value[: len(start)] for value in values)]
    for prefix in prefixes:
        low, high = encoder.starting_with(base64.b64encode(prefix).decode())
        begins = [c for v, c in zip(values, codes, strict=True) if v.startswith(prefix)]
        assert all(low <= code <= high for code in begins)
    # Executors get only the leading bytes of a value that determine the value's code.
    most = encoder.leading_bytes
    for tail in (b"", b"\xff" * 200, b"\0" * 200, start * 40):
        longer = [value + tail for value in values]
        whole = exact_codes(encoder, pa.array(longer, pa.binary()))
        assert exact_codes(encoder, pa.array([v[:most] for v in longer], pa.binary())) == whole
    shown = [bytes.fromhex(encoder.decode(code)) for code in codes]
    assert all(least <= value for least, value in zip(shown, values, strict=True))


@pytest.mark.usefixtures("fifth")
@given(st.data(), st.integers(19, 38))
@settings(max_examples=60)
def test_decimal_codes_are_ordered_in_any_window(data, precision):
    """Codes keep the order of wide decimals, both inside and outside of the encoder's window."""
    end = 10**precision - 1
    window = Window(
        data.draw(st.one_of(st.integers(-end, end), st.sampled_from([-end, -1, 0, 1, end]))),
        data.draw(st.integers(0, 64)),
    )
    far = 1 << (64 + window.shift)
    near = st.builds(
        lambda of, off: max(-end, min(end, window.low + of + off)),
        st.sampled_from([0, far, far >> 1, 1 << window.shift, -1 << 64]),
        st.integers(-3, 3),
    )
    values = data.draw(st.lists(st.one_of(st.integers(-end, end), near), min_size=1))
    encoder = Encoder(f"decimal({precision},0)", window=window)
    assert Encoder.from_json(encoder.to_json()) == encoder
    array = pa.array([Decimal(value) for value in values], pa.decimal128(precision, 0))
    codes = exact_codes(encoder, array)
    assert_ordered(zip(values, codes, strict=True), exact=False)
    assert [encoder.literal(str(value)).code for value in values] == codes
    assert all(int(encoder.decode(c)) <= v for v, c in zip(values, codes, strict=True))


@given(st.lists(st.text(), min_size=1), st.text(max_size=3))
def test_texts_are_ordered_as_their_utf8(values, prefix):
    """In every Arrow layout, strings are ordered by their UTF-8 bytes, as in Spark."""
    encoder = Encoder("string", prefix.encode())
    codes = exact_codes(encoder, pa.array(values, pa.string()))
    encoded = [value.encode() for value in values]
    assert_ordered(zip(encoded, codes, strict=True), exact=False)
    assert exact_codes(encoder, pa.array(values, pa.string_view())) == codes


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@given(data=st.data())
def test_integers_survive(bits, data):
    """The code of an integer of any width is the integer itself, even in columns with NULL."""
    name = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[bits]
    half = 1 << (bits - 1)
    values = data.draw(st.lists(st.one_of(st.none(), st.integers(-half, half - 1))))
    encoded = Encoder(name).encode(pa.array(values, f"int{bits}"))
    assert encoded.valid.tolist() == [value is not None for value in values]
    assert encoded.codes[encoded.valid].tolist() == [v for v in values if v is not None]


@given(st.lists(st.one_of(st.none(), st.integers(0, (1 << 64) - 1))))
def test_any_bits_make_a_double_or_nan(images):
    """Every bit pattern of a double is NaN, or has the same code in a column and in a literal."""
    values = [None if i is None else struct.unpack("<d", struct.pack("<Q", i))[0] for i in images]
    encoder = Encoder("double")
    encoded = encoder.encode(pa.array(values, pa.float64()))
    for at, value in enumerate(values):
        assert encoded.valid[at] == (value is not None)
        if value is None:
            continue
        (image,) = struct.unpack("<q", struct.pack("<d", value))
        literal = encoder.literal(image)
        assert literal.nan == encoded.nan[at] == math.isnan(value)
        assert literal.nan or literal.code == encoded.codes[at]
