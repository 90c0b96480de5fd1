"""Tests conditional puts to object stores, even to servers that ignore the condition."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import UnknownOutcomeError, UnsupportedError
from sieve.storage import s3
from sieve.storage.interface import parent
from sieve.storage.s3 import PAUSES, S3Store


@pytest.mark.parametrize(("second", "lack"), [(False, ""), (True, "ignores If-None-Match")])
def test_a_bucket_is_probed_by_two_puts_of_one_name(
    monkeypatch: pytest.MonkeyPatch, second: bool, lack: str
) -> None:
    """A probe puts two objects under the same name, and then deletes the object.

    A server ignores the condition if it accepts both puts of a probe.
    """
    answers, deleted = [True, second], list[str]()
    monkeypatch.setattr(S3Store, "path", lambda _store, uri: uri)
    monkeypatch.setattr(S3Store, "_put_if_absent", lambda *_: answers.pop(0))
    fs = SimpleNamespace(
        hasPathCapability=lambda *_: True, delete=lambda path, _: deleted.append(path)
    )
    found = S3Store(None, None)._try_out(fs, "s3a://bucket/folder")
    assert lack in found
    assert bool(found) == bool(lack)
    assert [parent(uri) for uri in deleted] == ["s3a://bucket/folder"]


def put_with(monkeypatch: pytest.MonkeyPatch, *statuses: int | None) -> tuple[bool, list[int]]:
    """Puts an object if the name is free. The server replies with the given statuses.

    Returns:
        The result of the put, and a list with one item for each attempt.
    """
    left, puts = [*statuses], list[int]()

    def put(*_: Any) -> None:
        puts.append(len(puts))
        status = left.pop(0)
        if status is not None:
            raise UnknownOutcomeError("SIEVE_X", "no answer") from OSError(status)

    monkeypatch.setattr(S3Store, "_put", put)
    monkeypatch.setattr(S3Store, "_is_ours", lambda *_: False)
    monkeypatch.setattr(s3, "_status", lambda cause: cause.args[0])
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return S3Store(None, None)._put_if_absent(None, None, "s3a://b/f", b""), puts


def test_put_that_collides_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store repeats a put after a collision (409), until the reply says which put was first."""
    assert put_with(monkeypatch, 409, 409, None) == (True, [0, 1, 2])
    assert put_with(monkeypatch, 409, 412) == (False, [0, 1])


@pytest.mark.parametrize("statuses", [(500,), (409,) * (len(PAUSES) + 1)])
def test_a_put_of_unknown_outcome_is_reported(
    monkeypatch: pytest.MonkeyPatch, statuses: tuple[int, ...]
) -> None:
    """After a few collisions, or after any other error, the outcome of a put is unknown."""
    with pytest.raises(UnknownOutcomeError):
        put_with(monkeypatch, *statuses)


def test_single_writer_checks_the_name_before_a_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without conditional puts, only a writer that is configured as the only writer may put.

    The only writer first checks that the name is free.
    """
    there, path = set[str](), SimpleNamespace(getParent=lambda: "folder")
    fs = SimpleNamespace(
        getFileStatus=lambda _: SimpleNamespace(isDirectory=lambda: True),
        exists=lambda _: "f" in there,
    )
    monkeypatch.setattr(S3Store, "open", lambda *_: (fs, path))
    monkeypatch.setattr(S3Store, "_lack", lambda *_: "it ignores conditions")
    monkeypatch.setattr(S3Store, "_put", lambda *_: there.add("f"))
    with pytest.raises(UnsupportedError, match="it ignores conditions"):
        S3Store(None, None).create("s3a://b/f", b"")
    assert there == set()
    alone = S3Store(None, None, single_writer=True)
    assert [alone.create("s3a://b/f", b"") for _ in range(2)] == [True, False]
