"""The kinds of failure that Sieve reports; each names what failed, where, and what to do next."""

from __future__ import annotations


class SieveError(Exception):
    """Base of all errors raised on purpose.

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
    """The user's statement or setting is wrong; repeating it unchanged fails again."""


class UnsupportedError(SieveError):
    """The request is well-formed but not supported: a type, a kind of table, a newer format."""


class RootRefusedError(UnsupportedError):
    """An index is, or would be, in a folder whose indexes sessions do not use."""


class ConflictError(SieveError):
    """Another writer published first, and repeated attempts on top of its version failed."""


class UnknownOutcomeError(SieveError):
    """A write possibly had an effect; the files that it refers to must not be deleted."""


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
