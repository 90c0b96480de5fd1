"""Tests which calls a put makes to Hadoop's S3A, and the put's outcome for each reply."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from sieve.errors import DeniedError, UnavailableError, UnknownOutcomeError, UnsupportedError
from sieve.storage import s3
from sieve.storage.hadoop import CHUNK
from sieve.storage.interface import GoneError
from sieve.storage.permissions import Permissions
from sieve.storage.s3 import IF_ABSENT, S3Store

HOME = "s3a://bucket/home"
FILE = f"{HOME}/f"
S3_EXCEPTION = "software.amazon.awssdk.services.s3.model.S3Exception"


class Failure:
    """A Java exception, as py4j presents it, for an S3 response with this status."""

    _target_id = "o1"

    def __init__(self, name: str, status: int = 0, cause: Failure | None = None) -> None:
        self._name, self._status, self._cause = name, status, cause

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        return SimpleNamespace(getName=lambda: self._name, getSuperclass=lambda: None)

    def getCause(self) -> Failure | None:  # noqa: N802 - Java's name
        return self._cause

    def getSqlState(self) -> None:  # noqa: N802 - Java's name
        return None

    def statusCode(self) -> int:  # noqa: N802 - the SDK's name
        return self._status

    def toString(self) -> str:  # noqa: N802 - Java's name
        return f"{self._name} {self._status}\nmore"


def failure(status: int) -> Py4JJavaError:
    """Returns the exception that S3A raises for a response with this status."""
    inner = Failure(S3_EXCEPTION, status)
    return Py4JJavaError("", Failure("org.apache.hadoop.fs.s3a.AWSS3IOException", cause=inner))


class Path(str):
    """A Hadoop path."""

    __slots__ = ()

    def getParent(self) -> Path:  # noqa: N802 - Java's name
        return Path(self.rpartition("/")[0])

    def toString(self) -> str:  # noqa: N802 - Java's name
        return str(self)


@dataclass
class Bucket:
    """A file system with one bucket; the bucket contains the folder `HOME`.

    Attributes:
        capable: true if this Hadoop supports conditional puts.
        answers: the status of each put in order. 0 means success; -1 means success with a lost
            reply.
        objects: the bytes and the writer of each object, by name.
        calls: the calls of the file system, in order.
        broken: the exception that each write raises, or None.
    """

    capable: bool = True
    answers: list[int] = field(default_factory=list)
    objects: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    broken: BaseException | None = None

    def createFile(self, path: str) -> Any:  # noqa: N802 - Java's name
        return Put(self, path)

    def hasPathCapability(self, _path: str, name: str) -> bool:  # noqa: N802 - Java's name
        assert name == IF_ABSENT
        return self.capable

    def getFileStatus(self, path: str) -> Any:  # noqa: N802 - Java's name
        if path == f"{HOME}/gone":
            raise Py4JJavaError("", Failure("java.io.FileNotFoundException"))
        return SimpleNamespace(isDirectory=lambda: path == HOME, getOwner=lambda: "me")

    def getXAttrs(self, path: str) -> dict[str, bytes]:  # noqa: N802 - Java's name
        return {"header.sieve-writer": self.objects[path][1]} if path in self.objects else {}

    def exists(self, path: str) -> bool:
        return path in self.objects

    def delete(self, path: str, recursive: bool) -> None:
        self.calls.append(f"delete {recursive}")
        self.objects.pop(path, None)

    def mkdirs(self, path: str) -> None:
        self.calls.append(f"mkdirs {path}")

    def store(self, **words: Any) -> S3Store:
        """Returns a store on the bucket."""
        version = SimpleNamespace(getVersion=lambda: "3.3.6")
        hadoop = SimpleNamespace(util=SimpleNamespace(VersionInfo=version))
        jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
        return S3Store(jvm, None, **words)


class Put:
    """The builder of one put, and its output stream."""

    def __init__(self, bucket: Bucket, path: str) -> None:
        self._bucket, self._path = bucket, path
        self._data, self._writer = list[bytes](), b""
        self._must = list[str]()

    def overwrite(self, yes: bool) -> Put:
        assert yes
        return self

    def must(self, name: str, value: Any) -> Put:
        self._must.append(name)
        if name == "fs.s3a.create.header.sieve-writer":
            self._writer = value.encode()
        else:
            assert (name, value) == (IF_ABSENT, True)
        return self

    def build(self) -> Put:
        return self

    def write(self, data: bytes) -> None:
        if self._bucket.broken is not None:
            raise self._bucket.broken
        self._data.append(data)

    def abort(self) -> None:
        self._bucket.calls.append("abort")

    def close(self) -> None:
        bucket = self._bucket
        bucket.calls.append("put if absent" if self._must else "put")
        answer = bucket.answers.pop(0) if bucket.answers else 0
        if answer > 0:
            raise failure(answer)
        if self._must and self._path in bucket.objects:
            raise failure(412)
        bucket.objects[self._path] = b"".join(self._data), self._writer
        if answer < 0:
            raise failure(412)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket before any probe. In the test, sleeping takes no time."""
    made = Bucket()
    monkeypatch.setattr(S3Store, "path", lambda _store, uri: Path(uri))
    monkeypatch.setattr(S3Store, "open", lambda _store, uri: (made, Path(uri)))
    monkeypatch.setattr(s3, "_lacks", {})
    monkeypatch.setattr(time, "sleep", lambda seconds: made.calls.append(f"sleep {seconds:.3g}"))
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + 2 * high) / 2)
    return made


