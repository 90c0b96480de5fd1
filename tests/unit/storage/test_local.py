from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from sieve.errors import (
    CorruptError,
    DeniedError,
    InvalidInputError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sieve.storage.interface import GoneError, base_name, join, parent, split
from sieve.storage.local import LocalStore
from sieve.storage.open import store_for
from sieve.storage.permissions import Permissions, behind, mode_for, without_acl
from sieve.storage.s3 import S3Store
from tests.unit.storage.store_contract import (
    AtomicCreateContract,
    PermissionsContract,
    StoreContract,
    open_folder,
)


class TestLocalStore(StoreContract, PermissionsContract, AtomicCreateContract):
    """Tests the contract of all stores on a local folder."""

    @pytest.fixture
    def store(self) -> LocalStore:
        """Returns the store under test."""
        return LocalStore()

    @pytest.fixture
    def folder(self) -> Iterator[str]:
        """An empty folder."""
        with open_folder() as path:
            yield f"file:{path}"


def failing(number: int) -> Callable[..., Any]:
    """Replaces a system call; each call fails with the given error number."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EPERM, UnsupportedError),
        (errno.EOPNOTSUPP, UnsupportedError),
        (errno.ENOSYS, UnsupportedError),
        (errno.EMLINK, UnsupportedError),
        (errno.ENOENT, GoneError),
        (errno.ENOTDIR, GoneError),
        (errno.EACCES, DeniedError),
        (errno.ENOSPC, UnavailableError),
        (errno.EDQUOT, UnavailableError),
        (errno.EROFS, UnavailableError),
        (errno.EIO, UnknownOutcomeError),
        (errno.ESTALE, UnknownOutcomeError),
    ],
)
def test_failures_of_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    """If `link` fails, the error says whether the file may exist, and no draft remains."""
    monkeypatch.setattr(os, "link", failing(number))
    with pytest.raises(kind, match=f"file:{tmp_path}/f") as caught:
        LocalStore().create(f"file:{tmp_path}/f", b"x")
    assert type(caught.value) is kind
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EEXIST, errno.EIO])
def test_link_that_took_effect_before_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """If the reply to `link` is lost, as on NFS, the draft's link count shows the success."""
    link = os.link

    def link_then_fail(source: str, target: str) -> None:
        link(source, target)
        failing(number)()

    monkeypatch.setattr(os, "link", link_then_fail)
    assert LocalStore().create(f"file:{tmp_path}/f", b"x") is True


def test_create_syncs_file_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`create` syncs the content before it makes the name, and then syncs the folder."""
    events: list[tuple[str, int, bool]] = []
    fsync, target = os.fsync, tmp_path / "f"

    def spy(descriptor: int) -> None:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        events.append((path, os.fstat(descriptor).st_size, target.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    LocalStore().create(f"file:{target}", b"content")
    assert [existed for _, _, existed in events] == [False, True]
    assert events[0][1] == len(b"content")
    assert events[1][0] == str(tmp_path)


def test_folder_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the sync of the folder fails, a crash can remove the new file: the outcome is unknown."""
    monkeypatch.setattr("sieve.storage.local._sync", failing(errno.EIO))
    with pytest.raises(UnknownOutcomeError):
        LocalStore().create(f"file:{tmp_path}/f", b"x")
    assert (tmp_path / "f").read_bytes() == b"x"


def test_errors_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for a failed read contains the path."""
    monkeypatch.setattr("builtins.open", failing(errno.EACCES))
    with pytest.raises(UnavailableError, match=f"file:{tmp_path}/f"):
        LocalStore().read(f"file:{tmp_path}/f")


def test_delete_removes_a_link_and_not_its_target(tmp_path: Path) -> None:
    """Deleting a symbolic link, or its folder, does not delete the link's target."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "x").touch()
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "link").symlink_to(tmp_path / "kept")
    LocalStore().delete(f"file:{tmp_path}/index/link")
    LocalStore().delete(f"file:{tmp_path}/index")
    assert (tmp_path / "kept" / "x").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("owner", ["nobody", "daemon"])
def test_restrict_sets_owner_and_group(tmp_path: Path, owner: str) -> None:
    """If the user has the right, `restrict` sets the owner and the group of the table.

    The test sets the user daemon, whose id is 1.
    """
    (tmp_path / "d").mkdir()
    like = Permissions(owner, "daemon", 0o750)
    assert LocalStore().restrict(f"file:{tmp_path}/d", like) == like


