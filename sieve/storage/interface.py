"""Store: the interface through which Sieve reads and writes all index files.

A URI in this package is the string form of a Hadoop ``Path``: a scheme, an optional authority and
an absolute path that is *not* percent-encoded (``file:/data/a b``). Spark's file writers accept
URIs in this form, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sieve.errors import InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from sieve.storage.permissions import Permissions

READ_LIMIT = 1 << 30
"""The default limit on the size of a file to read, in bytes."""

_URI = re.compile(r"([a-z][a-z0-9+.-]*):(?://([^/]*))?(/.*)", re.DOTALL)


class GoneError(UnavailableError):
    """The file or folder does not exist. If the file is part of an index, rebuild the index."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder in a folder.

    The size is in bytes, and the modification time in ms since the epoch.
    """

    name: str
    size: int
    mtime_ms: int
    is_dir: bool


Entries = list[Entry]


class Reader(Protocol):
    """An object that can read files."""

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        """Reads a file; raises `GoneError` if absent, `CorruptError` if longer than ``limit``."""
        ...


class Store(Reader, Protocol):
    """A file system that can atomically create a file if it is absent; files never change later.

    Every method raises `InvalidInputError` if the URI is malformed or names another machine. Every
    method raises `UnsupportedError` if the store does not accept the URI's scheme. Every method
    raises `UnavailableError` if the file system refuses the request or does not answer. A method
    that raises `UnavailableError` has changed nothing, except where its docstring says otherwise.
    """

    def size(self, uri: str) -> int | None:
        """Returns the length of a file in bytes, or None if no file has this URI."""
        ...

    def exists(self, uri: str) -> bool:
        """Returns whether a file or folder with this URI exists."""
        ...

    def create(self, uri: str, data: bytes) -> bool:
        """Creates a file with this content, atomically and durably, if the file does not exist.

        The file gets the group of its folder. Every user who can read the folder can read the file.

        Returns:
            True if this call created the file, False if the file already existed.

        Raises:
            GoneError: the file's folder does not exist. The method does not create the folder,
                because a writer must not recreate the folder of a dropped index.
            UnknownOutcomeError: the method may or may not have created the file.
            UnsupportedError: this file system cannot atomically create a file if it is absent.
        """
        ...

    def list(self, uri: str) -> Entries:
        """Returns a folder's entries, sorted by name; raises `GoneError` if there is no folder."""
        ...

    def delete(self, uri: str) -> None:
        """Deletes a file, or a folder with its contents; does not follow symbolic links.

        If the file does not exist, the method does nothing. If the method fails, it may have
        deleted some files of the folder.
        """
        ...

    def mkdirs(self, uri: str) -> None:
        """Creates a folder and missing parents; a new folder gets its parent's group and mode."""
        ...

    def now_ms(self, dir_uri: str) -> int:
        """Returns the file system's current time, in ms since the epoch, taken from a new file."""
        ...

    def permissions(self, uri: str) -> Permissions:
        """Returns the effective read permissions of a file or folder.

        Effective permissions also depend on the parent folders and on access control lists (ACLs).

        Raises `GoneError` if the file or folder does not exist.
        """
        ...

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        """Restricts a file or folder of an index to users whom ``like`` permits to read.

        The method copies the owner and the group of ``like`` to the file if the user may set them.
        If the user may not set the owner and group, the method sets a narrower mode. The narrower
        mode keeps out users whom ``like`` excludes. Callers restrict a folder before they write any
        file to it.

        Returns:
            The new permissions of the file or folder.

        Raises:
            UnsupportedError: the file system did not set the mode.
        """
        ...


def split(uri: str) -> tuple[str, str, str]:
    """Returns the scheme, the authority (or "") and the absolute path of a URI.

    Raises:
        InvalidInputError: the URI lacks a scheme, has a relative path, contains a NUL, or contains
            the path segment ``.`` or ``..``.
    """
    match = _URI.fullmatch(uri)
    if match is None or "\0" in uri:
        raise InvalidInputError("SIEVE_INVALID_URI", f"not an absolute URI: {uri!r}")
    scheme, authority, path = match.group(1), match.group(2) or "", match.group(3)
    if any(segment in (".", "..") for segment in path.split("/")):
        raise InvalidInputError("SIEVE_INVALID_URI", f"'.' or '..' in the path of {uri!r}")
    return scheme, authority, path


def join(uri: str, *names: str) -> str:
    """Returns the URI of a file below the folder ``uri``; each name is one path segment.

    Raises:
        InvalidInputError: a name is empty, is ``.`` or ``..``, or contains ``/`` or NUL.
    """
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise InvalidInputError("SIEVE_INVALID_URI", f"not a plain file name: {name!r}")
    return "/".join((uri.rstrip("/"), *names))


def parent(uri: str) -> str:
    """Returns the URI of a file's folder; the root folder is its own parent."""
    scheme, authority, path = split(uri)
    above = path.rstrip("/").rpartition("/")[0] or "/"
    return f"{scheme}://{authority}{above}" if authority else f"{scheme}:{above}"


def base_name(uri: str) -> str:
    """Returns the last segment of a URI's path; "" for the root folder."""
    return split(uri)[2].rstrip("/").rpartition("/")[2]