PROBED = ["put if absent", "put if absent", "delete False"]


def test_bucket_is_probed_only_once(bucket: Bucket) -> None:
    """The store probes a bucket only once. After the probe, the second put of a name fails.

    The object has the bytes of the first put, which writes them in chunks.
    """
    data = bytes(CHUNK) + b"end"
    assert [bucket.store().create(FILE, d) for d in (data, b"other")] == [True, False]
    assert bucket.objects[FILE][0] == data
    assert bucket.calls == [*PROBED, "put if absent", "put if absent"]
    assert s3._lacks == {"s3a://bucket": ""}
    assert list(bucket.objects) == [FILE]


def test_pauses_after_collisions_grow(bucket: Bucket) -> None:
    """After collisions, pauses are 0.1, 0.4 and 1.6 seconds, times a factor from 0.5 to 1.5.

    If the third repetition collides, too, the outcome of the put is unknown.
    """
    s3._lacks["s3a://bucket"] = ""
    bucket.answers = [409, 409, 409, 0]
    assert bucket.store().create(FILE, b"x")
    slept = [call for call in bucket.calls if call.startswith("sleep")]
    assert slept == ["sleep 0.175", "sleep 0.7", "sleep 2.8"]
    bucket.answers = [409] * 4
    with pytest.raises(UnknownOutcomeError, match=r"AWSS3IOException 0$"):
        bucket.store().create(f"{HOME}/g", b"x")


@pytest.mark.parametrize("answer", [500, 400, 410, 411, 413])
def test_other_errors_are_an_unknown_outcome_at_once(bucket: Bucket, answer: int) -> None:
    """The store repeats a put only after a collision.

    After any other error, the outcome of the put is unknown.
    """
    s3._lacks["s3a://bucket"] = ""
    bucket.answers = [answer]
    with pytest.raises(UnknownOutcomeError, match=f"{FILE} may or may not have been created"):
        bucket.store().create(FILE, b"x")
    assert bucket.calls == ["put if absent"]


def test_put_with_a_lost_reply_is_recognised(bucket: Bucket) -> None:
    """If a put's reply is lost, the object's metadata tells which writer was first."""
    s3._lacks["s3a://bucket"] = ""
    bucket.answers = [-1]
    assert bucket.store().create(FILE, b"x")
    bucket.objects[FILE] = b"x", b"another"
    assert not bucket.store().create(FILE, b"x")


@pytest.mark.parametrize(
    ("capable", "answers", "lack"),
    [
        (False, [], "Hadoop 3.3.6 cannot ask for it"),
        (True, [501], "its server does not support conditions"),
    ],
)
def test_bucket_without_conditions_has_a_single_writer(
    bucket: Bucket, capable: bool, answers: list[int], lack: str
) -> None:
    """A bucket without conditional puts needs a writer that is configured as the only writer.

    The only writer checks that each name is free. Any other writer gets an error.
    """
    bucket.capable, bucket.answers = capable, answers
    with pytest.raises(UnsupportedError, match=f"{lack}.*single.writer=true"):
        bucket.store().create(FILE, b"x")
    assert bucket.objects == {}
    bucket.calls.clear()
    alone = bucket.store(single_writer=True)
    assert [alone.create(FILE, b"x"), alone.create(FILE, b"y")] == [True, False]
    assert bucket.objects[FILE] == (b"x", b"")
    assert bucket.calls == ["put"]


