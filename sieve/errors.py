"""The errors that Sieve raises. A message says what failed, where, and what to do next."""

from __future__ import annotations


class SieveError(Exception):
    """Base class of all errors that Sieve raises on purpose.

    Args:
        condition: error class shown to users in brackets, such as ``SIEVE_SYNTAX_ERROR``.
        message: what is wrong, naming table, index, version or file, and what to do next.
    """

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(message)
        self.condition = condition
        self.message = message

    def __str__(self) -> str:
        return f"[{self.condition}] {self.message}"


class InvalidInputError(SieveError):
    """The user's statement or setting is wrong. The same statement or setting fails again."""


class UnsupportedError(SieveError):
    """The request is well-formed but not supported: a type, a kind of table, a newer format."""


class RootRefusedError(UnsupportedError):
    """An index is, or would be, in a folder that must not contain indexes of its database."""


class ConflictError(SieveError):
    """Another writer published first, and repeated attempts on top of its version failed."""


class UnknownOutcomeError(SieveError):
    """A write may have taken effect; the caller must not delete files that the write refers to."""


class UnavailableError(SieveError):
    """A store, the metastore or a process did not answer; the same call may succeed later."""


class DeniedError(UnavailableError):
    """A permission is missing; the same call succeeds once the permission is granted."""


class CorruptError(SieveError):
    """Stored bytes differ from the bytes that were written: wrong length, checksum or structure."""


def corrupt_segment(problem: str) -> CorruptError:
    """The error for a segment whose payload breaks a rule of its format."""
    return CorruptError(
        "SIEVE_CORRUPT_SEGMENT", f"a segment's payload {problem}; REFRESH the index FULL"
    )