def test_restrict_without_the_right_to_change_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user cannot set the table's group, `restrict` removes the group's permissions."""
    monkeypatch.setattr(os, "chown", failing(errno.EPERM))
    (tmp_path / "d").mkdir()
    own = LocalStore().permissions(f"file:{tmp_path}/d")
    now = LocalStore().restrict(f"file:{tmp_path}/d", Permissions(own.owner, "daemon", 0o750))
    assert (now.group, now.mode) == (own.group, 0o700)


@pytest.mark.parametrize(("is_dir", "alone"), [(True, 0o700), (False, 0o600)])
def test_only_the_owner_has_access_during_restrict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_dir: bool, alone: int
) -> None:
    """While `restrict` changes the group, only the owner can open the file.

    If the old mode stayed during the change, the old mode would apply to the new group.
    """
    path = tmp_path / "f"
    path.mkdir() if is_dir else path.touch()
    path.chmod(0o777)
    own = LocalStore().permissions(f"file:{path}")
    modes: list[int] = []
    chmod = os.chmod
    monkeypatch.setattr(os, "chmod", lambda p, mode: (modes.append(mode), chmod(p, mode)))
    monkeypatch.setattr(os, "chown", lambda p, *_: modes.append(Path(p).stat().st_mode & 0o777))
    LocalStore().restrict(f"file:{path}", Permissions(own.owner, "daemon", 0o750))
    assert set(modes[:-1]) == {alone}
    assert modes[-1] & alone == modes[-1]


def test_a_file_system_that_ignores_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`restrict` fails on a file system that ignores modes, as all users could read the index."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(0o777)
    monkeypatch.setattr(os, "chmod", lambda *_: None)
    with pytest.raises(UnsupportedError, match=r"spark\.sieve\.path"):
        LocalStore().restrict(f"file:{tmp_path}/d", Permissions("root", "root", 0o750))


def test_mode_for_adds_no_permission() -> None:
    """`mode_for` gives each user only permissions that the user also has on the table."""
    table = [Permissions("alice", "staff", mode) for mode in range(0o1000)]
    users = [("alice", {"staff"}), ("bob", {"staff"}), ("bob", {"crew"}), ("carl", set[str]())]
    for like in table:
        for owner in ("alice", "bob"):
            for group in ("staff", "crew"):
                made = Permissions(owner, group, mode_for(like, owner, group, is_dir=True))
                for user, groups in users:
                    if user != owner:
                        assert rights(made, user, groups) & ~rights(like, user, groups) == 0


def rights(permissions: Permissions, user: str, groups: set[str]) -> int:
    """The three permission bits of a user on a file."""
    if user == permissions.owner:
        return permissions.mode >> 6
    return permissions.mode >> 3 & 7 if permissions.group in groups else permissions.mode & 7


def test_access_control_list_leaves_only_the_owner() -> None:
    """For a file with an access control list, only the owner's permission bits count."""
    assert without_acl(Permissions("a", "g", 0o775)).mode == 0o700


def test_folder_of_another_group_limits_permissions() -> None:
    """A folder of a different group treats the file's group as others."""
    file = Permissions("a", "g", 0o755)
    for other in ("f", "h"):
        assert behind(file, Permissions("a", other, 0o750)).mode == 0o700
        assert behind(file, Permissions("a", other, 0o751)).mode == 0o755
    assert behind(file, Permissions("a", "g", 0o750)).mode == 0o750


def test_uri_parts() -> None:
    """A URI has scheme, authority and path; its parent has the same scheme and authority."""
    assert split("hdfs://nn:8020/a/b c") == ("hdfs", "nn:8020", "/a/b c")
    assert split("file:/a") == ("file", "", "/a") == split("file:///a")
    assert parent("hdfs://nn:8020/a/b") == "hdfs://nn:8020/a"
    assert parent("file:/a") == "file:/" == parent("file:/")
    assert base_name("file:/a/b/") == "b"
    assert join("file:/a/", "b", "c") == "file:/a/b/c"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0"])
def test_join_refuses_names_that_leave_the_folder(name: str) -> None:
    """`join` refuses a name that can lead out of the folder."""
    with pytest.raises(InvalidInputError):
        join("file:/a", name)


def test_the_scheme_picks_the_store() -> None:
    """The URI's scheme selects the store, without a call of the JVM."""
    assert isinstance(store_for("file:/x", None, None), LocalStore)
    assert isinstance(store_for("s3a://bucket/x", None, None), S3Store)
    with pytest.raises(InvalidInputError):
        LocalStore().read("file://elsewhere/x")


