"""The store for ``file:`` URIs: creates a file if it is absent, by a hard link and fsync.

The store writes and syncs a draft, then links the draft to its final name. ``link(2)`` fails if the
name exists, so only one of two writers of the same file succeeds. A reader never sees an incomplete
file, because the draft is complete before the link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from sieve.errors import (
    CorruptError,
    DeniedError,
    InvalidInputError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sieve.storage.interface import READ_LIMIT, Entries, Entry, GoneError, split
from sieve.storage.permissions import Permissions, behind, checked, mode_for, without_acl
from sieve.storage.posix_names import gid_of, group_name, uid_of, user_name

_ACLS = ("system.posix_acl_access", "system.posix_acl_default")


@dataclass(frozen=True, slots=True)
class LocalStore:
    """`sieve.storage.interface.Store` over the system calls of the operating system."""

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        with _failures("read", uri), open(_path(uri), "rb") as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise CorruptError("SIEVE_FILE_TOO_LARGE", f"{uri} is longer than {limit} bytes")
        return data

    def size(self, uri: str) -> int | None:
        try:
            with _failures("look up", uri):
                status = os.stat(_path(uri))
        except GoneError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def exists(self, uri: str) -> bool:
        try:
            with _failures("look up", uri):
                os.stat(_path(uri))
        except GoneError:
            return False
        return True

    def create(self, uri: str, data: bytes) -> bool:
        path = _path(uri)
        folder = os.path.dirname(path)
        with _failures("create", uri):
            draft = _draft(folder, data)
        try:
            created = _link(draft, path, uri)
        finally:
            # The file also has its final name, so it remains after the draft's name is deleted.
            with contextlib.suppress(OSError):
                os.unlink(draft)
        if created:
            try:
                _sync(folder)
            except OSError as error:
                raise UnknownOutcomeError(
                    "SIEVE_STORE_UNKNOWN_OUTCOME",
                    f"{uri} was created but may not survive a crash: {error.strerror}",
                ) from error
        return created

    def list(self, uri: str) -> Entries:
        with _failures("list", uri), os.scandir(_path(uri)) as members:
            entries = []
            for member in members:
                # If somebody deletes a file during the listing, the result omits the file.
                with contextlib.suppress(FileNotFoundError):
                    status = member.stat(follow_symlinks=False)
                    is_dir = stat.S_ISDIR(status.st_mode)
                    size = 0 if is_dir else status.st_size
                    entries.append(Entry(member.name, size, _mtime_ms(status), is_dir))
        return sorted(entries, key=lambda entry: entry.name)

    def delete(self, uri: str) -> None:
        path = _path(uri)
        with contextlib.suppress(GoneError), _failures("delete", uri):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                shutil.rmtree(path, onerror=_unless_gone)
            else:
                os.unlink(path)
            _sync(os.path.dirname(path))

    def mkdirs(self, uri: str) -> None:
        with _failures("make folder", uri):
            _mkdirs(_path(uri))

    def now_ms(self, dir_uri: str) -> int:
        with _failures("probe the clock in", dir_uri):
            probe = os.path.join(_path(dir_uri), f".probe-{secrets.token_hex(16)}")
            descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                return _mtime_ms(os.fstat(descriptor))
            finally:
                os.close(descriptor)
                os.unlink(probe)

    def permissions(self, uri: str) -> Permissions:
        with _failures("read the permissions of", uri):
            path = os.path.realpath(_path(uri), strict=True)
            effective = _own_permissions(path)
            for folder in PurePosixPath(path).parents:
                effective = behind(effective, _own_permissions(str(folder)))
        return effective

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        path = _path(uri)
        with _failures("restrict", uri):
            is_dir = os.path.isdir(path)
            # Until the new owner and group are set, only the owner can access the file.
            os.chmod(path, 0o700 if is_dir else 0o600)
            for acl in _ACLS:
                if acl in _attributes(path):
                    os.removexattr(path, acl)
            _give(path, like)
            now = _own_permissions(path)
            mode = mode_for(like, now.owner, now.group, is_dir)
            os.chmod(path, mode)
            now = _own_permissions(path)
        return checked(now, mode, uri)


def _path(uri: str) -> str:
    scheme, authority, path = split(uri)
    if scheme != "file" or authority not in ("", "localhost"):
        raise InvalidInputError("SIEVE_INVALID_URI", f"not a local file: {uri!r}")
    return os.path.normpath(path)


def _draft(folder: str, data: bytes) -> str:
    """Writes and syncs a file with a unique name and with permissions derived from its folder."""
    draft = os.path.join(folder, f".draft-{secrets.token_hex(16)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            _inherit(draft, folder, is_dir=False)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    return draft


def _link(draft: str, path: str, uri: str) -> bool:
    try:
        os.link(draft, path)
    except OSError as error:
        # Over NFS, the reply to a successful link request can get lost; the NFS client's second
        # request then fails. The draft's link count shows whether the link was made.
        if _links(draft) == 2:
            return True
        if error.errno == errno.EEXIST:
            return False
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise UnsupportedError(
                "SIEVE_STORE_UNSUPPORTED",
                f"cannot create {uri} if absent: its file system has no hard links; set "
                "spark.sieve.path to a folder on one that has",
            ) from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise GoneError("SIEVE_FILE_GONE", f"the folder of {uri} is gone") from error
        if error.errno == errno.EACCES:
            raise _denied("create", uri, error) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise UnavailableError(
                "SIEVE_STORE_UNAVAILABLE", f"cannot create {uri}: {error.strerror}"
            ) from error
        raise UnknownOutcomeError(
            "SIEVE_STORE_UNKNOWN_OUTCOME",
            f"{uri} may or may not have been created: {error.strerror}",
        ) from error
    return True


def _unless_gone(_call: object, _path: str, failure: tuple[object, BaseException, object]) -> None:
    """Raises a failure; ignores a missing file, because another process may delete the folder."""
    if not isinstance(failure[1], FileNotFoundError):
        raise failure[1]


def _links(draft: str) -> int:
    try:
        return os.stat(draft).st_nlink
    except OSError:
        return 0


def _mkdirs(path: str) -> None:
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    _mkdirs(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return
    _inherit(path, above, is_dir=True)
    _sync(above)


def _inherit(path: str, folder: str, is_dir: bool) -> None:
    like = _own_permissions(folder)
    _give(path, like)
    now = _own_permissions(path)
    os.chmod(path, mode_for(like, now.owner, now.group, is_dir))


def _give(path: str, like: Permissions) -> None:
    """Gives a path the group and owner of ``like``; skips names that the host does not know.

    If the user lacks the permission for a change, the function skips the change.
    """
    for uid, gid in ((-1, gid_of(like.group)), (uid_of(like.owner), -1)):
        if (uid, gid) != (-1, -1):
            with contextlib.suppress(PermissionError):
                os.chown(path, uid, gid)


def _own_permissions(path: str) -> Permissions:
    status = os.stat(path)
    own = Permissions(
        user_name(status.st_uid), group_name(status.st_gid), stat.S_IMODE(status.st_mode) & 0o777
    )
    return without_acl(own) if _ACLS[0] in _attributes(path) else own


def _attributes(path: str) -> tuple[str, ...]:
    try:
        return tuple(os.listxattr(path))
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS):
            return ()
        raise


def _mtime_ms(status: os.stat_result) -> int:
    return status.st_mtime_ns // 1_000_000


def _sync(folder: str) -> None:
    """Calls fsync on a folder, to make the names in the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _denied(verb: str, uri: str, error: OSError) -> DeniedError:
    user = user_name(os.geteuid())
    return DeniedError(
        "SIEVE_PERMISSION_DENIED", f"user {user} may not {verb} {uri}: {error.strerror}"
    )


@contextmanager
def _failures(verb: str, uri: str) -> Iterator[None]:
    """Converts errors of the operating system to Sieve errors that name the URI."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GoneError("SIEVE_FILE_GONE", f"cannot {verb} {uri}: it is not there") from error
    except PermissionError as error:
        raise _denied(verb, uri, error) from error
    except OSError as error:
        raise UnavailableError(
            "SIEVE_STORE_UNAVAILABLE", f"cannot {verb} {uri}: {error.strerror}"
        ) from error
