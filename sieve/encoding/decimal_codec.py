"""Key codes of decimals: the unscaled integer, reduced to 64 bits if it is wider.

A decimal of up to 18 digits fits in 64 bits: 12.34 as ``decimal(10,2)`` has the code 1234. A
decimal of more than 18 digits has an unscaled integer of up to 128 bits. The code of a decimal of
more than 18 digits has one of two forms. One form is an exponent with leading bits, as in a
floating-point number. The other form is the number of a step in a `Window`, a range of values.
"""

# ruff: noqa: D102 - the protocol `Codec` documents the methods that codecs share

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.arrays.bit_packing import bit_lengths
from sieve.arrays.dtypes import Codes, Words
from sieve.encoding.codec import GREATEST, LEAST, Literal, refuse_literal
from sieve.encoding.hashing import decimal_bytes
from sieve.errors import InvalidInputError

_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Window:
    """The range of unscaled values, from `low` upwards, over which a column's codes are spread.

    The range is divided into 2^64 steps of length 2^shift each.

    Raises:
        InvalidInputError: `low` has more than 38 digits, or `shift` is not from 0 to 64.
    """

    low: int
    shift: int

    def __post_init__(self) -> None:
        if abs(self.low) >= 10**38 or not 0 <= self.shift <= 64:
            raise InvalidInputError(
                "SIEVE_BAD_ENCODER", f"no decimals lie from {self.low} in steps of 2^{self.shift}"
            )

    @classmethod
    def around(cls, least: int, greatest: int) -> Window:
        """Returns the window with the shortest steps that covers a range of values and two margins.

        The margins are below and above the range. Each margin is as wide as the range.
        """
        margin = greatest - least + 1
        low, high = max(1 - 10**38, least - margin), min(10**38 - 1, greatest + margin)
        # The range of all decimals contains fewer than 2^128 values, and the window is at most as
        # wide as this range. So the shift is at most 64.
        return cls(low, max(0, (high - low).bit_length() - 64))


@dataclass(frozen=True, slots=True)
class DecimalCodec:
    """Encodes a decimal by its unscaled integer u; the code of a decimal of up to 18 digits is u.

    Without a window, the code of a wider decimal resembles a floating-point number. If |u| < 2^57,
    the code of |u| is |u|. If |u| has L > 57 bits, its code consists of the exponent L - 56 and the
    56 bits below the leading bit. The code of a negative u is the negated code of |u|. With a
    window, the code is the number of the step that contains u. A value below the window gets the
    least code, and a value above the window gets the greatest code.
    """

    precision: int
    scale: int
    window: Window | None = None

    @property
    def exact(self) -> bool:
        return self.precision <= 18

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return (
            bool(pa.types.is_decimal128(arrow_type))
            and arrow_type.precision == self.precision
            and arrow_type.scale == self.scale
        )

    def codes(self, array: pa.Array) -> Codes:
        words = np.frombuffer(array.buffers()[1], "<i8")
        low, high = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2).T
        if self.exact:
            return low.copy()
        if self.window is not None:
            return _steps(low.view(np.uint64), high, self.window)
        return _wide_codes(low.view(np.uint64), high)

    def literal(self, value: object) -> Literal:
        if not isinstance(value, str) or not re.fullmatch(r"-?[0-9]{1,38}", value):
            raise refuse_literal(value, "the digits of an unscaled decimal")
        unscaled = int(value)
        if abs(unscaled) >= 10**self.precision:
            raise refuse_literal(value, f"at most {self.precision} digits")
        if self.exact:
            return Literal(unscaled)
        return Literal(self._code(unscaled), image=decimal_bytes(unscaled))

    def decode(self, code: int) -> str:
        unscaled = code if self.exact else self._least_unscaled(code)
        digits = str(abs(unscaled)).rjust(self.scale + 1, "0")
        point = len(digits) - self.scale
        text = f"{digits[:point]}.{digits[point:]}" if self.scale else digits
        return f"-{text}" if unscaled < 0 else text

    def _code(self, unscaled: int) -> int:
        if self.window is not None:
            step = (unscaled - self.window.low) >> self.window.shift
            return LEAST + min(max(step, 0), _WORD)
        magnitude = abs(unscaled)
        spare = max(0, magnitude.bit_length() - 57)
        code = (spare << 56) + (magnitude >> spare)
        return -code if unscaled < 0 else code

    def _least_unscaled(self, code: int) -> int:
        if self.window is not None:
            end: int = 10**self.precision - 1
            if code == LEAST:
                return -end
            least = self.window.low + ((code - LEAST) << self.window.shift)
            return max(-end, min(end, least))
        spare = max(0, (abs(code) >> 56) - 1)
        leading = abs(code) - (spare << 56)
        return leading << spare if code >= 0 else -(((leading + 1) << spare) - 1)


def _steps(low: Words, high: Codes, window: Window) -> Codes:
    """Returns key codes: the number of the window step of each 128-bit two's complement integer."""
    origin = window.low & ((1 << 128) - 1)
    origin_low, origin_high = np.uint64(origin & _WORD), np.uint64(origin >> 64)
    signed_high = np.int64(window.low >> 64)
    below = (high < signed_high) | ((high == signed_high) & (low < origin_low))
    # If a value is at or above the window's first value, its distance from the first value is less
    # than 2^128.
    near = low - origin_low
    far = high.view(np.uint64) - origin_high - (low < origin_low)
    if window.shift == 64:
        steps, beyond = far, np.zeros(len(far), np.bool_)
    elif window.shift:
        shift, rest = np.uint64(window.shift), np.uint64(64 - window.shift)
        steps, beyond = (near >> shift) | (far << rest), (far >> shift) > 0
    else:
        steps, beyond = near, far > 0
    codes: Codes = (steps ^ np.uint64(1 << 63)).view(np.int64)
    codes[beyond] = GREATEST
    codes[below] = LEAST
    return codes


def _wide_codes(low: npt.NDArray[np.uint64], high: npt.NDArray[np.int64]) -> Codes:
    """Returns the codes of 128-bit two's complement integers, each given as two 64-bit words."""
    negative = high < 0
    low = np.where(negative, ~low + np.uint64(1), low)
    carry = negative & (low == 0)
    top = np.where(negative, ~high + carry, high).view(np.uint64)
    length = np.where(top > 0, 64 + bit_lengths(top), bit_lengths(low))
    spare = np.maximum(length - 57, 0).astype(np.uint64)
    # In numpy, shifting a word by 64 bits or more is undefined, so this function shifts each of the
    # two words by less than 64 bits.
    within = np.minimum(spare, np.uint64(63))
    lifted = np.where(within > 0, top << ((np.uint64(64) - within) & np.uint64(63)), np.uint64(0))
    near = (low >> within) | lifted
    beyond = top >> (np.maximum(spare, np.uint64(64)) - np.uint64(64))
    leading = np.where(spare >= 64, beyond, near)
    codes: Codes = ((spare << np.uint64(56)) + leading).view(np.int64)
    codes[negative] *= -1
    return codes
