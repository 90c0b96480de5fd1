"""The store contract through a real JVM, over a local folder; faults that its renames may meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.java_gateway import launch_gateway

from sieve.errors import InvalidInputError, UnavailableError, UnknownOutcomeError, UnsupportedError
from sieve.storage import hadoop, hdfs
from sieve.storage.hdfs import HadoopStore
from sieve.storage.interface import GoneError
from sieve.storage.open import store_for
from sieve.storage.permissions import Permissions
from tests.unit.storage.store_contract import PermissionsContract, StoreContract, open_folder


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM with Spark's jars, as PySpark starts it."""
    gateway = launch_gateway()
    yield gateway.jvm
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


@pytest.fixture
def conf(jvm: Any) -> Any:
    """A configuration in which file: has neither checksum files nor a shared instance."""
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    conf.set("fs.file.impl.disable.cache", "true")
    conf.set("fs.AbstractFileSystem.file.impl", "org.apache.hadoop.fs.local.RawLocalFs")
    return conf


class TestHadoopOverLocalFiles(StoreContract, PermissionsContract):
    """The contract but for atomic creates: Hadoop's local rename looks first and then leaps."""

    @pytest.fixture
    def store(self, jvm: Any, conf: Any) -> HadoopStore:
        """The store under test."""
        return HadoopStore(jvm, conf, frozenset({"file"}))

    @pytest.fixture
    def folder(self) -> Iterator[str]:
        """Its empty folder."""
        with open_folder() as path:
            yield f"file:{path}"


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 8, 9])
def test_a_file_is_read_to_its_last_byte(
    jvm: Any, conf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """In pieces, of which the last may be a single byte."""
    monkeypatch.setattr(hadoop, "CHUNK", 4)
    (tmp_path / "f").write_bytes(bytes(range(length)))
    store = HadoopStore(jvm, conf, frozenset({"file"}))
    assert store.read(f"file:{tmp_path}/f") == bytes(range(length))


@pytest.mark.parametrize("scheme", ["s3", "abfss", "http", "viewfs"])
def test_schemes_without_an_atomic_rename(scheme: str) -> None:
    """A file system that cannot decide between two writers is refused before it is asked."""
    store = store_for(f"{scheme}://place/x", None, None)
    with pytest.raises(UnsupportedError, match=r"spark\.sieve\.path"):
        store.create(f"{scheme}://place/x/f", b"")
    with pytest.raises(UnsupportedError):
        store.read(f"{scheme}://place/x/f")


def test_no_server(jvm: Any, conf: Any) -> None:
    """A name node that does not answer is unavailable, and the error names the file."""
    conf.set("ipc.client.connect.max.retries", "0")
    conf.set("dfs.client.retry.policy.enabled", "false")
    store = HadoopStore(jvm, conf)
    with pytest.raises(UnavailableError, match="hdfs://localhost:1/f"):
        store.size("hdfs://localhost:1/f")
    with pytest.raises(InvalidInputError):
        store.read("hdfs://localhost:1/../f")


class Contexts:
    """Stands for the class FileContext; its rename plays a fault around the real one."""

    def __init__(self, jvm: Any, fault: Exception, took_effect: bool) -> None:
        self._real = jvm.org.apache.hadoop.fs.FileContext
        self._fault, self._took_effect = fault, took_effect

    def getFileContext(self, uri: Any, conf: Any) -> Contexts:  # noqa: N802 - Java's name
        """The context whose rename fails."""
        self._context = self._real.getFileContext(uri, conf)
        return self

    def rename(self, draft: Any, path: Any, options: Any) -> None:
        """Rename or not, then fail."""
        if self._took_effect:
            self._context.rename(draft, path, options)
        raise self._fault


def faulty(jvm: Any, conf: Any, fault: Exception, took_effect: bool) -> HadoopStore:
    """A store over local files whose renames fail with or without effect."""
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
def test_lost_reply(jvm: Any, conf: Any, tmp_path: Path, took_effect: bool) -> None:
    """When the bridge fails in a rename the outcome is unknown, and a draft in doubt stays."""
    store = faulty(jvm, conf, Py4JNetworkError("cut"), took_effect)
    with pytest.raises(UnknownOutcomeError, match="cut"):
        store.create(f"file:{tmp_path}/f", b"x")
    (left,) = tmp_path.iterdir()
    assert (left.name == "f") is took_effect
    assert left.read_bytes() == b"x"


@pytest.mark.parametrize("took_effect", [True, False])
def test_refused_repeat(jvm: Any, conf: Any, tmp_path: Path, took_effect: bool) -> None:
    """A name found taken is ours if the draft is gone: the client repeated its own success."""
    taken = jvm.org.apache.hadoop.fs.FileAlreadyExistsException("taken")
    store = faulty(jvm, conf, Py4JJavaError("", taken), took_effect)
    assert store.create(f"file:{tmp_path}/f", b"x") is took_effect
    assert [file.name for file in tmp_path.iterdir()] == (["f"] if took_effect else [])


def test_known_refusal(jvm: Any, conf: Any, tmp_path: Path) -> None:
    """A rename that the rights forbid had no effect; the draft is removed."""
    denied = jvm.org.apache.hadoop.security.AccessControlException("no right")
    store = faulty(jvm, conf, Py4JJavaError("", denied), took_effect=False)
    with pytest.raises(UnavailableError, match="no right"):
        store.create(f"file:{tmp_path}/f", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("failure", "passed_by"),
    [
        ("org.apache.hadoop.util.Shell$ExitCodeException", True),
        ("org.apache.hadoop.security.AccessControlException", True),
        ("java.io.IOException", False),
    ],
)
def test_an_owner_that_may_not_be_set_stays(
    monkeypatch: pytest.MonkeyPatch, failure: str, passed_by: bool
) -> None:
    """Local file systems report it as a failed command; a store that fails is another matter."""
    java = SimpleNamespace(
        _target_id="o1", getCause=lambda: None, getSqlState=lambda: None,
        getClass=lambda: SimpleNamespace(
            # A name that is made anew each time, as py4j has it.
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


def test_what_is_no_folder_is_told(jvm: Any, conf: Any, tmp_path: Path) -> None:
    """By its name."""
    store = HadoopStore(jvm, conf, frozenset({"file"}))
    (tmp_path / "f").touch()
    for call in (store.list, store.mkdirs):
        with pytest.raises(GoneError, match=f"file:{tmp_path}/f"):
            call(f"file:{tmp_path}/f")


@pytest.mark.parametrize(("is_dir", "alone"), [(True, 0o700), (False, 0o600)])
@pytest.mark.parametrize("has_acl", [True, False])
@pytest.mark.parametrize("ignores", [True, False])
def test_nobody_else_is_let_in_while_rights_change(
    monkeypatch: pytest.MonkeyPatch, is_dir: bool, alone: int, has_acl: bool, ignores: bool
) -> None:
    """A list of rights goes; a file system that takes no mode cannot keep an index."""
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


def test_a_name_that_is_taken_is_in_doubt_where_the_draft_cannot_be_asked(jvm: Any) -> None:
    """The rename may have been ours: no reply to the draft's deletion tells."""
    for lost in (Py4JNetworkError("cut"), Py4JJavaError("", jvm.java.io.IOException("cut"))):

        def delete(*_: object, lost: Exception = lost) -> bool:
            raise lost

        with pytest.raises(UnknownOutcomeError, match="f exists, but may be ours"):
            hdfs._was_moved(SimpleNamespace(delete=delete), None, "file:/t/f")


@pytest.mark.parametrize("full", [False, True])
def test_a_draft_that_cannot_be_written_is_removed(
    jvm: Any, conf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Whether the disk is full or the bridge fails."""
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
