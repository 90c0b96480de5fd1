"""The OPTIONS of an index: which exist, what values they take, and how text becomes a record."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sieve.errors import InvalidInputError

SHAPES = ("sieve",)
ERROR_RANGE = (1, 1_000_000)
OPTION_NAMES = ("error", "shape")

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How an index is built.

    Attributes:
        shape: structure of the segments, one of `SHAPES`.
        error: the bound of the shrinking cone: how many changes of the location set a segment's
            line may be off at any key, 1 to 1,000,000. Smaller means more segments.
    """

    shape: str = "sieve"
    error: int = 100


def parse_options(raw: Mapping[str, str], base: IndexOptions | None = None) -> IndexOptions:
    """The record for what stands in an OPTIONS clause.

    Args:
        raw: names, in any case, to values as typed. A name that is missing keeps its value in base.
        base: what to start from; the defaults if None.

    Raises:
        InvalidInputError: an unknown or repeated name, or a value that is not allowed; the message
            lists what is.
    """
    given: dict[str, str] = {}
    for name, value in raw.items():
        folded = name.strip().lower()
        if folded not in OPTION_NAMES:
            raise InvalidInputError(
                "SIEVE_UNKNOWN_OPTION",
                f"unknown option {name!r}{_suggestion(folded, OPTION_NAMES)}; "
                f"options are: {', '.join(OPTION_NAMES)}",
            )
        if folded in given:
            raise InvalidInputError("SIEVE_INVALID_OPTION", f"option {folded!r} is given twice")
        given[folded] = value.strip()
    options = base or IndexOptions()
    if "shape" in given:
        options = replace(options, shape=_shape(given["shape"]))
    if "error" in given:
        options = replace(options, error=_error(given["error"]))
    return options


def _shape(text: str) -> str:
    shape = text.lower()
    if shape not in SHAPES:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"option 'shape' cannot be {text!r}{_suggestion(shape, SHAPES)}; "
            f"shapes are: {', '.join(SHAPES)}",
        )
    return shape


def _error(text: str) -> int:
    low, high = ERROR_RANGE
    if _INTEGER.fullmatch(text) is None or not low <= int(text) <= high:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"option 'error' cannot be {text!r}; it is an integer from {low} to {high}",
        )
    return int(text)


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word[:100], known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
