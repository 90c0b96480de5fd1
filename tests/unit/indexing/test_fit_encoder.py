"""Tests the choice of an encoder: cheap codes that distinguish most values of a sample."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from sieve.encoding.decimal_codec import DecimalCodec, Window
from sieve.encoding.encoder import Encoder
from sieve.encoding.split_points import MOST_BYTES, Point, Splits
from sieve.indexing import fit_encoder as module
from sieve.indexing.fit_encoder import FRONT, fit_encoder

RNG = np.random.default_rng(5)
HOSTS = [f"https://www.{name}.com/" for name in ("amber", "bluebell", "cobalt", "deep-sea")]
URLS = [
    f"{HOSTS[host]}articles/{page:06d}/index.html"
    for host, page in zip(RNG.integers(0, 4, 20_000), RNG.integers(0, 400_000, 20_000), strict=True)
]


def chosen(type_name: str, values: list[object], rows: int | None = None) -> Encoder:
    """Chooses the encoder of a column that has this many rows, and these values in its sample."""
    kinds = {"string": pa.string(), "binary": pa.binary()}
    array = pa.array(values, kinds.get(type_name) or pa.decimal128(38, 2))
    return fit_encoder(type_name, pa.chunked_array([array]), rows or len(values), 1 << 30)


def share_of_distinct_codes(encoder: Encoder, values: list[object]) -> float:
    """The number of distinct codes, divided by the number of distinct values."""
    array = pa.array(values, pa.decimal128(38, 2) if isinstance(values[0], Decimal) else None)
    return len(np.unique(encoder.encode(array).codes)) / len(set(values))


def test_urls_of_several_hosts_have_different_codes():
    """With split points, the codes of URLs from several hosts distinguish their pages.

    With a plain prefix and eight more bytes, codes would distinguish only the hosts.
    """
    encoder = chosen("string", URLS[::2])
    assert (
        share_of_distinct_codes(
            Encoder.for_type("string", b"https://www.a", b"https://www.d"), URLS
        )
        < 0.01
    )
    assert share_of_distinct_codes(encoder, URLS) == 1.0


@pytest.mark.parametrize(
    "values",
    [
        [f"{n:08x}-{n:028x}" for n in RNG.integers(0, 1 << 32, 5000).tolist()],
        [f"user-{n}" for n in range(5000)],
        ["", "a", "b"],
        ["same"] * 100,
        ["", "\0", "\0\0"],
    ],
)
def test_plain_prefix_is_kept_if_it_distinguishes_values(values):
    """If a plain prefix distinguishes the values, the chosen encoder has no split points."""
    encoder = chosen("string", values)
    ends = sorted(value.encode() for value in values)
    assert encoder == Encoder.for_type("string", ends[0], ends[-1])


def test_a_column_without_values_has_the_plain_encoder():
    """A column without rows, or with NULLs only, gets the plain encoder."""
    assert chosen("string", [None, None]) == Encoder("string")
    assert fit_encoder("string", pa.chunked_array([], pa.string()), 0, 0) == Encoder("string")


def test_column_larger_than_its_sample_has_finer_codes():
    """If a column has far more rows than its sample, the build chooses finer codes."""
    sample = [f"{n:016d}" for n in range(0, 10**9, 50_000)]
    few, many = chosen("string", sample), chosen("string", sample, 10**9)
    assert few.splits is None
    assert many.splits is not None
    near = [f"{n:016d}" for n in range(10_000)]
    assert share_of_distinct_codes(many, near) == 1.0


def test_split_points_grow_with_the_column_up_to_a_limit():
    """The limit on a column's split points, in bytes, grows with the column up to a maximum.

    In a small column, split points have at most a kilobyte.
    """
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(w) for w in RNG.choice(letters, (300, 12))]
    places = RNG.integers(0, 300, (9000, 4))
    sample = pa.chunked_array([pa.array(["/".join(words[k] for k in row) for row in places])])
    sizes = []
    for size in (1000, 4_000_000, 1 << 40):
        splits = fit_encoder("string", sample, 10**6, size).splits
        sizes.append(0 if splits is None else len(splits.to_bytes()))
    assert sizes == sorted(sizes)
    assert sizes[0] <= 1024
    assert sizes[1] <= 4000 < sizes[2] <= MOST_BYTES


def test_stray_bytes_do_not_widen_the_digits():
    """A byte that occurs in one value of a thousand does not become a digit."""
    odd = [f"{host}articles/ÄÖÜ~{n}" for n, host in enumerate(HOSTS * 3)]
    encoder = chosen("string", URLS + odd)
    assert encoder.splits is not None
    assert encoder.splits.alphabet.isascii()
    assert b"~" not in encoder.splits.alphabet
    assert share_of_distinct_codes(encoder, URLS) == 1.0


def test_no_byte_beyond_the_front_affects_a_code():
    """If values differ only after the longest split point and its digits, their codes are equal."""
    point = Point(b"p" * 128, 128)
    encoder = Encoder("string", b"s" * 1024, Splits((point,), b"01"))
    value = "s" * 1024 + "p" * 128 + "0" * 24
    last, beyond = value[:-1] + "1", value + "1"
    codes = encoder.encode(pa.array([value, last, beyond])).codes.tolist()
    assert codes[1] > codes[0] == codes[2]
    assert len(value) == FRONT


def test_wide_decimals_in_a_narrow_range_differ():
    """A window distinguishes decimals of 25 digits that are close together.

    Decimals outside of the window get the first or the last code.
    """
    ids = [Decimal(10**24 + n).scaleb(-2) for n in range(0, 10**6, 101)]
    encoder = chosen("decimal(38,2)", ids)
    odd = chosen("decimal(38,2)", [*ids, Decimal(0), Decimal(-(10**35))])
    assert share_of_distinct_codes(odd, ids) == 1.0
    assert share_of_distinct_codes(Encoder("decimal(38,2)"), ids) < 0.02
    assert share_of_distinct_codes(encoder, ids) == 1.0
    far = [Decimal(v) for v in (-(10**35), 0, 10**35)]
    assert encoder.encode(pa.array(far, pa.decimal128(38, 2))).codes.tolist() == [
        -(1 << 63),
        -(1 << 63),
        (1 << 63) - 1,
    ]


def test_negative_decimals_in_a_narrow_range_differ():
    """A window distinguishes negative decimals that are close together."""
    ids = [Decimal(-(10**24) - n).scaleb(-2) for n in range(0, 10**6, 101)]
    assert share_of_distinct_codes(chosen("decimal(38,2)", ids), ids) == 1.0


def test_decimals_of_all_magnitudes_have_no_window():
    """Decimals of all magnitudes get no window.

    In a window, all small values would share one code.
    """
    values = [Decimal(k * 10**e).scaleb(-2) for e in range(36) for k in range(1, 10)]
    assert chosen("decimal(38,2)", values) == Encoder("decimal(38,2)")
    assert chosen("decimal(38,2)", [Decimal(7)]) == Encoder("decimal(38,2)")


@pytest.mark.parametrize(
    ("least", "greatest"),
    [(1 - 10**38, 10**38 - 1), (10**38 - 2, 10**38 - 1), (1 - 10**38, 2 - 10**38), (0, 0)],
)
def test_a_window_over_the_ends_of_decimals(least: int, greatest: int) -> None:
    """A window that contains the extreme decimals gives different codes to its two ends."""
    window = Window.around(least, greatest)
    codec = DecimalCodec(38, 0, window)
    values = pa.array([Decimal(least), Decimal(greatest)], pa.decimal128(38, 0))
    first, last = codec.codes(values).tolist()
    assert first <= last
    assert (first < last) == (least < greatest)
    assert [first, last] == [codec.literal(str(value)).code for value in (least, greatest)]


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (8, [1]),
        (127, [1]),
        (128, [1, 16]),
        (8191, [1, 16, 64, 256, 512]),
        (8192, [1, 16, 64, 256, 512, 1024]),
    ],
)
def test_more_and_more_split_points_are_tried(
    monkeypatch: pytest.MonkeyPatch, values: int, counts: list[int]
) -> None:
    """A build tries more and more split points until their codes distinguish the values.

    Two limits bound the number of points: the bytes of the sample, and the bytes that points may
    have.
    """
    asked: list[int] = []
    split = module.split

    def noted(fronts, count, spare, most):
        asked.append(count)
        assert most == MOST_BYTES
        return split(fronts, 1, spare, most)

    monkeypatch.setattr(module, "split", noted)
    monkeypatch.setattr(module, "_told_apart", lambda *_: 0.99)
    words = [f"{k:05d}" for k in range(values)]
    assert chosen("string", words) == Encoder.for_type("string", b"00000", words[-1].encode())
    assert asked == counts
    asked.clear()
    monkeypatch.setattr(module, "_told_apart", lambda *_: 0.991)
    chosen("string", words)
    assert asked == []
    monkeypatch.setattr(module, "_told_apart", lambda *_: 0.5)
    monkeypatch.setattr(module, "split", lambda _, count, *__: asked.append(count))
    chosen("string", words)
    assert asked == [1]


@pytest.mark.parametrize(
    ("size", "most"),
    [
        (0, 1024),
        (1_024_999, 1024),
        (1_025_000, 1025),
        (5_000_000, 5000),
        (16_384_000, 16_384),
        (1 << 40, 16_384),
    ],
)
def test_split_points_take_a_thousandth_of_the_column(
    monkeypatch: pytest.MonkeyPatch, size: int, most: int
) -> None:
    """Split points may use a thousandth of the column's bytes, or a kilobyte if that is more.

    A manifest also limits the bytes of split points.
    """
    asked: list[int] = []
    monkeypatch.setattr(module, "split", lambda _, __, ___, limit: asked.append(limit))
    monkeypatch.setattr(module, "_told_apart", lambda *_: 0.5)
    values = pa.chunked_array([pa.array([f"{k:05d}" for k in range(200)])])
    fit_encoder("string", values, 200, size)
    assert asked == [most]


def test_sample_of_the_whole_column_reserves_no_bit() -> None:
    """If the sample is the whole column, codes need no bits for values outside of the sample.

    If all values differ, codes reserve one more bit for each doubling of the rows.
    """
    values = pa.chunked_array([pa.array(range(1000))])
    spare = [module._spare_bits(values, rows) for rows in (0, 1000, 2000, 4000)]
    assert spare == [0, 0, 1, 2]


@pytest.mark.parametrize(("gain", "taken"), [(0.0, False), (1e-9, True)])
def test_another_encoder_must_gain_more_than_a_little(
    monkeypatch: pytest.MonkeyPatch, gain: float, taken: bool
) -> None:
    """An encoder replaces the plain encoder if it distinguishes sufficiently more values."""
    for type_name, values in (("string", URLS), ("decimal(38,2)", [Decimal(k) for k in range(9)])):
        asked: list[Encoder] = []

        def told_apart(encoder: Encoder, *_: object, asked: list[Encoder] = asked) -> float:
            asked.append(encoder)
            return 0.25 if len(asked) == 1 else 0.25 + module._GAIN + gain

        monkeypatch.setattr(module, "_told_apart", told_apart)
        assert (chosen(type_name, values) != asked[0]) is taken
        assert len(asked) > 1
