"""Simulates power cuts. Each power cut loses all file names and contents that were not synced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_scenarios import CREATE, WHOLE, age, looked_at, prepared

from tests.fake_spark import MODES, Session, Warehouse, without_spark

Image = dict[Path, bytes | None]
"""Maps each path below the warehouse to the file's content; a folder maps to None."""


class Disk:
    """Observes `os.fsync`, and records which names and contents would survive a power cut.

    Attributes:
        images: the disk's contents after a power cut at each call. Equal contents of successive
            calls occur once.
    """

    def __init__(self, warehouse: Warehouse, flushed: bool) -> None:
        self._warehouse, self._flushed = warehouse, flushed
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self.images: list[tuple[str, str, Image]] = []
        for path in (warehouse.root, *warehouse.root.rglob("*")):
            if path.exists():
                self.note(path)

    def note(self, path: Path) -> None:
        """Records the current content of a file or folder as durable."""
        number = path.stat().st_ino
        if path.is_dir():
            self._names[number] = {one.name: one.stat().st_ino for one in path.iterdir()}
        else:
            self._contents[number] = path.read_bytes()

    def seam(self, what: str) -> None:
        """Records which contents the disk would have after a power cut at this call."""
        if self._flushed and what.startswith("after list") and "/runs/" in what:
            # If `flushed` is true, the file system has written Spark's data without any sync.
            folder = Path(what.partition("file:")[2])
            for path in (*folder.iterdir(), folder, folder.parent):
                self.note(path)
        image: Image = {}
        if self._warehouse.root.exists():
            self._survive(self._warehouse.root, image)
        properties = (self._warehouse.folder / "t.properties").read_text()
        if not self.images or self.images[-1][1:] != (properties, image):
            self.images.append((what, properties, image))

    def _survive(self, folder: Path, image: Image) -> None:
        image[folder] = None
        known = self._names.get(folder.stat().st_ino, {})
        for path in folder.iterdir():
            number = path.stat().st_ino
            if known.get(path.name) != number:
                continue
            if path.is_dir():
                self._survive(path, image)
            else:
                image[path] = self._contents.get(number, bytes(path.stat().st_size))


@pytest.fixture(autouse=True, params=MODES)
def plain(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with `tests.fake_spark` instead of Spark."""
    with without_spark(request.param):
        yield


def restore(warehouse: Warehouse, properties: str, image: Image) -> None:
    """Makes the warehouse equal to the disk's contents after a power cut."""
    shutil.rmtree(warehouse.root, ignore_errors=True)
    (warehouse.folder / "t.properties").write_text(properties)
    for path, content in image.items():
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)


@pytest.mark.parametrize(
    "plain", ["files", pytest.param("ranges", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.parametrize("flushed", [True, False])
@pytest.mark.parametrize("name", ["create", "refresh", "vacuum", "drop"])
def test_a_power_cut_at_every_call(
    name: str, flushed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut at any call, queries return all rows, and CREATE and VACUUM work.

    If a power cut loses data that Spark wrote, queries detect the loss and read all files.
    """
    warehouse, statement = prepared(tmp_path, name)
    disk = Disk(warehouse, flushed)
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        disk.note(Path(f"/proc/self/fd/{descriptor}").resolve())

    monkeypatch.setattr(os, "fsync", noted)
    Session(warehouse, disk.seam).sql(statement)
    disk.seam("at the end")
    monkeypatch.setattr(os, "fsync", fsync)
    done = looked_at(warehouse)
    reasons = WHOLE if flushed else WHOLE | {"index-gone", "index-corrupt"}
    told = None
    for what, properties, image in disk.images:
        restore(warehouse, properties, image)
        told = looked_at(warehouse, reasons)
        session = Session(warehouse)
        session.sql("DROP SIEVE INDEX IF EXISTS id_sieve ON t")
        session.sql(CREATE)
        again = looked_at(warehouse)
        assert again is not None
        assert again.files == 1, what
        age(warehouse)
        session.sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
        # VACUUM keeps a folder without the file `intent.json`, because another program may own the
        # folder.
        assert len([folder for folder in warehouse.root.iterdir() if any(folder.iterdir())]) == 1
    assert not flushed or told == done
