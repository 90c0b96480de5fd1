"""Fits the encoder of strings, binary values and wide decimals to a sample of the column.

The module chooses the encoder that distinguishes the most values of the sample.
`sieve.encoding.codec_of_type` chooses the codec of all other types.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sieve.encoding.decimal_codec import Window
from sieve.encoding.encoder import MAX_PREFIX, Encoder
from sieve.encoding.split_points import LONGEST_POINT, MOST_BYTES, MOST_DIGITS
from sieve.indexing.choose_split_points import STRAYS, Fronts, split

FRONT: Final = MAX_PREFIX + LONGEST_POINT + MOST_DIGITS
"""The code of a value depends on at most this many of its leading bytes."""

_STEPS: Final = (1, 16, 64, 256, 512, 1024)
"""The numbers of split points that the choice tries. More points would leave less room in a
code."""
_VALUES_A_POINT: Final = 8
"""Minimum mean number of sampled values per split point. Fewer values would not show their common
bytes."""
_SHARE_OF_COLUMN: Final = 1000
"""The split points take at most 1/1000 of the column's size. With a budget of 1 %, this is a tenth
of the budget."""
_ALWAYS_ALLOWED: Final = 1024
"""Split points with up to this many bytes are negligible compared with the other contents of a
manifest."""
_GAIN: Final = 0.01
"""A costlier encoder must increase the share of distinct codes by more than this number."""


def fit_encoder(type_name: str, values: pa.ChunkedArray, rows: int, size: int) -> Encoder:
    """Returns the encoder for a column of strings, binary or wide decimals.

    Args:
        type_name: Spark's simple name of the column's type.
        values: a sample of the column; strings and binary values can be truncated to `FRONT` bytes.
        rows: number of rows of the column.
    """
    values = values.drop_null()
    plain = Encoder.for_type(type_name)
    if plain.exact or not len(values):
        return plain
    spare = _spare_bits(values, rows)
    if pa.types.is_decimal(values.type):
        return _of_decimals(type_name, values.unique(), spare)
    distinct = sorted(set(values.cast(pa.large_binary()).to_pylist()))
    best = Encoder.for_type(type_name, distinct[0], distinct[-1])
    fronts = Fronts(distinct, len(best.prefix))
    sample = pa.array(distinct, pa.large_binary())
    # The values contain only some of the 256 possible bytes, so each byte has less than 8 bits of
    # information.
    byte = math.log2(max(2, len(np.unique(fronts.bytes[:, :8]))))
    score = _told_apart(best, sample, spare * 8 / byte)
    most = min(MOST_BYTES, max(_ALWAYS_ALLOWED, size // _SHARE_OF_COLUMN))
    for count in _STEPS:
        if score > 1 - _GAIN or count * _VALUES_A_POINT > max(_VALUES_A_POINT, len(distinct)):
            break
        splits = split(fronts, count, spare, most)
        if splits is None:
            break
        encoder = Encoder(type_name, best.prefix, splits)
        apart = _told_apart(encoder, sample, spare)
        if apart > score + _GAIN:
            best, score = encoder, apart
    return best


def _spare_bits(values: pa.ChunkedArray, rows: int) -> float:
    """Estimates how many more bits a code needs to also distinguish values outside the sample."""
    # The sample lacks the values of some rows. By Good's estimate, the share of these rows is the
    # share of sampled values that occur once (Good, "The population frequencies of species").
    counts = pc.value_counts(values).field("counts")
    unseen = pc.sum(pc.equal(counts, 1)).as_py() / len(values)
    return math.log2(1 + unseen * max(0.0, rows / len(values) - 1))


def _of_decimals(type_name: str, distinct: pa.Array, spare: float) -> Encoder:
    best = Encoder.for_type(type_name)
    if best.exact:
        return best
    score = _told_apart(best, distinct, spare)
    ordered = distinct.take(pc.sort_indices(distinct))
    for strays in (0, int(len(ordered) * STRAYS)):
        least, greatest = (_unscaled(ordered[at], ordered.type) for at in (strays, -1 - strays))
        encoder = Encoder(type_name, window=Window.around(least, greatest))
        apart = _told_apart(encoder, distinct, spare)
        if apart > score + _GAIN:
            best, score = encoder, apart
    return best


def _unscaled(value: pa.Scalar, of: pa.DataType) -> int:
    # Python's decimal arithmetic would round to 28 digits, so this code joins the digits as text.
    sign, digits, exponent = value.as_py().as_tuple()
    unscaled: int = int("".join(map(str, digits))) * 10 ** (exponent + of.scale)
    return -unscaled if sign else unscaled


def _told_apart(encoder: Encoder, distinct: pa.Array, spare: float) -> float:
    """Removes the last `spare` bits of each code; returns distinct codes per distinct value."""
    codes = encoder.of_bytes.encode(distinct).codes.view(np.uint64) ^ np.uint64(1 << 63)
    return len(np.unique(codes >> np.uint64(min(63, round(spare))))) / len(distinct)
