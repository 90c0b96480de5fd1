"""Maps each error to its SQLSTATE, by the error's condition or else by the error's Python class.

Some clients do not show the condition, and distinguish errors by SQLSTATE. Spark's documentation
explains all codes in this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sieve.errors import (
    ConflictError,
    CorruptError,
    DeniedError,
    InvalidInputError,
    SieveError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)

INTERNAL: Final = "XX000"

OF_CONDITION: Final[Mapping[str, str]] = {
    "SIEVE_BAD_LITERAL": "22023",
    "SIEVE_CANCELLED": "HY008",
    "SIEVE_INDEX_EXISTS": "42710",
    "SIEVE_INDEX_NOT_USABLE": "55000",
    "SIEVE_INVALID_ARGUMENT": "22023",
    "SIEVE_INVALID_NAME": "42602",
    "SIEVE_INVALID_OPTION": "22023",
    "SIEVE_INVALID_SETTING": "22022",
    "SIEVE_METASTORE_REFUSED": "42501",
    "SIEVE_METASTORE_UNAVAILABLE": "08006",
    "SIEVE_REGISTRATION_TOO_LONG": "42622",
    "SIEVE_ROOT_REFUSED": "42501",
    "SIEVE_SYNTAX_ERROR": "42601",
    "SIEVE_UNKNOWN_COLUMN": "42703",
    "SIEVE_UNKNOWN_INDEX": "42704",
    "SIEVE_UNKNOWN_OPTION": "42K06",
    "SIEVE_UNKNOWN_TABLE": "42P01",
}

# The first entry that matches the error by ``isinstance`` determines the SQLSTATE.
_OF_KIND: Final[tuple[tuple[type[SieveError], str], ...]] = (
    (DeniedError, "42501"),
    (InvalidInputError, "42000"),
    (UnsupportedError, "0A000"),
    (ConflictError, "40001"),
    (UnknownOutcomeError, "08007"),
    (UnavailableError, "58030"),
    (CorruptError, "XX001"),
    (SieveError, INTERNAL),
)


def sql_state_of(error: SieveError) -> str:
    """The SQLSTATE of an error: five characters, of which the first two are its class."""
    by_kind = next(state for kind, state in _OF_KIND if isinstance(error, kind))
    return OF_CONDITION.get(error.condition, by_kind)
