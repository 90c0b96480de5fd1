"""The contract of all stores: tests that the test class of each backend inherits."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sieve.errors import CorruptError, InvalidInputError, UnsupportedError
from sieve.storage.interface import GoneError, Store, join, parent
from sieve.storage.permissions import Permissions


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary folder that other users can enter.

    Pytest closes its own top folder to other users.
    """
    with tempfile.TemporaryDirectory(prefix="sieve-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        if not all(one.stat().st_mode & 0o001 for one in folder.parents):
            pytest.skip("the temporary folder lies in one that is closed to others")
        yield folder


class StoreContract:
    """Tests with two fixtures: `store`, and `folder` (the URI of an empty folder)."""

    def test_read_gives_the_bytes_created(self, store: Store, folder: str) -> None:
        """`read` returns the bytes that were created, even of an empty file or a large one."""
        for name, data in (("empty", b""), ("all", bytes(range(256))), ("big", b"\x00\xff" * 5**9)):
            uri = join(folder, name)
            assert store.create(uri, data) is True
            assert store.read(uri) == data
            assert store.size(uri) == len(data)

    def test_second_create_changes_nothing(self, store: Store, folder: str) -> None:
        """If a name exists, `create` returns False, and the file keeps its content."""
        uri = join(folder, "1.json")
        assert store.create(uri, b"first") is True
        assert store.create(uri, b"second") is False
        assert store.read(uri) == b"first"

    def test_create_leaves_no_temporary_files(self, store: Store, folder: str) -> None:
        """Both a successful and a failed `create` leave no temporary file."""
        store.create(join(folder, "1.json"), b"x")
        store.create(join(folder, "1.json"), b"y")
        assert [entry.name for entry in store.list(folder)] == ["1.json"]

    def test_create_does_not_make_folders(self, store: Store, folder: str) -> None:
        """`create` makes no folder.

        If `create` made folders, a paused writer could restore the folder of a dropped index.
        """
        with pytest.raises(GoneError):
            store.create(join(folder, "gone", "1.json"), b"x")
        assert not store.exists(join(folder, "gone"))

    def test_odd_names_are_taken_literally(self, store: Store, folder: str) -> None:
        """A name can contain blanks, percent signs, question marks and non-ASCII letters."""
        for name in ("a b", "100%25", "ärger", "q?x#y"):
            inner = join(folder, name)
            store.mkdirs(inner)
            assert store.create(join(inner, name), name.encode()) is True
            assert store.read(join(inner, name)) == name.encode()
        assert {entry.name for entry in store.list(folder)} == {"a b", "100%25", "ärger", "q?x#y"}

    def test_absent_things(self, store: Store, folder: str) -> None:
        """If a file is missing, `size` is None, `exists` is False, and `read` raises an error."""
        uri = join(folder, "none")
        assert store.size(uri) is None
        assert store.exists(uri) is False
        for ask in (store.read, store.list, store.permissions):
            with pytest.raises(GoneError, match="none"):
                ask(uri)

    def test_a_folder_is_no_file(self, store: Store, folder: str) -> None:
        """For a folder, `exists` is true, and there is no size."""
        assert store.exists(folder) is True
        assert store.size(folder) is None

    def test_read_stops_at_its_limit(self, store: Store, folder: str) -> None:
        """`read` returns a file as long as the limit, and refuses a longer file."""
        uri = join(folder, "f")
        store.create(uri, b"12345")
        assert store.read(uri, limit=5) == b"12345"
        with pytest.raises(CorruptError):
            store.read(uri, limit=4)

    def test_list_distinguishes_files_and_folders(self, store: Store, folder: str) -> None:
        """`list` returns entries in order, each with name, size, time and kind."""
        store.mkdirs(join(folder, "b", "c"))
        store.create(join(folder, "a"), b"123")
        now = store.now_ms(folder)
        first, second = store.list(folder)
        assert (first.name, first.size, first.is_dir) == ("a", 3, False)
        assert abs(now - first.mtime_ms) < 60_000
        assert (second.name, second.is_dir) == ("b", True)

    def test_delete(self, store: Store, folder: str) -> None:
        """`delete` removes files and whole folders, and ignores missing files."""
        store.mkdirs(join(folder, "b", "c"))
        store.create(join(folder, "b", "c", "x"), b"")
        store.create(join(folder, "a"), b"")
        for name in ("a", "b", "b"):
            store.delete(join(folder, name))
        assert store.list(folder) == []

    def test_the_clock_leaves_no_probe(self, store: Store, folder: str) -> None:
        """`now_ms` never goes backwards, and it leaves no probe file in the folder."""
        before, after = store.now_ms(folder), store.now_ms(folder)
        assert 1_500_000_000_000 < before <= after
        assert store.list(folder) == []
        with pytest.raises(GoneError):
            store.now_ms(join(folder, "none"))

    def test_foreign_uris_are_refused(self, store: Store, folder: str) -> None:
        """A store refuses a URI of another scheme, and a path that leaves the folder."""
        for uri in ("http://host/x", "/no/scheme", join(folder, "x") + "/../../y", folder + "\0"):
            for reach in (store.read, store.delete):
                with pytest.raises((InvalidInputError, UnsupportedError)):
                    reach(uri)

    def test_parent_finds_the_folder(self, store: Store, folder: str) -> None:
        """The parent of a folder's member is the folder, and the store can list this parent."""
        store.create(join(folder, "f"), b"")
        assert store.list(parent(join(folder, "f"))) == store.list(folder)


class PermissionsContract:
    """Tests of backends with owners, groups and modes, with the fixtures `store` and `folder`."""

    def test_new_files_are_no_more_open_than_their_folder(self, store: Store, folder: str) -> None:
        """A new file or folder has at most the permission bits of its restricted parent folder."""
        owner = store.permissions(folder)
        store.restrict(folder, Permissions(owner.owner, owner.group, 0o750))
        inner = join(folder, "x", "y")
        store.mkdirs(inner)
        store.create(join(inner, "f"), b"")
        assert store.permissions(inner).mode == 0o750
        assert store.permissions(join(inner, "f")).mode == 0o640

    def test_restrict_sets_the_given_mode(self, store: Store, folder: str) -> None:
        """`restrict` gives a folder the given mode, and a file this mode without execute bits."""
        like = store.permissions(folder)
        store.create(join(folder, "f"), b"")
        for mode in (0o700, 0o755, 0o770):
            asked = Permissions(like.owner, like.group, mode)
            assert store.restrict(folder, asked).mode == mode
            assert store.restrict(join(folder, "f"), asked).mode == mode & 0o666

    def test_permissions_count_the_folders_above(self, store: Store, folder: str) -> None:
        """`permissions` says that a path is closed if a folder above it is closed to others."""
        own = store.permissions(folder)
        inner = join(folder, "inner")
        store.mkdirs(inner)
        store.restrict(inner, Permissions(own.owner, own.group, 0o755))
        store.restrict(folder, Permissions(own.owner, own.group, 0o700))
        assert store.permissions(inner).mode == 0o700


class AtomicCreateContract:
    """Tests of backends with an atomic `create` between processes, with the same fixtures."""

    def test_one_of_many_creators_wins(self, store: Store, folder: str) -> None:
        """If eight threads create the same name, one thread succeeds, with its own bytes."""
        for turn in range(10):
            uri = join(folder, f"{turn}.json")
            start = threading.Barrier(8)

            def attempt(number: int, uri: str = uri, start: threading.Barrier = start) -> bool:
                start.wait()
                return store.create(uri, b"%d" % number)

            with ThreadPoolExecutor(8) as pool:
                won = list(pool.map(attempt, range(8)))
            assert won.count(True) == 1
            assert store.read(uri) == b"%d" % won.index(True)