def test_probe_without_an_answer_is_repeated(bucket: Bucket) -> None:
    """If the server does not answer a probe, the next call probes the bucket again."""
    bucket.answers = [500]
    with pytest.raises(UnavailableError, match="cannot tell whether s3a://bucket decides") as told:
        bucket.store().create(FILE, b"x")
    assert not isinstance(told.value, UnknownOutcomeError)
    assert s3._lacks == {}
    assert bucket.store().create(FILE, b"x")


def test_failed_write_aborts_the_stream(bucket: Bucket) -> None:
    """After a failed write, `create` aborts the stream, as `close` would put a part of the file."""
    s3._lacks["s3a://bucket"] = ""
    bucket.broken = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bucket.store().create(FILE, b"x")
    assert bucket.calls == ["abort"]


def test_missing_permission_is_a_known_outcome(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server refuses a put for a missing permission, the outcome is known."""
    s3._lacks["s3a://bucket"] = ""
    denied = Py4JJavaError("", Failure("java.nio.file.AccessDeniedException"))
    monkeypatch.setattr(Put, "close", lambda _: (_ for _ in ()).throw(denied))
    with pytest.raises(DeniedError, match=f"may not create {FILE}"):
        bucket.store().create(FILE, b"x")


def test_create_refuses_a_missing_folder(bucket: Bucket) -> None:
    """S3 would accept a missing folder, or a name below a file, but `create` refuses both."""
    for parent in ("file", "gone"):
        with pytest.raises(GoneError, match=f"cannot create {HOME}/{parent}/f"):
            bucket.store().create(f"{HOME}/{parent}/f", b"x")
        with pytest.raises(GoneError):
            bucket.store().touch(bucket, Path(f"{HOME}/{parent}/f"))
    bucket.store().touch(bucket, Path(FILE))
    assert bucket.objects == {FILE: (b"", b"")}
    bucket.store().mkdirs(FILE)
    assert bucket.calls == ["put", f"mkdirs {FILE}"]


@pytest.mark.parametrize("group", ["s3a://a", "s3a://z", "staff"])
def test_restrict_accepts_only_the_bucket_of_the_table(bucket: Bucket, group: str) -> None:
    """A bucket's policy decides who reads it, so `restrict` accepts only the table's bucket."""
    own = Permissions("me", "s3a://bucket", 0o770)
    assert bucket.store().permissions(FILE) == own
    assert bucket.store().restrict(FILE, Permissions("you", "s3a://bucket", 0o700)) == own
    with pytest.raises(UnsupportedError, match=f"may not read the table could read {FILE}"):
        bucket.store().restrict(FILE, Permissions("me", group, 0o770))


def test_unreadable_writer_of_an_object_is_an_unknown_outcome(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome of a put is unknown if it finds an object with an unreadable writer."""
    s3._lacks["s3a://bucket"] = ""
    bucket.objects[FILE] = b"x", b"another"

    def silent(_: str) -> None:
        raise Py4JNetworkError("cut")

    monkeypatch.setattr(bucket, "getXAttrs", silent)
    with pytest.raises(UnknownOutcomeError, match=f"{FILE} may or may not .*cut"):
        bucket.store().create(FILE, b"y")
    monkeypatch.undo()


def test_single_writer_gets_one_warning_for_each_bucket(
    bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    """For each bucket without conditional puts, the only writer gets one warning."""
    bucket.capable = False
    alone = bucket.store(single_writer=True)
    for name in ("f", "g"):
        assert alone.create(f"{HOME}/{name}", b"x")
    (line,) = caplog.messages
    assert line.startswith("s3a://bucket: Hadoop 3.3.6 cannot ask for it")
    s3._lacks.clear()
    with pytest.raises(UnsupportedError):
        bucket.store().create(f"{HOME}/h", b"x")
    s3._lacks.clear()
    bucket.capable = True
    assert alone.create(f"{HOME}/h", b"x")
    assert len(caplog.messages) == 1
