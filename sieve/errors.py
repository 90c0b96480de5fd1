"""The errors that Sieve raises. A message says what failed, where, and what to do next."""

from __future__ import annotations


class SieveError(Exception):
    """Base class of all errors that Sieve raises on purpose.

    Args:
        condition: error class shown to users in brackets, such as ``SIEVE_SYNTAX_ERROR``.
        message: what is wrong and what to do next; names the table, index, version or file.
    """

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(message)
        self.condition = condition
        self.message = message

    def __str__(self) -> str:
        return f"[{self.condition}] {self.message}"


class InvalidInputError(SieveError):
    """The user's statement or setting is wrong, and fails again if the user repeats it."""


class UnsupportedError(SieveError):
    """Sieve does not support part of a valid request: a type, a kind of table or a newer format."""


class RootRefusedError(UnsupportedError):
    """The folder that contains an index is not a permitted place for indexes of the database."""


class ConflictError(SieveError):
    """Another session published versions, dropped the index or moved the table meanwhile."""


class UnknownOutcomeError(SieveError):
    """A write may have taken effect. The caller must not delete files to which the write refers."""


class UnavailableError(SieveError):
    """A store, the metastore or a process did not answer. The same call may succeed later."""


class DeniedError(UnavailableError):
    """The user lacks a permission; with the permission, the same call can succeed."""


class CorruptError(SieveError):
    """A stored file is damaged: its length, its checksum or its structure is wrong."""


def corrupt_segment(problem: str) -> CorruptError:
    """The error for a segment whose payload violates the segment format."""
    return CorruptError(
        "SIEVE_CORRUPT_SEGMENT", f"a segment's payload {problem}; REFRESH the index FULL"
    )
