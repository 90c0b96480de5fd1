"""Store: the interface for all reads and writes of index files; tests use stores of their own.

A URI here is the string form of a Hadoop ``Path``: scheme, optional authority and an absolute path
that is *not* percent-encoded (``file:/data/a b``). Spark's writers accept the same form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sieve.errors import InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from sieve.storage.permissions import Permissions

READ_LIMIT = 1 << 30
"""Default limit for the bytes of one read."""

_URI = re.compile(r"([a-z][a-z0-9+.-]*):(?://([^/]*))?(/.*)", re.DOTALL)


class GoneError(UnavailableError):
    """The file or folder does not exist. Building the index again can restore it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of a folder: name, length in bytes, modification time in ms since the epoch."""

    name: str
    size: int
    mtime_ms: int
    is_dir: bool


Entries = list[Entry]


class Reader(Protocol):
    """A source of files."""

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        """Reads a file. Raises `GoneError` if absent, `CorruptError` if longer than ``limit``."""
        ...


class Store(Reader, Protocol):
    """A file system that can create a file if absent. Files are immutable after creation.

    Every method raises `InvalidInputError` for a URI that is malformed or names another machine,
    and `UnsupportedError` for a scheme that the store does not accept. Every method raises
    `UnavailableError` if the file system refuses or does not answer. Unless a method documents
    otherwise, nothing has changed after an `UnavailableError`.
    """

    def size(self, uri: str) -> int | None:
        """Length of the file in bytes, or None if no file has this URI."""
        ...

    def exists(self, uri: str) -> bool:
        """Returns whether the URI names an existing file or folder."""
        ...

    def create(self, uri: str, data: bytes) -> bool:
        """Creates a file with this content, atomically and durably, if the file does not exist.

        The file gets the group of its folder. Every user with access to the folder can read the
        file.

        Returns:
            True if this call created the file, False if the file existed already.

        Raises:
            GoneError: the folder is missing. The method creates no folder, so that no writer
                recreates the folder of a dropped index.
            UnknownOutcomeError: the method may have created the file.
            UnsupportedError: this file system has no atomic create-if-absent.
        """
        ...

    def list(self, uri: str) -> Entries:
        """Members of a folder, sorted by name. Raises `GoneError` if the folder is missing."""
        ...

    def delete(self, uri: str) -> None:
        """Deletes a file, or a folder with its contents; does not follow symbolic links.

        A missing file is not an error. After a failure, a part of the folder may already be gone.
        """
        ...

    def mkdirs(self, uri: str) -> None:
        """Creates a folder and its parents. A new folder gets the group and mode of its parent."""
        ...

    def now_ms(self, dir_uri: str) -> int:
        """The file system's current time, in ms since the epoch, read from a new probe file."""
        ...

    def permissions(self, uri: str) -> Permissions:
        """The effective read permissions of a file or folder, including its parents and ACLs.

        Raises `GoneError` if the file or folder does not exist.
        """
        ...

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        """Restricts a file or folder of the index to the readers that ``like`` permits.

        The method sets the owner and group of ``like`` if the user is allowed to set them.
        Otherwise, the method sets a narrower mode to compensate. Callers restrict a folder while
        the folder is still empty.

        Returns:
            The new permissions.

        Raises:
            UnsupportedError: the file system did not accept the mode.
        """
        ...


def split(uri: str) -> tuple[str, str, str]:
    """Scheme, authority ("" if none) and absolute path of a URI.

    Raises:
        InvalidInputError: the URI has no scheme, a relative path, a NUL, or the path segment ``.``
            or ``..``.
    """
    match = _URI.fullmatch(uri)
    if match is None or "\0" in uri:
        raise InvalidInputError("SIEVE_INVALID_URI", f"not an absolute URI: {uri!r}")
    scheme, authority, path = match.group(1), match.group(2) or "", match.group(3)
    if any(segment in (".", "..") for segment in path.split("/")):
        raise InvalidInputError("SIEVE_INVALID_URI", f"'.' or '..' in the path of {uri!r}")
    return scheme, authority, path


def join(uri: str, *names: str) -> str:
    """The URI of a member of a folder; each name is one path segment.

    Raises:
        InvalidInputError: a name is empty, ``.`` or ``..``, or contains ``/`` or NUL.
    """
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise InvalidInputError("SIEVE_INVALID_URI", f"not a plain file name: {name!r}")
    return "/".join((uri.rstrip("/"), *names))


def parent(uri: str) -> str:
    """The URI of a file's folder; the root folder is its own parent."""
    scheme, authority, path = split(uri)
    above = path.rstrip("/").rpartition("/")[0] or "/"
    return f"{scheme}://{authority}{above}" if authority else f"{scheme}:{above}"


def base_name(uri: str) -> str:
    """The last segment of a URI's path; "" for the root folder."""
    return split(uri)[2].rstrip("/").rpartition("/")[2]
