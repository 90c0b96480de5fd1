"""The store for S3-compatible object stores: creates a file if it is absent, by a conditional put.

The put has the header ``If-None-Match: *``. Hadoop can send ``If-None-Match`` since release 3.4.2.
Some servers ignore the condition and accept every put, so the store tests a bucket before the first
write to the bucket. This store never renames objects, because a rename on S3 is a copy. So two
writers could both rename to the same name.
"""

from __future__ import annotations

import contextlib
import logging
import random
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from sieve.errors import UnavailableError, UnknownOutcomeError, UnsupportedError
from sieve.storage.hadoop import HadoopFiles, failures, refused, summary_of, write
from sieve.storage.interface import GoneError, join, parent, split
from sieve.storage.java_errors import denied
from sieve.storage.permissions import Permissions

log = logging.getLogger(__name__)

IF_ABSENT: Final = "fs.option.create.conditional.overwrite"
"""Hadoop's name for a conditional put, both as an option of a create call and as a path
capability."""

PAUSES: Final = (0.1, 0.4, 1.6)
"""The mean waiting time in seconds before each retry of a put. The store retries a put while
another put of the same name runs."""

_WRITER: Final = "sieve-writer"
_NOT_IMPLEMENTED: Final = 501
_MET_ANOTHER: Final = 409
_IS_THERE: Final = 412

_lacks: dict[str, str] = {}
"""For each tested bucket, the reason why it has no conditional puts; "" if it has them."""

_alone = threading.Lock()
"""Without conditional puts, a thread first checks whether an object exists, and then puts the
object. The thread holds this lock during the check and the put."""


