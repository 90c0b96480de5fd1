"""The store for Hadoop's file systems, through the driver's JVM.

HDFS renames without overwriting in one step of the name node, which is what decides who creates a
file. A copying rename (object stores) or one that looks before it leaps decides nothing, so other
schemes are refused instead of trusted.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError

from sieve.errors import CorruptError, UnavailableError, UnknownOutcomeError, UnsupportedError
from sieve.permissions import Permissions, behind, mode_for, without_acl
from sieve.store import READ_LIMIT, Entries, Entry, GoneError, join, parent, split

ATOMIC_RENAME = frozenset({"hdfs"})
"""Schemes whose rename without overwrite is one atomic step."""

CHUNK = 4 << 20
"""Bytes that cross the bridge in one call."""

_GONE = frozenset(
    {
        "java.io.FileNotFoundException",
        "java.nio.file.NoSuchFileException",
        "org.apache.hadoop.fs.ParentNotDirectoryException",
    }
)
_TAKEN = "org.apache.hadoop.fs.FileAlreadyExistsException"
_DENIED = "org.apache.hadoop.security.AccessControlException"
# Answers of a name node that looked at the request and did nothing.
_NO_EFFECT = frozenset(
    {
        _DENIED,
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
        "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
        "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
    }
)


@dataclass(frozen=True, slots=True)
class HadoopStore:
    """`sieve.store.Store` over ``org.apache.hadoop.fs``.

    Attributes:
        jvm: py4j view of the driver's JVM.
        conf: the session's ``org.apache.hadoop.conf.Configuration``, a py4j object.
        schemes: schemes to serve; all of them must rename atomically.
    """

    jvm: Any
    conf: Any
    schemes: frozenset[str] = ATOMIC_RENAME

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        fs, path = self._open(uri)
        with _failures("read", uri):
            left = int(fs.getFileStatus(path).getLen())
            if left > limit:
                raise CorruptError("SIEVE_FILE_TOO_LARGE", f"{uri} is longer than {limit} bytes")
            stream = fs.open(path)
            chunks = []
            try:
                while left > 0:
                    size = min(left, CHUNK)
                    # The one call on every class path that hands a byte array over by value.
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

    def create(self, uri: str, data: bytes) -> bool:
        fs, path = self._open(uri)
        folder = parent(uri)
        draft = self._path(join(folder, f".draft-{secrets.token_hex(16)}"))
        with _failures("create", uri):
            like = _own_permissions(fs.getFileStatus(path.getParent()))
            try:
                self._write(fs, draft, data)
                self._inherit(fs, draft, like, is_dir=False)
            except (Py4JJavaError, Py4JNetworkError):
                _remove_quietly(fs, draft)
                raise
        return self._rename(fs, draft, path, uri)

    def list(self, uri: str) -> Entries:
        fs, path = self._open(uri)
        with _failures("list", uri):
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
        fs, path = self._open(uri)
        with contextlib.suppress(GoneError), _failures("delete", uri):
            if not fs.delete(path, True) and fs.exists(path):
                raise UnavailableError("SIEVE_STORE_UNAVAILABLE", f"{uri} could not be deleted")

    def mkdirs(self, uri: str) -> None:
        fs, path = self._open(uri)
        with _failures("make folder", uri):
            self._mkdirs(fs, path)

    def now_ms(self, dir_uri: str) -> int:
        fs, _ = self._open(dir_uri)
        probe = self._path(join(dir_uri, f".probe-{secrets.token_hex(16)}"))
        with _failures("probe the clock in", dir_uri):
            self._write(fs, probe, b"")
            try:
                return int(fs.getFileStatus(probe).getModificationTime())
            finally:
                fs.delete(probe, False)

    def permissions(self, uri: str) -> Permissions:
        fs, path = self._open(uri)
        with _failures("read the permissions of", uri):
            effective = _own_permissions(fs.getFileStatus(path))
            folder = path.getParent()
            while folder is not None:
                effective = behind(effective, _own_permissions(fs.getFileStatus(folder)))
                folder = folder.getParent()
        return effective

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        fs, path = self._open(uri)
        with _failures("restrict", uri):
            status = fs.getFileStatus(path)
            is_dir = bool(status.isDirectory())
            # Closed to all but the owner while owner and group change.
            self._set_mode(fs, path, 0o700 if is_dir else 0o600)
            if status.hasAcl():
                fs.removeAcl(path)
            mode = self._inherit(fs, path, like, is_dir)
            now = _own_permissions(fs.getFileStatus(path))
        if now.mode & ~mode:
            raise UnsupportedError(
                "SIEVE_STORE_PERMISSIONS",
                f"{uri} keeps mode {now.mode:o} instead of {mode:o}: its file system does not "
                "take permissions; set spark.sieve.path to a folder on one that does",
            )
        return now

    def _open(self, uri: str) -> tuple[Any, Any]:
        """The file system and the path of a URI, or a refusal of its scheme."""
        scheme, _, _ = split(uri)
        if scheme not in self.schemes:
            raise UnsupportedError(
                "SIEVE_STORE_UNSUPPORTED",
                f"indexes cannot be kept on {scheme}: ({uri}), where two writers could both make "
                "the same version; set spark.sieve.path to a folder on hdfs: or file:",
            )
        path = self._path(uri)
        with _failures("reach", uri):
            return path.getFileSystem(self.conf), path

    def _path(self, uri: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(uri)

    def _status(self, uri: str) -> Any:
        fs, path = self._open(uri)
        try:
            with _failures("look up", uri):
                return fs.getFileStatus(path)
        except GoneError:
            return None

    def _write(self, fs: Any, path: Any, data: bytes) -> None:
        # Unlike FileSystem.create, this builder makes no missing folders.
        stream = fs.createFile(path).overwrite(False).build()
        try:
            self._set_mode(fs, path, 0o600)
            for start in range(0, len(data), CHUNK):
                stream.write(data[start : start + CHUNK])
            stream.hsync()
        finally:
            stream.close()

    def _rename(self, fs: Any, draft: Any, path: Any, uri: str) -> bool:
        """Give the draft its name unless that is taken; a draft in doubt is left where it is."""
        try:
            no_overwrite = self.jvm.java.lang.reflect.Array.newInstance(
                path.getClass().getClassLoader().loadClass("org.apache.hadoop.fs.Options$Rename"), 0
            )
            contexts = self.jvm.org.apache.hadoop.fs.FileContext
            contexts.getFileContext(path.toUri(), self.conf).rename(draft, path, no_overwrite)
        except (Py4JJavaError, Py4JNetworkError) as error:
            kind = _kind(error)
            if kind == _TAKEN:
                return _was_moved(fs, draft, uri)
            if kind in _NO_EFFECT:
                _remove_quietly(fs, draft)
                raise UnavailableError(
                    "SIEVE_STORE_UNAVAILABLE", f"cannot create {uri}: {_summary(error)}"
                ) from error
            raise UnknownOutcomeError(
                "SIEVE_STORE_UNKNOWN_OUTCOME",
                f"{uri} may or may not have been created: {_summary(error)}",
            ) from error
        return True

    def _mkdirs(self, fs: Any, path: Any) -> None:
        if fs.exists(path):
            if not fs.getFileStatus(path).isDirectory():
                raise GoneError("SIEVE_FILE_GONE", f"{path.toString()} is not a folder")
            return
        above = path.getParent()
        self._mkdirs(fs, above)
        fs.mkdirs(path, self.jvm.org.apache.hadoop.fs.permission.FsPermission("700"))
        self._inherit(fs, path, _own_permissions(fs.getFileStatus(above)), is_dir=True)

    def _inherit(self, fs: Any, path: Any, like: Permissions, is_dir: bool) -> int:
        """Owner and group of ``like``, each where this user may set it, and the mode that fits."""
        for owner, group in ((None, like.group), (like.owner, None)):
            try:
                fs.setOwner(path, owner, group)
            except Py4JJavaError as error:
                # Local file systems report a refused chown as a failed command.
                if _kind(error) not in (_DENIED, "org.apache.hadoop.util.Shell$ExitCodeException"):
                    raise
        now = _own_permissions(fs.getFileStatus(path))
        mode = mode_for(like, now.owner, now.group, is_dir)
        self._set_mode(fs, path, mode)
        return mode

    def _set_mode(self, fs: Any, path: Any, mode: int) -> None:
        fs.setPermission(path, self.jvm.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}"))


def _own_permissions(status: Any) -> Permissions:
    mode = int(status.getPermission().toShort()) & 0o777
    own = Permissions(status.getOwner(), status.getGroup(), mode)
    return without_acl(own) if status.hasAcl() else own


def _was_moved(fs: Any, draft: Any, uri: str) -> bool:
    """Whether a rename that met a taken name is the repeat of one of ours that had succeeded.

    Then the draft is gone already, and deleting it says so.
    """
    try:
        return not fs.delete(draft, False)
    except (Py4JJavaError, Py4JNetworkError) as error:
        raise UnknownOutcomeError(
            "SIEVE_STORE_UNKNOWN_OUTCOME",
            f"{uri} exists, but may be ours or another's: {_summary(error)}",
        ) from error


def _remove_quietly(fs: Any, draft: Any) -> None:
    """Drop a draft that nothing refers to; one that stays is only litter."""
    with contextlib.suppress(Py4JJavaError, Py4JNetworkError):
        fs.delete(draft, False)


def _kind(error: Exception) -> str:
    """Class name of the Java exception; "" when the bridge itself failed."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName())
    return ""


def _summary(error: Exception) -> str:
    """First line of a Java exception; its stack trace stays in the cause."""
    text = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    return text.partition("\n")[0][:300]


@contextmanager
def _failures(verb: str, uri: str) -> Iterator[None]:
    """Turn Java exceptions, and the loss of the bridge, into our errors, naming the file."""
    try:
        yield
    except (Py4JJavaError, Py4JNetworkError) as error:
        if _kind(error) in _GONE:
            raise GoneError("SIEVE_FILE_GONE", f"cannot {verb} {uri}: it is not there") from error
        raise UnavailableError(
            "SIEVE_STORE_UNAVAILABLE", f"cannot {verb} {uri}: {_summary(error)}"
        ) from error
