"""Runs the store's contract tests on S3; tests faults, and buckets without conditional puts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from py4j.protocol import get_return_value
from pyspark.java_gateway import launch_gateway

from sieve.errors import UnavailableError, UnknownOutcomeError, UnsupportedError
from sieve.storage import s3
from sieve.storage.interface import GoneError, Store, join
from sieve.storage.open import store_for
from sieve.storage.permissions import Permissions
from sieve.storage.s3 import S3Store
from tests.services.s3 import ANCIENT, HEEDLESS, KEEPING, Fault, Gate, jars
from tests.unit.storage.store_contract import AtomicCreateContract, StoreContract

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM with Spark's jars and Hadoop's S3 client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--driver-class-path {jars()} pyspark-shell")
        gateway = launch_gateway()
    with pytest.MonkeyPatch.context() as patch:
        # Without this patch, py4j would translate exceptions through the JVM of an earlier session.
        patch.setattr("py4j.java_gateway.get_return_value", get_return_value)
        yield gateway.jvm
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


@pytest.fixture(autouse=True)
def as_new(gate: Gate) -> Iterator[None]:
    """Makes the store forget its probed buckets. At the end, removes unused faults."""
    s3._lacks.clear()
    gate.puts.clear()
    yield
    gate.faults.clear()


@pytest.fixture
def conf(jvm: Any, gate: Gate) -> Any:
    """A Hadoop configuration for access to the S3 server."""
    conf = jvm.org.apache.hadoop.conf.Configuration()
    for key, value in gate.conf.items():
        conf.set(key, value)
    return conf


@pytest.fixture
def store(jvm: Any, conf: Any) -> Store:
    """The store, opened as the front end opens it."""
    return store_for(f"s3a://{KEEPING}/", jvm, conf)


@pytest.fixture
def folder(store: Store) -> str:
    """A new, empty folder for each test."""
    folder = f"s3a://{KEEPING}/test-{uuid4()}"
    store.mkdirs(folder)
    return folder


class TestS3(StoreContract, AtomicCreateContract):
    """The store's contract on S3, except for permissions, which S3A does not report."""


def elsewhere(
    jvm: Any, conf: Any, bucket: str, *, single_writer: bool = False
) -> tuple[Store, str]:
    """A store in the given bucket, and an empty folder there."""
    folder = f"s3a://{bucket}/test-{uuid4()}"
    store = store_for(folder, jvm, conf, single_writer=single_writer)
    store.mkdirs(folder)
    return store, folder


def test_bucket_is_probed_before_the_first_create(store: Store, folder: str, gate: Gate) -> None:
    """Before its first create, the store puts a probe twice, and the second put must fail.

    Later creates do not probe the bucket again.
    """
    store.create(join(folder, "1"), b"x")
    store.create(join(folder, "2"), b"x")
    probe, again, *others = gate.puts
    assert (probe[1], again[1]) == (200, 412)
    assert probe[0] == again[0]
    assert [key.rpartition("/")[2] for key, _ in others] == ["1", "2"]
    assert [entry.name for entry in store.list(folder)] == ["1", "2"]


@pytest.mark.parametrize(
    ("bucket", "why"),
    [
        (HEEDLESS, "its server ignores If-None-Match"),
        (ANCIENT, "its server does not support conditions"),
    ],
)
def test_bucket_that_ignores_conditions_is_refused(
    jvm: Any, conf: Any, bucket: str, why: str
) -> None:
    """If a bucket ignores conditions, create fails, and the error names remedies.

    The failed create leaves no object in the bucket.
    """
    store, folder = elsewhere(jvm, conf, bucket)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=f"{why}.*spark.sieve.path.*single.writer=true"):
            store.create(join(folder, "1.json"), b"x")
    assert store.list(folder) == []


def test_an_old_hadoop(jvm: Any, conf: Any) -> None:
    """The store refuses an S3 client without conditional puts, before any put."""
    conf.set("fs.s3a.create.conditional.enabled", "false")
    conf.set("fs.s3a.impl.disable.cache", "true")
    store, folder = elsewhere(jvm, conf, KEEPING)
    with pytest.raises(UnsupportedError, match=r"Hadoop 3\.\d\.\d cannot ask for it"):
        store.create(join(folder, "1.json"), b"x")


