"""Runs the store's contract tests on HDFS."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from sieve.storage.hdfs import HadoopStore
from sieve.storage.interface import Store, join
from sieve.storage.permissions import Permissions
from tests.unit.storage.store_contract import (
    AtomicCreateContract,
    PermissionsContract,
    StoreContract,
)

pytestmark = pytest.mark.services


class TestHdfs(StoreContract, PermissionsContract, AtomicCreateContract):
    """The contract of every store, tested on HDFS."""

    @pytest.fixture
    def folder(self, store: Store, hdfs: str) -> Iterator[str]:
        """A new folder for each test, which is deleted afterwards."""
        folder = f"{hdfs}/sieve-test-{uuid4()}"
        store.mkdirs(folder)
        yield folder
        store.delete(folder)

    def test_access_control_lists_are_not_copied(self, store: HadoopStore, folder: str) -> None:
        """From a table with an access control list, the store copies only the owner's permissions.

        `restrict` removes access control lists.
        """
        jvm = store.jvm
        path = jvm.org.apache.hadoop.fs.Path(folder)
        entries = jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(
            "user:carol:r-x,default:user:carol:r-x", True
        )
        fs = path.getFileSystem(store.conf)
        fs.modifyAclEntries(path, entries)
        own = store.permissions(folder)
        assert own.mode & 0o077 == 0
        inner = join(folder, "index")
        store.mkdirs(inner)
        store.restrict(inner, Permissions(own.owner, own.group, 0o750))
        status = fs.getFileStatus(jvm.org.apache.hadoop.fs.Path(inner))
        assert not status.hasAcl()
        assert status.getPermission().toShort() == 0o750
