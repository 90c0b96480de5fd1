"""Store: the interface of all reads and writes of index files, which tests replace.

A URI here is the string form of a Hadoop ``Path``: scheme, optional authority and an absolute path
that is *not* percent-encoded (``file:/data/a b``). Spark's writers take the same form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sieve.errors import InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from sieve.storage.permissions import Permissions

READ_LIMIT = 1 << 30
"""Maximum bytes of one read, unless the caller sets a lower limit."""

_URI = re.compile(r"([a-z][a-z0-9+.-]*):(?://([^/]*))?(/.*)", re.DOTALL)


class GoneError(UnavailableError):
    """The file or folder does not exist; a rebuild can restore it."""


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
    """A file system with create-if-absent. Files are immutable once created.

    Every method raises `InvalidInputError` for a URI that is ill-formed or of another machine, and
    `UnsupportedError` for a scheme that the store does not serve. Every method raises
    `UnavailableError` if the file system refuses or does not answer. After an `UnavailableError`
    nothing has changed, unless a method documents otherwise.
    """

    def size(self, uri: str) -> int | None:
        """Length of the file in bytes, or None if there is no file."""
        ...

    def exists(self, uri: str) -> bool:
        """Returns whether the URI names an existing file or folder."""
        ...

    def create(self, uri: str, data: bytes) -> bool:
        """Creates a file with this content if the file does not exist; atomic and durable.

        The file gets the group of its folder. Every user with access to the folder can read the
        file.

        Returns:
            True if this call created the file, False if it existed already.

        Raises:
            GoneError: the folder is missing. The method creates no folder, so that no writer
                creates a dropped index again.
            UnknownOutcomeError: the file was possibly created.
            UnsupportedError: this file system cannot create-if-absent.
        """
        ...

    def list(self, uri: str) -> Entries:
        """Members of a folder, sorted by name. Raises `GoneError` if there is no folder."""
        ...

    def delete(self, uri: str) -> None:
        """Deletes a file, or a folder with its contents; does not follow symbolic links.

        If the file is missing, there is no error. After a failure, a folder is possibly partially
        deleted.
        """
        ...

    def mkdirs(self, uri: str) -> None:
        """Creates a folder and its parents; a new folder gets group and mode of its parent."""
        ...

    def now_ms(self, dir_uri: str) -> int:
        """The current time of the file system, in ms since the epoch, from a new probe file."""
        ...

    def permissions(self, uri: str) -> Permissions:
        """The effective read permissions of a file or folder, including its parents and ACLs.

        Raises `GoneError` if the file or folder does not exist.
        """
        ...

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        """Restricts a file or folder of the index to the readers that ``like`` permits.

        Owner and group become those of ``like`` if the user is allowed to set them. Otherwise the
        mode is narrowed to compensate. Callers restrict a folder while the folder is still empty.

        Returns:
            The permissions in force afterwards.

        Raises:
            UnsupportedError: the file system did not accept the mode.
        """
        ...


def split(uri: str) -> tuple[str, str, str]:
    """Scheme, authority ("" if none) and absolute path of a URI.

    Raises:
        InvalidInputError: no scheme, a relative path, a NUL, or ``.`` or ``..`` as a path segment.
    """
    match = _URI.fullmatch(uri)
    if match is None or "\0" in uri:
        raise InvalidInputError("SIEVE_INVALID_URI", f"not an absolute URI: {uri!r}")
    scheme, authority, path = match.group(1), match.group(2) or "", match.group(3)
    if any(segment in (".", "..") for segment in path.split("/")):
        raise InvalidInputError("SIEVE_INVALID_URI", f"'.' or '..' in the path of {uri!r}")
    return scheme, authority, path


def join(uri: str, *names: str) -> str:
    """The URI of a member of a folder; each name is one level.

    Raises:
        InvalidInputError: a name that is empty, ``.``, ``..``, or contains ``/`` or NUL.
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