def test_new_folder_is_closed_until_it_has_its_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new folder is closed to other users until it has its final permissions."""
    modes: list[int] = []
    make = os.mkdir

    def recorded(path: str, mode: int) -> None:
        modes.append(mode)
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", recorded)
    LocalStore().mkdirs(f"file:{tmp_path}/a/b")
    assert modes == [0o700, 0o700]


def test_a_file_that_cannot_be_written_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed write, as on a full disk, neither a draft nor the file remains."""
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(UnavailableError, match=f"cannot create file:{tmp_path}/f: No space left"):
        LocalStore().create(f"file:{tmp_path}/f", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_read_is_bounded(tmp_path: Path) -> None:
    """`read` returns a file as long as the limit, and reports a longer file as damaged."""
    (tmp_path / "f").write_bytes(b"12345")
    assert LocalStore().read(f"file:{tmp_path}/f", 5) == b"12345"
    with pytest.raises(CorruptError, match="is longer than 4 bytes"):
        LocalStore().read(f"file:{tmp_path}/f", 4)


def test_file_deleted_by_another_process_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another process deletes a file during `list` or `delete`, the file is ignored."""
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        (tmp_path / "d" / name).write_bytes(b"12")
    scan = os.scandir

    class Members:
        """The members of a folder. One member is deleted before the store examines it."""

        def __init__(self, path: str) -> None:
            self._members = [*scan(path)]

        def __enter__(self) -> Self:
            (tmp_path / "d" / "a").unlink()
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def __iter__(self) -> Any:
            return iter(self._members)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Members)
        (left,) = LocalStore().list(f"file:{tmp_path}/d")
    assert (left.name, left.size, left.is_dir) == ("b", 2, False)
    unlink = os.unlink

    def late(path: Any, **other: Any) -> None:
        unlink(path, **other)
        raise FileNotFoundError(errno.ENOENT, "gone")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", late)
        LocalStore().delete(f"file:{tmp_path}/d")
    assert not (tmp_path / "d").exists()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing(errno.EIO))
        with pytest.raises(UnavailableError, match=f"cannot delete file:{tmp_path}/d"):
            LocalStore().delete(f"file:{tmp_path}/d")


def test_folder_of_another_process_keeps_its_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another process creates the folder during `mkdirs`, the folder keeps its permissions.

    If a file has the name of the folder, `mkdirs` fails.
    """
    make = os.mkdir

    def late(path: str, mode: int) -> None:
        make(path, mode)
        raise FileExistsError(errno.EEXIST, "exists")

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", late)
        patch.setattr("sieve.storage.local._inherit", failing(errno.EIO))
        LocalStore().mkdirs(f"file:{tmp_path}/a")
    assert (tmp_path / "a").is_dir()
    (tmp_path / "f").touch()
    for name in ("f", "f/a"):
        with pytest.raises((UnavailableError, GoneError)):
            LocalStore().mkdirs(f"file:{tmp_path}/{name}")


def test_restrict_removes_access_control_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`restrict` removes access control lists, as they could admit more users than the mode."""
    (tmp_path / "d").mkdir()
    own = LocalStore().permissions(f"file:{tmp_path}/d")
    there = ["system.posix_acl_access", "system.posix_acl_default", "user.note"]
    monkeypatch.setattr(os, "listxattr", lambda _: tuple(there))
    monkeypatch.setattr(os, "removexattr", lambda _, name: there.remove(name))
    closed = LocalStore().permissions(f"file:{tmp_path}/d")
    assert closed.mode & 0o077 == 0
    LocalStore().restrict(f"file:{tmp_path}/d", Permissions(own.owner, own.group, 0o750))
    assert there == ["user.note"]
    for number in (errno.EOPNOTSUPP, errno.ENOSYS):
        monkeypatch.setattr(os, "listxattr", failing(number))
        assert LocalStore().permissions(f"file:{tmp_path}/d").owner == own.owner
    monkeypatch.setattr(os, "listxattr", failing(errno.EIO))
    with pytest.raises(UnavailableError):
        LocalStore().permissions(f"file:{tmp_path}/d")


@pytest.mark.parametrize(
    ("number", "kind", "told"),
    [
        (errno.ENOENT, GoneError, "it is not there"),
        (errno.ENOTDIR, GoneError, "it is not there"),
        (errno.EACCES, DeniedError, "may not list file:"),
        (errno.EPERM, DeniedError, "may not list file:"),
        (errno.EIO, UnavailableError, "cannot list file:"),
    ],
)
def test_each_failure_of_the_system_has_its_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[Exception],
    told: str,
) -> None:
    """The error says whether a file is missing, a call is denied, or the system failed."""
    monkeypatch.setattr(os, "scandir", failing(number))
    with pytest.raises(kind, match=told) as caught:
        LocalStore().list(f"file:{tmp_path}/f")
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("owner", "group", "given"),
    [
        ("root", "daemon", [(-1, 1), (0, -1)]),
        ("of no host", "daemon", [(-1, 1)]),
        ("root", "of no host", [(0, -1)]),
        ("of no host", "of no host", []),
    ],
)
def test_restrict_sets_only_names_that_this_host_knows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: str,
    group: str,
    given: list[tuple[int, int]],
) -> None:
    """`restrict` sets first the group, then the owner, if this host knows their names.

    After the owner has changed, `restrict` could not change the group.
    """
    (tmp_path / "d").mkdir()
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "chown", lambda _, uid, gid: calls.append((uid, gid)))
    LocalStore().restrict(f"file:{tmp_path}/d", Permissions(owner, group, 0o700))
    assert calls == given


def test_failed_link_without_a_draft_is_an_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If `link` fails and the draft is missing, the outcome is unknown."""

    def link(source: str, _: str) -> None:
        Path(source).unlink()
        failing(errno.EIO)()

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(UnknownOutcomeError, match=f"file:{tmp_path}/f may or may not"):
        LocalStore().create(f"file:{tmp_path}/f", b"x")


def test_new_file_is_closed_until_it_has_its_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a new file has its final permissions, only the file's owner can open it."""
    modes: list[int] = []
    real = os.open

    def opened(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            modes.append(mode)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", opened)
    LocalStore().create(f"file:{tmp_path}/f", b"x")
    assert modes == [0o600]
