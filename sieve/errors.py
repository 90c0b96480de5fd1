"""The kinds of failure Sieve reports; each says what failed, where, and what to do next."""

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
    """Well-formed, but not something Sieve can do: a type, a kind of table, a newer format."""


class RootRefusedError(UnsupportedError):
    """An index lies, or would lie, in a folder that sessions do not honour."""


class ConflictError(SieveError):
    """Another writer won, and re-planning on top of it did not succeed within its bounds."""


class UnknownOutcomeError(SieveError):
    """A write may or may not have taken effect; nothing it could refer to may be deleted."""


class UnavailableError(SieveError):
    """A store, the metastore or a process did not answer; the same call may succeed later."""


class DeniedError(UnavailableError):
    """Refused for want of a right; the same call succeeds once it is granted."""


class CorruptError(SieveError):
    """Bytes read back are not what was written: wrong length, checksum or structure."""


def corrupt_segment(problem: str) -> CorruptError:
    """The error for a segment whose payload breaks a rule of its format."""
    return CorruptError(
        "SIEVE_CORRUPT_SEGMENT", f"a segment's payload {problem}; REFRESH the index FULL"
    )
