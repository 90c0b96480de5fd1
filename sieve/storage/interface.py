"""All reads and writes of index files go through one small interface, so that tests can break it.

A URI here is the string form of a Hadoop ``Path``: scheme, optional authority and an absolute path
that is *not* percent-encoded (``file:/data/a b``), which is also what Spark's writers take.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sieve.errors import InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from sieve.storage.permissions import Permissions

READ_LIMIT = 1 << 30
"""Most bytes that one read brings into memory, unless the caller asks for fewer."""

_URI = re.compile(r"([a-z][a-z0-9+.-]*):(?://([^/]*))?(/.*)", re.DOTALL)


class GoneError(UnavailableError):
    """The file or folder is not there; a rebuild can bring it back."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of a folder: name, length in bytes, modification time in ms since the epoch."""

    name: str
    size: int
    mtime_ms: int
    is_dir: bool


Entries = list[Entry]


class Reader(Protocol):
    """What files are read from."""

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        """The whole file. Raises `GoneError` if absent, `CorruptError` beyond ``limit`` bytes."""
        ...


class Store(Reader, Protocol):
    """A file system with create-if-absent. Files, once made, are never changed.

    Every method raises `InvalidInputError` for a URI that is ill-formed or of another machine,
    `UnsupportedError` for a scheme that is not served, and `UnavailableError` when the file system
    refuses or does not answer; an `UnavailableError` means that nothing was changed, save where a
    method says otherwise.
    """

    def size(self, uri: str) -> int | None:
        """Length of the file in bytes, or None where there is no file."""
        ...

    def exists(self, uri: str) -> bool:
        """Whether there is a file or a folder."""
        ...

    def create(self, uri: str, data: bytes) -> bool:
        """Make a file with this content if there is none: atomic and durable.

        The file has the group of its folder and is open to those who may enter the folder.

        Returns:
            True when this call made the file, False when there was one already.

        Raises:
            GoneError: the folder is missing (it is not made: a dropped index stays dropped).
            UnknownOutcomeError: the file may or may not have come into being.
            UnsupportedError: this file system cannot create-if-absent.
        """
        ...

    def list(self, uri: str) -> Entries:
        """Members of a folder, sorted by name. Raises `GoneError` where there is no folder."""
        ...

    def delete(self, uri: str) -> None:
        """Remove a file, or a folder with all it holds; links are not followed.

        Absence is no error. A failure may leave part of a folder removed.
        """
        ...

    def mkdirs(self, uri: str) -> None:
        """Make a folder and those above it; new ones get group and mode of the folder above."""
        ...

    def now_ms(self, dir_uri: str) -> int:
        """The file system's own clock, ms since the epoch: the time it gives to a probe file."""
        ...

    def permissions(self, uri: str) -> Permissions:
        """Who can read a file or folder, with the folders above it and lists of rights counted in.

        Raises `GoneError` if absent.
        """
        ...

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        """Let nobody read a file or folder of ours whom ``like`` keeps out.

        Owner and group become those of ``like`` where the user may set them; else the mode is
        narrowed to make up for it. Call it on a folder while it is still empty.

        Returns:
            The permissions in force afterwards.

        Raises:
            UnsupportedError: the file system did not take the mode.
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
    """The URI of a member of a folder, one name a level.

    Raises:
        InvalidInputError: a name that is empty, ``.``, ``..``, or holds ``/`` or NUL.
    """
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise InvalidInputError("SIEVE_INVALID_URI", f"not a plain file name: {name!r}")
    return "/".join((uri.rstrip("/"), *names))


def parent(uri: str) -> str:
    """The URI of the folder that holds a file; the root folder's is itself."""
    scheme, authority, path = split(uri)
    above = path.rstrip("/").rpartition("/")[0] or "/"
    return f"{scheme}://{authority}{above}" if authority else f"{scheme}:{above}"


def base_name(uri: str) -> str:
    """The last segment of a URI's path; "" for the root folder."""
    return split(uri)[2].rstrip("/").rpartition("/")[2]