@dataclass(frozen=True, slots=True)
class S3Store(HadoopFiles):
    """`sieve.storage.interface.Store` over ``s3a:``.

    Attributes:
        schemes: the URI schemes that this store accepts.
        single_writer: whether the user asserts that no other process writes to the store. If
            ``single_writer`` is true, the store also writes to buckets without conditional puts.
    """

    schemes: frozenset[str] = frozenset({"s3a"})
    single_writer: bool = False

    def create(self, uri: str, data: bytes) -> bool:
        fs, path = self.open(uri)
        _expect_folder(fs, path.getParent(), "create", uri)
        lack = self._lack(fs, uri)
        if not lack:
            return self._put_if_absent(fs, path, uri, data)
        if not self.single_writer:
            raise UnsupportedError(
                "SIEVE_STORE_UNSUPPORTED",
                f"cannot create {uri} if absent: {lack}, so two writers could both make the same "
                "version; set spark.sieve.path to a folder on a file system that decides, or, "
                "if no other driver ever writes to indexes on this store, start this one with "
                "spark.sieve.single.writer=true",
            )
        with _alone:
            with failures("create", uri):
                if fs.exists(path):
                    return False
            self._put(fs, path, uri, data)
        return True

    def mkdirs(self, uri: str) -> None:
        fs, path = self.open(uri)
        with failures("make folder", uri):
            fs.mkdirs(path)

    def touch(self, fs: Any, path: Any) -> None:
        _expect_folder(fs, path.getParent(), "create", path.toString())
        fs.createFile(path).build().close()

    def permissions(self, uri: str) -> Permissions:
        """Returns permissions whose group stands for all users with access to the bucket.

        The bucket's policy defines who has access, but S3A does not report the policy. So the group
        is the bucket's URI.
        """
        fs, path = self.open(uri)
        with failures("read the permissions of", uri):
            owner = str(fs.getFileStatus(path).getOwner())
        return Permissions(owner, _bucket(uri), 0o770)

    def restrict(self, uri: str, like: Permissions) -> Permissions:
        now = self.permissions(uri)
        if like.group != now.group:
            raise UnsupportedError(
                "SIEVE_STORE_PERMISSIONS",
                f"users who may not read the table could read {uri}, because a bucket has no "
                "owner, group or mode; set spark.sieve.path to a folder on the table's file "
                "system, and for a table on S3 to a folder in its bucket",
            )
        return now

    def _lack(self, fs: Any, uri: str) -> str:
        """Returns why a URI's bucket has no conditional puts; "" if it has them."""
        bucket = _bucket(uri)
        if bucket not in _lacks:
            lack = self._try_out(fs, parent(uri))
            if lack and self.single_writer:
                log.warning(
                    "%s: %s; Sieve assumes that only this driver writes to it", bucket, lack
                )
            _lacks[bucket] = lack
        return _lacks[bucket]

    def _try_out(self, fs: Any, folder: str) -> str:
        uri = join(folder, f".probe-{secrets.token_hex(16)}")
        path = self.path(uri)
        with failures("try out", uri):
            if not fs.hasPathCapability(path, IF_ABSENT):
                version = self.jvm.org.apache.hadoop.util.VersionInfo.getVersion()
                return (
                    f"Hadoop {version} cannot ask for it (3.4.2 and later can, unless "
                    "fs.s3a.create.conditional.enabled is false)"
                )
        try:
            made = [self._put_if_absent(fs, path, uri, b"") for _ in range(2)]
        except UnknownOutcomeError as error:
            if _status(error.__cause__) == _NOT_IMPLEMENTED:
                return "its server does not support conditions"
            raise UnavailableError(
                "SIEVE_STORE_UNAVAILABLE",
                f"cannot tell whether {_bucket(uri)} decides between writers: {error.message}",
            ) from error
        finally:
            with contextlib.suppress(Py4JJavaError, Py4JNetworkError):
                fs.delete(path, False)
        return "" if made == [True, False] else "its server ignores If-None-Match"

    def _put_if_absent(self, fs: Any, path: Any, uri: str, data: bytes) -> bool:
        writer, pauses = secrets.token_hex(16), [*PAUSES]
        while True:
            try:
                self._put(fs, path, uri, data, writer)
            except UnknownOutcomeError as error:
                status = _status(error.__cause__)
                if status == _IS_THERE:
                    return self._is_ours(fs, path, uri, writer)
                if status != _MET_ANOTHER or not pauses:
                    raise
            else:
                return True
            # Another put of this name is running; it may be an earlier request of this process.
            time.sleep(pauses.pop(0) * random.uniform(0.5, 1.5))  # noqa: S311 - no secret

    def _put(self, fs: Any, path: Any, uri: str, data: bytes, writer: str | None = None) -> None:
        """Puts an object.

        If ``writer`` is given, the put is conditional: it fails if the object exists. The metadata
        of the new object contains ``writer``.
        """
        with failures("create", uri):
            builder = fs.createFile(path).overwrite(True)
            if writer is not None:
                builder = builder.must(IF_ABSENT, True).must(
                    f"fs.s3a.create.header.{_WRITER}", writer
                )
            stream = builder.build()
            try:
                write(stream, data)
            except BaseException:
                # If the code closed the stream instead of aborting it, S3 would store an incomplete
                # object.
                with contextlib.suppress(Py4JError):
                    stream.abort()
                raise
        try:
            stream.close()
        except (Py4JJavaError, Py4JNetworkError) as error:
            if denied(error):
                raise refused("create", uri, error) from error
            raise _doubt(uri, error) from error

    def _is_ours(self, fs: Any, path: Any, uri: str, writer: str) -> bool:
        """Returns whether an earlier request of this process created the object.

        S3A and its SDK repeat a request whose reply is lost; the repeated request fails if the
        first request created the object.
        """
        try:
            there = fs.getXAttrs(path).get(f"header.{_WRITER}")
        except (Py4JJavaError, Py4JNetworkError) as error:
            raise _doubt(uri, error) from error
        return there is not None and bytes(there) == writer.encode("ascii")


def _bucket(uri: str) -> str:
    scheme, authority, _ = split(uri)
    return f"{scheme}://{authority}"


def _expect_folder(fs: Any, folder: Any, verb: str, uri: str) -> None:
    with failures(verb, uri):
        if not fs.getFileStatus(folder).isDirectory():
            raise GoneError("SIEVE_FILE_GONE", f"cannot {verb} {uri}: the folder is a file")


def _status(error: BaseException | None) -> int | None:
    """Returns the HTTP status in a Java exception's causes; None if the server sent no response."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else None
    while cause is not None:
        if str(cause.getClass().getName()).startswith("software.amazon.awssdk.services.s3.model."):
            return int(cause.statusCode())
        cause = cause.getCause()
    return None


def _doubt(uri: str, error: Exception) -> UnknownOutcomeError:
    return UnknownOutcomeError(
        "SIEVE_STORE_UNKNOWN_OUTCOME",
        f"{uri} may or may not have been created: {summary_of(error)}",
    )
