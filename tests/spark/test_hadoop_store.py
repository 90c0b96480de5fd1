"""Tests HadoopStore on a real JVM with local files. Some tests inject faults of renames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from spark_session import Lab

from sieve.errors import InvalidInputError, UnavailableError, UnknownOutcomeError
from sieve.storage import hadoop, hdfs
from sieve.storage.hdfs import HadoopStore
from sieve.storage.interface import GoneError
from tests.unit.storage.store_contract import PermissionsContract, StoreContract, open_folder


@pytest.fixture(scope="module")
def jvm(lab: Lab) -> Any:
    """The session's JVM."""
    return lab.spark._jvm


@pytest.fixture
def conf(jvm: Any) -> Any:
    """A Hadoop configuration for local files, without checksum files or shared instances."""
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    conf.set("fs.file.impl.disable.cache", "true")
    conf.set("fs.AbstractFileSystem.file.impl", "org.apache.hadoop.fs.local.RawLocalFs")
    return conf


class TestHadoopOverLocalFiles(StoreContract, PermissionsContract):
    """The store contract, except for atomic creates: Hadoop's local rename is not atomic."""

    @pytest.fixture
    def store(self, jvm: Any, conf: Any) -> HadoopStore:
        """The store under test."""
        return HadoopStore(jvm, conf, frozenset({"file"}))

    @pytest.fixture
    def folder(self) -> Iterator[str]:
        """The store's empty folder."""
        with open_folder() as path:
            yield f"file:{path}"


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 8, 9])
def test_a_file_is_read_to_its_last_byte(
    jvm: Any, conf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """The store reads a file in pieces, and the last piece can be a single byte."""
    monkeypatch.setattr(hadoop, "CHUNK", 4)
    (tmp_path / "f").write_bytes(bytes(range(length)))
    store = HadoopStore(jvm, conf, frozenset({"file"}))
    assert store.read(f"file:{tmp_path}/f") == bytes(range(length))


def test_no_server(jvm: Any, conf: Any) -> None:
    """If no name node answers, the store raises UnavailableError, which names the file."""
    conf.set("ipc.client.connect.max.retries", "0")
    conf.set("dfs.client.retry.policy.enabled", "false")
    store = HadoopStore(jvm, conf)
    with pytest.raises(UnavailableError, match="hdfs://localhost:1/f"):
        store.size("hdfs://localhost:1/f")
    with pytest.raises(InvalidInputError):
        store.read("hdfs://localhost:1/../f")


class Contexts:
    """Stands in for the class FileContext; its renames fail with the given fault."""

    def __init__(self, jvm: Any, fault: Exception, took_effect: bool) -> None:
        self._real = jvm.org.apache.hadoop.fs.FileContext
        self._fault, self._took_effect = fault, took_effect

    def getFileContext(self, uri: Any, conf: Any) -> Contexts:  # noqa: N802 - Java's name
        """Returns a context whose renames fail."""
        self._context = self._real.getFileContext(uri, conf)
        return self

    def rename(self, draft: Any, path: Any, options: Any) -> None:
        """Renames the file, or does nothing, and then raises the fault."""
        if self._took_effect:
            self._context.rename(draft, path, options)
        raise self._fault


def faulty(jvm: Any, conf: Any, fault: Exception, took_effect: bool) -> HadoopStore:
    """A local store whose renames fail, either before or after they have moved the file."""
    hadoop = jvm.org.apache.hadoop.fs
    fs = SimpleNamespace(
        Path=hadoop.Path,
        permission=hadoop.permission,
        FileContext=Contexts(jvm, fault, took_effect),
    )
    apache = SimpleNamespace(hadoop=SimpleNamespace(fs=fs), commons=jvm.org.apache.commons)
    seam = SimpleNamespace(java=jvm.java, org=SimpleNamespace(apache=apache))
    return HadoopStore(seam, conf, frozenset({"file"}))


@pytest.mark.parametrize("took_effect", [True, False])
def test_lost_reply_keeps_the_draft(jvm: Any, conf: Any, tmp_path: Path, took_effect: bool) -> None:
    """If the bridge to Java fails during a rename, the outcome is unknown, and the draft stays."""
    store = faulty(jvm, conf, Py4JNetworkError("cut"), took_effect)
    with pytest.raises(UnknownOutcomeError, match="cut"):
        store.create(f"file:{tmp_path}/f", b"x")
    (left,) = tmp_path.iterdir()
    assert (left.name == "f") is took_effect
    assert left.read_bytes() == b"x"


@pytest.mark.parametrize("took_effect", [True, False])
def test_taken_name_succeeds_only_if_the_draft_is_gone(
    jvm: Any, conf: Any, tmp_path: Path, took_effect: bool
) -> None:
    """After a rename that reports a taken name, the create has succeeded if the draft is gone."""
    taken = jvm.org.apache.hadoop.fs.FileAlreadyExistsException("taken")
    store = faulty(jvm, conf, Py4JJavaError("", taken), took_effect)
    assert store.create(f"file:{tmp_path}/f", b"x") is took_effect
    assert [file.name for file in tmp_path.iterdir()] == (["f"] if took_effect else [])


def test_refused_rename_removes_the_draft(jvm: Any, conf: Any, tmp_path: Path) -> None:
    """If permissions forbid a rename, the store removes the draft and reports the refusal."""
    denied = jvm.org.apache.hadoop.security.AccessControlException("no right")
    store = faulty(jvm, conf, Py4JJavaError("", denied), took_effect=False)
    with pytest.raises(UnavailableError, match="no right"):
        store.create(f"file:{tmp_path}/f", b"x")
    assert list(tmp_path.iterdir()) == []


def test_error_names_a_path_that_is_not_a_folder(jvm: Any, conf: Any, tmp_path: Path) -> None:
    """If a path is not a folder, the error of the store names this path."""
    store = HadoopStore(jvm, conf, frozenset({"file"}))
    (tmp_path / "f").touch()
    for call in (store.list, store.mkdirs):
        with pytest.raises(GoneError, match=f"file:{tmp_path}/f"):
            call(f"file:{tmp_path}/f")


def test_taken_name_with_an_unreadable_draft_is_in_doubt(jvm: Any) -> None:
    """The final name exists, but the store cannot look for the draft: the outcome is unknown."""
    for lost in (Py4JNetworkError("cut"), Py4JJavaError("", jvm.java.io.IOException("cut"))):

        def delete(*_: object, lost: Exception = lost) -> bool:
            raise lost

        with pytest.raises(UnknownOutcomeError, match="f exists, but it is unknown"):
            hdfs._was_moved(SimpleNamespace(delete=delete), None, "file:/t/f")


@pytest.mark.parametrize("full", [False, True])
def test_draft_is_removed_after_a_failed_write(
    jvm: Any, conf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """If a full disk or the bridge to Java makes a write fail, the store removes the draft."""
    drafts: list[str] = []

    def write(_: object, fs: Any, draft: Any, __: bytes) -> None:
        drafts.append(draft.getName())
        fs.create(draft).close()
        if full:
            raise Py4JJavaError("", jvm.java.io.IOException("no room"))
        raise Py4JNetworkError("no bridge")

    monkeypatch.setattr(HadoopStore, "_write", write)
    with pytest.raises(UnavailableError, match="no room" if full else "no bridge"):
        HadoopStore(jvm, conf, frozenset({"file"})).create(f"file:{tmp_path}/f", b"x")
    assert len(drafts) == 1
    assert [file for file in tmp_path.iterdir() if not file.name.endswith(".crc")] == []
