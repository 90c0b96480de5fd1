"""The base class of stores that call Hadoop's FileSystem API through py4j.

The way to create a file atomically depends on the file system, so the modules `hdfs` and `s3`
implement `create` in subclasses.
"""

from __future__ import annotations

import contextlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError

from sieve.errors import CorruptError, DeniedError, UnavailableError, UnsupportedError
from sieve.storage.interface import READ_LIMIT, Entries, Entry, GoneError, join, split
from sieve.storage.java_errors import denied

CHUNK = 4 << 20
"""The maximum number of bytes that one py4j call transfers."""

_GONE = frozenset(
    {
        "java.io.FileNotFoundException",
        "java.nio.file.NoSuchFileException",
        "org.apache.hadoop.fs.ParentNotDirectoryException",
    }
)


@dataclass(frozen=True, slots=True)
class HadoopFiles(ABC):
    """The methods of `sieve.storage.interface.Store` that are the same for all Hadoop file systems.

    Attributes:
        jvm: the py4j view of the driver's JVM.
        conf: the session's ``org.apache.hadoop.conf.Configuration``, a py4j object.
        schemes: the URI schemes that the store accepts.
    """

    jvm: Any
    conf: Any
    schemes: frozenset[str]

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        fs, path = self.open(uri)
        with failures("read", uri):
            left = int(fs.getFileStatus(path).getLen())
            if left > limit:
                raise CorruptError("SIEVE_FILE_TOO_LARGE", f"{uri} is longer than {limit} bytes")
            stream = fs.open(path)
            chunks = []
            try:
                while left > 0:
                    size = min(left, CHUNK)
                    # Spark's class path always contains IOUtils, and py4j copies the byte array
                    # into Python.
                    chunks.append(self.jvm.org.apache.commons.io.IOUtils.toByteArray(stream, size))
                    left -= size
            finally:
                stream.close()
        return b"".join(chunks)

    def size(self, uri: str) -> int | None:
        status = self._status(uri)
        return None if status is None or status.isDirectory() else int(status.getLen())

    def exists(self, uri: str) -> bool:
        return self._status(uri) is not None

    def list(self, uri: str) -> Entries:
        fs, path = self.open(uri)
        with failures("list", uri):
            if not fs.getFileStatus(path).isDirectory():
                raise GoneError("SIEVE_FILE_GONE", f"cannot list {uri}: it is not a folder")
            entries = [
                Entry(
                    name=status.getPath().getName(),
                    size=int(status.getLen()) if status.isFile() else 0,
                    mtime_ms=int(status.getModificationTime()),
                    is_dir=bool(status.isDirectory()),
                )
                for status in fs.listStatus(path)
            ]
        return sorted(entries, key=lambda entry: entry.name)

    def delete(self, uri: str) -> None:
        fs, path = self.open(uri)
        with contextlib.suppress(GoneError), failures("delete", uri):
            if not fs.delete(path, True) and fs.exists(path):
                raise UnavailableError("SIEVE_STORE_UNAVAILABLE", f"{uri} could not be deleted")

    def now_ms(self, dir_uri: str) -> int:
        fs, _ = self.open(dir_uri)
        probe = self.path(join(dir_uri, f".probe-{secrets.token_hex(16)}"))
        with failures("probe the clock in", dir_uri):
            self.touch(fs, probe)
            try:
                return int(fs.getFileStatus(probe).getModificationTime())
            finally:
                fs.delete(probe, False)

    @abstractmethod
    def touch(self, fs: Any, path: Any) -> None:
        """Creates an empty file; the file's folder must exist."""

    def open(self, uri: str) -> tuple[Any, Any]:
        """Returns a URI's file system and path.

        Raises UnsupportedError if the store does not accept the URI's scheme.
        """
        scheme, _, _ = split(uri)
        if scheme not in self.schemes:
            raise UnsupportedError(
                "SIEVE_STORE_UNSUPPORTED",
                f"indexes cannot be kept on {scheme}: ({uri}), where two writers could both make "
                "the same version; set spark.sieve.path to a folder on hdfs:, s3a: or file:",
            )
        path = self.path(uri)
        with failures("reach", uri):
            return path.getFileSystem(self.conf), path

    def path(self, uri: str) -> Any:
        """Returns the Hadoop ``Path`` object of a URI."""
        return self.jvm.org.apache.hadoop.fs.Path(uri)

    def _status(self, uri: str) -> Any:
        fs, path = self.open(uri)
        try:
            with failures("look up", uri):
                return fs.getFileStatus(path)
        except GoneError:
            return None


def write(stream: Any, data: bytes) -> None:
    """Writes bytes to a Java output stream, `CHUNK` bytes per py4j call."""
    for start in range(0, len(data), CHUNK):
        stream.write(data[start : start + CHUNK])


def kind_of(error: Exception) -> str:
    """Returns the class name of a Java exception; "" if the py4j call itself failed."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName())
    return ""


def summary_of(error: Exception) -> str:
    """Returns the first line of a Java exception, at most 300 characters."""
    text = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    return text.partition("\n")[0][:300]


@contextmanager
def failures(verb: str, uri: str) -> Iterator[None]:
    """Converts Java exceptions and py4j connection errors to Sieve errors that name the URI."""
    try:
        yield
    except (Py4JJavaError, Py4JNetworkError) as error:
        if kind_of(error) in _GONE:
            raise GoneError("SIEVE_FILE_GONE", f"cannot {verb} {uri}: it is not there") from error
        raise refused(verb, uri, error) from error


def refused(verb: str, uri: str, error: Exception) -> UnavailableError:
    """Returns the error for a call that had no effect; DeniedError if a permission is missing."""
    if denied(error):
        return DeniedError(
            "SIEVE_PERMISSION_DENIED", f"this user may not {verb} {uri}: {summary_of(error)}"
        )
    return UnavailableError("SIEVE_STORE_UNAVAILABLE", f"cannot {verb} {uri}: {summary_of(error)}")
