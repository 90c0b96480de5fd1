"""Tests the Hadoop store without a JVM: schemes that it refuses, and permissions of files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from sieve.errors import UnsupportedError
from sieve.storage.hdfs import HadoopStore
from sieve.storage.open import store_for
from sieve.storage.permissions import Permissions


@pytest.mark.parametrize("scheme", ["s3", "abfss", "http", "viewfs"])
def test_schemes_without_an_atomic_rename(scheme: str) -> None:
    """The store refuses a file system without an atomic rename before any call."""
    store = store_for(f"{scheme}://place/x", None, None)
    with pytest.raises(UnsupportedError, match=r"spark\.sieve\.path"):
        store.create(f"{scheme}://place/x/f", b"")
    with pytest.raises(UnsupportedError):
        store.read(f"{scheme}://place/x/f")


@pytest.mark.parametrize(
    ("failure", "passed_by"),
    [
        ("org.apache.hadoop.util.Shell$ExitCodeException", True),
        ("org.apache.hadoop.security.AccessControlException", True),
        ("java.io.IOException", False),
    ],
)
def test_file_keeps_its_owner_if_it_cannot_be_set(
    monkeypatch: pytest.MonkeyPatch, failure: str, passed_by: bool
) -> None:
    """If the user has no right to set the owner, the file keeps its owner.

    Any other failure to set the owner is an error. On local file systems, a refused change of owner
    appears as a failed command.
    """
    java = SimpleNamespace(
        _target_id="o1", getCause=lambda: None, getSqlState=lambda: None,
        getClass=lambda: SimpleNamespace(
            # As in py4j, each call returns a new string object with the class name.
            getName=lambda: "".join(failure), getSuperclass=lambda: None
        ),
    )  # fmt: skip
    asked: list[tuple[str | None, str | None]] = []

    def refuse(_path: str, owner: str | None, group: str | None) -> None:
        asked.append((owner, group))
        raise Py4JJavaError("", java)

    status = SimpleNamespace(
        getPermission=lambda: SimpleNamespace(toShort=lambda: 0o750),
        getOwner=lambda: "me", getGroup=lambda: "us", hasAcl=lambda: False,
    )  # fmt: skip
    fs = SimpleNamespace(setOwner=refuse, getFileStatus=lambda _: status)
    modes: list[int] = []
    monkeypatch.setattr(HadoopStore, "_set_mode", lambda *given: modes.append(given[-1]))
    store, like = HadoopStore(None, None), Permissions("you", "us", 0o750)
    if passed_by:
        assert store._inherit(fs, "p", like, is_dir=False) == modes[0] == 0o640
        assert asked == [(None, "us"), ("you", None)]
    else:
        with pytest.raises(Py4JJavaError):
            store._inherit(fs, "p", like, is_dir=False)
        assert (asked, modes) == ([(None, "us")], [])


@pytest.mark.parametrize(("is_dir", "alone"), [(True, 0o700), (False, 0o600)])
@pytest.mark.parametrize("has_acl", [True, False])
@pytest.mark.parametrize("ignores", [True, False])
def test_only_the_owner_has_access_during_restrict(
    monkeypatch: pytest.MonkeyPatch, is_dir: bool, alone: int, has_acl: bool, ignores: bool
) -> None:
    """While `restrict` changes permissions, only the owner can open the file.

    `restrict` removes access control lists, and refuses a file system that ignores modes.
    """
    calls: list[Any] = []
    mode = [0o777]

    def set_mode(_store: Any, _fs: Any, _path: str, wanted: int) -> None:
        calls.append(wanted)
        if not ignores:
            mode[0] = wanted

    def status(_: str) -> Any:
        now = mode[0]
        return SimpleNamespace(
            getPermission=lambda: SimpleNamespace(toShort=lambda: now), getOwner=lambda: "me",
            getGroup=lambda: "us", hasAcl=lambda: has_acl and "acl" not in calls,
            isDirectory=lambda: is_dir,
        )  # fmt: skip

    fs = SimpleNamespace(
        getFileStatus=status, removeAcl=lambda _: calls.append("acl"),
        setOwner=lambda *_: calls.append("owner"),
    )  # fmt: skip
    monkeypatch.setattr(HadoopStore, "_set_mode", set_mode)
    monkeypatch.setattr(HadoopStore, "open", lambda *_: (fs, "p"))
    store, like = HadoopStore(None, None), Permissions("me", "us", 0o750)
    final = 0o750 if is_dir else 0o640
    if ignores:
        with pytest.raises(UnsupportedError, match=f"hdfs:/f keeps mode 777 instead of {final:o}"):
            store.restrict("hdfs:/f", like)
    else:
        assert store.restrict("hdfs:/f", like) == Permissions("me", "us", final)
    assert calls == [alone, *(["acl"] if has_acl else []), "owner", "owner", final]
