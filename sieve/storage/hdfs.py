"""The store for HDFS: creates a file if it is absent, by an atomic rename that never overwrites.

The store writes a draft and renames it to the final name. HDFS's name node checks for the name and
renames in one atomic step, so only one of two writers of the same file succeeds. Other file systems
rename by a copy, or check for the name before they rename. On other file systems, two writers of
the same file can both succeed. Therefore this store refuses all schemes except ``hdfs:``.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError

from sieve.errors import UnknownOutcomeError
from sieve.storage.hadoop import HadoopFiles, failures, kind_of, refused, summary_of, write
from sieve.storage.interface import GoneError, join, parent
from sieve.storage.java_errors import denied
from sieve.storage.permissions import Permissions, behind, checked, mode_for, without_acl

ATOMIC_RENAME = frozenset({"hdfs"})
"""The URI schemes of file systems that rename without overwriting in one atomic step."""

_COMMAND_FAILED = "org.apache.hadoop.util.Shell$ExitCodeException"
_TAKEN = "org.apache.hadoop.fs.FileAlreadyExistsException"
# If a name node rejects a request with one of these exceptions, the request had no effect.
_NO_EFFECT = frozenset(
    {
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
        "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
        "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
    }
)


@dataclass(frozen=True, slots=True)
class HadoopStore(HadoopFiles):
    """`sieve.storage.interface.Store` over ``org.apache.hadoop.fs``.

    Attributes:
        schemes: the URI schemes that the store accepts. The file system of every accepted scheme
            must rename atomically.
    """

    schemes: frozenset[str] = ATOMIC_RENAME

    def create(self, uri: str, data: bytes) -> bool:
        fs, path = self.open(uri)
        folder = parent(uri)
        draft = self.path(join(folder, f".draft-{secrets.token_hex(16)}"))
        with failures("create", uri):
            like = _own_permissions(fs.getFileStatus(path.getParent()))
            try:
                self._write(fs, draft, data)
                self._inherit(fs, draft, like, is_dir=False)
            except (Py4JJavaError, Py4JNetworkError):
                _remove_quietly(fs, draft)
                raise
        return self._rename(fs, draft, path, uri)

    def mkdirs(self, uri: str) -> None:
        fs, path = self.open(uri)
        with failures("make folder", uri):
            self._mkdirs(fs, path)

    def touch(self, fs: Any, path: Any) -> None:
        self._write(fs, path, b"")

    def permissions(self, uri: str) -> Permissions:
        fs, path = self.open(uri)
        with failures("read the permissions of", uri):
            effective = _own_permissions(fs.getFileStatus(path))
            folder = path.getParent()
            while folder is not None:
                effective = behind(effective, _own_permissions(fs.getFileStatus(folder)))
                folder = folder.getParent()
        return effective

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        fs, path = self.open(uri)
        with failures("restrict", uri):
            status = fs.getFileStatus(path)
            is_dir = bool(status.isDirectory())
            # Until the new owner and group are set, only the owner can access the file.
            self._set_mode(fs, path, 0o700 if is_dir else 0o600)
            if status.hasAcl():
                fs.removeAcl(path)
            mode = self._inherit(fs, path, like, is_dir)
            now = _own_permissions(fs.getFileStatus(path))
        return checked(now, mode, uri)

    def _write(self, fs: Any, path: Any, data: bytes) -> None:
        # Unlike FileSystem.create, the builder of createFile does not create missing folders.
        stream = fs.createFile(path).overwrite(False).build()
        try:
            self._set_mode(fs, path, 0o600)
            write(stream, data)
            stream.hsync()
        finally:
            stream.close()

    def _rename(self, fs: Any, draft: Any, path: Any, uri: str) -> bool:
        """Renames the draft to `path` unless `path` exists; returns whether it renamed the draft.

        If the outcome is unknown, the draft is not deleted.
        """
        try:
            no_overwrite = self.jvm.java.lang.reflect.Array.newInstance(
                path.getClass().getClassLoader().loadClass("org.apache.hadoop.fs.Options$Rename"), 0
            )
            contexts = self.jvm.org.apache.hadoop.fs.FileContext
            contexts.getFileContext(path.toUri(), self.conf).rename(draft, path, no_overwrite)
        except (Py4JJavaError, Py4JNetworkError) as error:
            kind = kind_of(error)
            if kind == _TAKEN:
                return _was_moved(fs, draft, uri)
            if kind in _NO_EFFECT or denied(error):
                _remove_quietly(fs, draft)
                raise refused("create", uri, error) from error
            raise UnknownOutcomeError(
                "SIEVE_STORE_UNKNOWN_OUTCOME",
                f"{uri} may or may not have been created: {summary_of(error)}",
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
        """Sets the owner and group of ``like`` if permitted, then sets the mode from `mode_for`.

        Returns the new mode of the path.
        """
        for owner, group in ((None, like.group), (like.owner, None)):
            try:
                fs.setOwner(path, owner, group)
            except Py4JJavaError as error:
                # If a user may not change the owner, Hadoop's local file system reports a failed
                # shell command.
                if kind_of(error) != _COMMAND_FAILED and not denied(error):
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
    """Returns whether a rename failed only because an earlier attempt had succeeded.

    After a successful rename, the draft no longer exists. So the function tries to delete the
    draft, and returns True if there was no draft.
    """
    try:
        return not fs.delete(draft, False)
    except (Py4JJavaError, Py4JNetworkError) as error:
        raise UnknownOutcomeError(
            "SIEVE_STORE_UNKNOWN_OUTCOME",
            f"{uri} exists, but it is unknown which writer created it: {summary_of(error)}",
        ) from error


def _remove_quietly(fs: Any, draft: Any) -> None:
    """Deletes a draft that nothing refers to; ignores errors, because a draft does no harm."""
    with contextlib.suppress(Py4JJavaError, Py4JNetworkError):
        fs.delete(draft, False)
