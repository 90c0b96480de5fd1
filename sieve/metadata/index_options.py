"""The OPTIONS clause of an index: its option names, allowed values, and parser."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sieve.errors import InvalidInputError

SHAPES = ("auto", "intervals", "map", "sieve")
GRANULARITIES = ("auto", "file", "range")
REFRESHES = ("auto", "manual")
ERROR_RANGE = (1, 1_000_000)
PAYBACK_RANGE = (1, 1_000_000)
_PAYBACK = 10
OPTION_NAMES = ("budget", "error", "granularity", "payback", "refresh", "shape")
AUTO = "auto"
"""With this budget, a build adds bytes to the index only if the bytes save enough reads."""
MANUAL = "manual"
MAP_BUDGET = "50%"
"""The default budget of the shape ``map``: up to four bytes per key for keys of eight bytes."""

SMALLEST_SHARE = 64 << 10
"""The minimum size, in bytes, of a budget that is given in percent. A smaller index would save too
little space to be worthwhile."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_BUDGET = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(%|[kmgt]?b)", re.ASCII | re.IGNORECASE)
_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The options with which an index is built and refreshed.

    Attributes:
        shape: the data structure of the segments, one of `SHAPES`. With ``auto``, the build chooses
            the better of ``intervals`` and ``map``.
        budget: the maximum size of the runs. The value is ``auto``, a size (``64MB``), or a
            percentage of the uncompressed indexed values (``1%``; at least 64 KB). The shape
            ``sieve`` has no budget. The default of the shape ``map`` is 50%.
        error: for the shape ``sieve`` only, the error bound of the shrinking-cone algorithm, from 1
            to 1,000,000. At any key, a segment's line may be off by at most ``error`` changes of
            the location set. A smaller bound gives more segments.
        payback: for the budget ``auto`` only, a number of queries, from 1 to 1,000,000. Within
            ``payback`` queries, each byte of the index must save reading one byte of the table.
        granularity: the kind of location that the index distinguishes, one of `GRANULARITIES`:
            whole files, or byte ranges of large files, such as row groups. With ``auto``, the build
            chooses the kind with which queries read fewer bytes.
        refresh: whether a write to the table refreshes the index, one of `REFRESHES`. With
            ``auto``, every driver with Sieve refreshes the index after its writes. With ``manual``,
            a driver refreshes the index only if its session sets spark.sieve.refresh.auto. The
            option ``refresh`` does not affect the runs.
    """

    shape: str = "auto"
    budget: str = AUTO
    error: int = 100
    payback: int = _PAYBACK
    granularity: str = AUTO
    refresh: str = MANUAL

    @property
    def automatic(self) -> bool:
        """Whether the build chooses the size of the index (budget ``auto``)."""
        return self.budget == AUTO and self.shape != "map" and not self.every_key

    @property
    def every_key(self) -> bool:
        """Whether the index stores every key, without a budget, as the shape ``sieve`` does."""
        return self.shape == "sieve"

    def budget_bytes(self, column_bytes: int) -> int:
        """Returns the budget in bytes for a column of this size; refuses the budget ``auto``."""
        number, unit = _parts(self.budget)
        if unit == "%":
            return max(SMALLEST_SHARE, int(number * column_bytes / 100))
        return int(number * _UNITS[unit])


def parse_options(raw: Mapping[str, str], base: IndexOptions | None = None) -> IndexOptions:
    """Parses the names and values of an OPTIONS clause.

    Args:
        raw: a mapping from option names to values, as the user typed them. A missing option keeps
            its value in ``base``.
        base: the options to change, or None to change the default options.

    Raises:
        InvalidInputError: a name is unknown or repeated, or a value is invalid. The message lists
            the valid names or values.
    """
    given = _known(raw)
    options = base or IndexOptions()
    shape = given.get("shape", options.shape).lower()
    if "error" in given and "shape" not in given:
        # Only the shape ``sieve`` has an error bound, so the option ``error`` implies this shape.
        shape = "sieve"
    _refuse_foreign(given, shape)
    if shape == "map":
        if given.get("budget", AUTO if shape != options.shape else "").lower() == AUTO:
            given["budget"] = MAP_BUDGET
    elif "payback" in given:
        # Only the budget ``auto`` has a payback, so the option ``payback`` implies this budget.
        given.setdefault("budget", AUTO)
    read = _read(given | {"shape": shape}, options)
    return read if read.automatic else replace(read, payback=_PAYBACK)


def stored_options(raw: Mapping[str, str]) -> IndexOptions:
    """Parses a manifest's options, which may include options that do not apply to the shape.

    Raises:
        InvalidInputError: for the same reasons as in `parse_options`.
    """
    return _read(_known(raw), IndexOptions())


def _refuse_foreign(given: Mapping[str, str], shape: str) -> None:
    """Raises InvalidInputError for an option that does not apply to the shape or the budget."""
    foreign = {"sieve": ("budget", "payback"), "map": ("error", "payback")}.get(shape, ("error",))
    for name in foreign if shape in SHAPES else ():
        if name in given:
            raise InvalidInputError(
                "SIEVE_INVALID_OPTION",
                f"shape {shape!r} has no option {name!r}: sieve has error, the others have budget, "
                "and all but map have payback",
            )
    if "payback" in given and given.get("budget", AUTO).lower() != AUTO:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"budget {given['budget']!r} has no option 'payback', which prices the bytes of the "
            "budget 'auto'",
        )


def _known(raw: Mapping[str, str]) -> dict[str, str]:
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
    return given


def _read(given: Mapping[str, str], options: IndexOptions) -> IndexOptions:
    if "shape" in given:
        options = replace(options, shape=_word("shape", given["shape"], SHAPES))
    if "granularity" in given:
        granularity = _word("granularity", given["granularity"], GRANULARITIES)
        options = replace(options, granularity=granularity)
    if "refresh" in given:
        options = replace(options, refresh=_word("refresh", given["refresh"], REFRESHES))
    if "budget" in given:
        options = replace(options, budget=_budget(given["budget"]))
    if "error" in given:
        options = replace(options, error=_integer("error", given["error"], ERROR_RANGE))
    if "payback" in given:
        payback = _integer("payback", given["payback"], PAYBACK_RANGE)
        options = replace(options, payback=payback)
    return options


def _word(name: str, text: str, words: tuple[str, ...]) -> str:
    word = text.lower()
    if word not in words:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"option {name!r} cannot be {text!r}{_suggestion(word, words)}; "
            f"it is one of: {', '.join(words)}",
        )
    return word


def _budget(text: str) -> str:
    if text.lower() == AUTO:
        return AUTO
    try:
        number, unit = _parts(text)
    except ValueError:
        number, unit = 0.0, ""
    if number <= 0 or (unit == "%" and number > 100):
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"option 'budget' cannot be {text!r}; it is 'auto', a share of the column, above 0% "
            "and at most 100%, such as '1%', or a size, such as '64MB' (units: B, KB, MB, GB, TB)",
        )
    return f"{text[: -len(unit)].strip()}{unit.upper()}"


def _parts(text: str) -> tuple[float, str]:
    """Returns the number and the unit of a budget; raises ValueError for malformed text."""
    match = _BUDGET.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match[1]), match[2].lower()


def _integer(name: str, text: str, bounds: tuple[int, int]) -> int:
    low, high = bounds
    if _INTEGER.fullmatch(text) is None or not low <= int(text) <= high:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"option {name!r} cannot be {text!r}; it is an integer from {low} to {high}",
        )
    return int(text)


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word[:100], known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