def test_a_single_writer(jvm: Any, conf: Any, gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    """A user can declare that this driver is the only writer of a bucket without conditions.

    The store of a single writer checks before each put that the object does not exist. The store
    also logs one warning.
    """
    store, folder = elsewhere(jvm, conf, HEEDLESS, single_writer=True)
    with caplog.at_level(logging.WARNING):
        TestS3().test_second_create_changes_nothing(store, folder)
        TestS3().test_create_does_not_make_folders(store, folder)
        crowded = join(folder, "crowded")
        store.mkdirs(crowded)
        TestS3().test_one_of_many_creators_wins(store, crowded)
    (warning,) = [r.getMessage() for r in caplog.records if "only this driver" in r.getMessage()]
    assert HEEDLESS in warning
    gate.faults.append(Fault(".*/u", 500, takes_effect=True))
    # Without a condition, a repeated request puts the same bytes again, so create succeeds.
    assert store.create(join(folder, "u"), b"x") is True


@pytest.mark.parametrize("status", [500, 503, 409])
def test_put_with_a_lost_reply_is_recognised(
    store: Store, folder: str, gate: Gate, status: int
) -> None:
    """If a put's reply is lost, the store recognises that its own put has succeeded.

    The server answers the repeated put with 412, and the object contains the writer's name.
    """
    gate.faults.append(Fault(".*/1.json", status, takes_effect=True))
    assert store.create(join(folder, "1.json"), b"x") is True
    assert [s for key, s in gate.puts if key.endswith("1.json")] == [status, 412]
    gate.faults.append(Fault(".*/1.json", status, takes_effect=True))
    assert store.create(join(folder, "1.json"), b"x") is False


def test_put_is_repeated_after_a_conflict(store: Store, folder: str, gate: Gate) -> None:
    """The store repeats a put after the status 409, because a put with this status has no effect.

    The status 409 means that another put of the same name is in progress.
    """
    gate.faults += [Fault(".*/1.json", 409)] * 2
    assert store.create(join(folder, "1.json"), b"x") is True
    assert [s for key, s in gate.puts if key.endswith("1.json")] == [409, 409, 200]


def test_endless_conflicts_are_an_unknown_outcome(store: Store, folder: str, gate: Gate) -> None:
    """If S3 answers each put with a conflict, the store reports an unknown outcome."""
    gate.faults += [Fault(".*/1.json", 409)] * 20
    with pytest.raises(UnknownOutcomeError, match=r"1\.json"):
        store.create(join(folder, "1.json"), b"x")


@pytest.mark.parametrize("takes_effect", [True, False])
def test_endless_faults_are_an_unknown_outcome(
    store: Store, folder: str, gate: Gate, takes_effect: bool
) -> None:
    """If each put gets an error as reply, the outcome is unknown. S3 may have executed a put."""
    gate.faults += [Fault(".*/1.json", 500, takes_effect)] + [Fault(".*/1.json", 500)] * 20
    with pytest.raises(UnknownOutcomeError, match=r"1\.json"):
        store.create(join(folder, "1.json"), b"x")
    assert store.exists(join(folder, "1.json")) is takes_effect


def test_a_refusal_has_no_effect(store: Store, folder: str, gate: Gate) -> None:
    """If S3 forbids a put, create reports the refusal, because the put had no effect."""
    store.create(join(folder, "before"), b"x")
    gate.faults.append(Fault(".*/1.json", 403))
    with pytest.raises(UnavailableError, match=r"1\.json"):
        store.create(join(folder, "1.json"), b"x")


def test_failed_probe_is_repeated_by_the_next_create(store: Store, folder: str, gate: Gate) -> None:
    """If the probe of a bucket fails, create fails, and the next create probes again."""
    gate.faults += [Fault(r".*/\.probe-.*", 500)] * 20
    with pytest.raises(UnavailableError, match="cannot tell whether"):
        store.create(join(folder, "1.json"), b"x")
    gate.faults.clear()
    assert store.create(join(folder, "1.json"), b"x") is True


def test_index_can_only_be_in_the_bucket_of_its_table(
    store: Store, folder: str, jvm: Any, conf: Any
) -> None:
    """An index can only be in the bucket that contains its table."""
    assert store.restrict(folder, store.permissions(folder)) == store.permissions(folder)
    other, there = elsewhere(jvm, conf, HEEDLESS)
    for like in (other.permissions(there), Permissions("root", "root", 0o755)):
        with pytest.raises(UnsupportedError, match=r"spark\.sieve\.path.*in its bucket"):
            store.restrict(folder, like)
    assert store.permissions(folder).mode & 0o007 == 0
    with pytest.raises(GoneError):
        store.permissions(join(folder, "none"))


def test_failed_write_leaves_no_file(
    store: S3Store, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If writing fails in the middle of an object, the store leaves no object.

    A close of the stream would put the part that was already written.
    """

    def write_half(stream: Any, data: bytes) -> None:
        stream.write(data[:1])
        raise MemoryError

    store.create(join(folder, "before"), b"x")
    monkeypatch.setattr(s3, "write", write_half)
    with pytest.raises(MemoryError):
        store.create(join(folder, "1.json"), b"xy")
    assert [entry.name for entry in store.list(folder)] == ["before"]


def test_interrupted_upload_of_a_large_file_leaves_nothing(
    conf: Any, store: S3Store, folder: str, gate: Gate
) -> None:
    """Multipart uploads are also conditional, and an interrupted upload leaves no object."""
    conf.set("fs.s3a.multipart.size", "5M")
    conf.set("fs.s3a.impl.disable.cache", "true")
    data = bytes(12 << 20)
    assert store.create(join(folder, "big"), data) is True
    assert store.create(join(folder, "big"), b"x" + data[1:]) is False
    assert store.read(join(folder, "big"))[:1] == b"\0"
    gate.faults += [Fault(".*/broken", 500)] * 500
    with pytest.raises((UnavailableError, UnknownOutcomeError)):
        store.create(join(folder, "broken"), data)
    assert not store.exists(join(folder, "broken"))
