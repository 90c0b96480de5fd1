"""Tests a version's entries for the current files of its table, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from sieve.operations.registered_index import Usable, usable
from sql_ext.statements.commands import TableName
from tests import fake_spark
from tests.fake_spark import Session, Warehouse, without_spark
from udfs.inspection import version_entries
from udfs.inspection.version_entries import VersionEntries, read_entries
from udfs.segments import stored_segments


def _index(warehouse: Warehouse) -> Usable:
    """Returns the only index of the table t."""
    at = Session(warehouse).context()
    (index,) = at.indexes(at.table(TableName(("t",)))).values()
    return usable(index)


def _read(warehouse: Warehouse) -> tuple[VersionEntries, set[tuple[str, int, int]]]:
    """Returns the version of t's only index, and its entries: file name, low code, high code."""
    version = read_entries(_index(warehouse))
    names = [version.names[k].rpartition("/")[2] for k in version.entries.location.tolist()]
    of = version.entries
    return version, set(zip(names, of.low.tolist(), of.high.tolist(), strict=True))


def _build(warehouse: Warehouse, *statements: str) -> None:
    with without_spark():
        for statement in statements:
            Session(warehouse).sql(statement)


def test_entries_of_later_runs_belong_to_their_own_files(tmp_path: Path) -> None:
    """The entries of each run name the run's files, even if a version has several runs.

    A file that was removed from the table keeps its slot and has no entry.
    """
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1], [5], [7]])
    _build(warehouse, "CREATE SIEVE INDEX v ON t (id)")
    warehouse.append("t", [9])
    (tmp_path / "t" / "00001.txt").unlink()
    _build(warehouse, "REFRESH SIEVE INDEX ON t")
    version, entries = _read(warehouse)
    assert len(version.manifest.runs) == 2
    assert not version.has_maps
    assert {name for name, _, _ in entries} == {"00000.txt", "00002.txt", "00003.txt"}
    for name, key in (("00000.txt", 1), ("00002.txt", 7), ("00003.txt", 9)):
        assert any(file == name and low <= key <= high for file, low, high in entries)
    assert version.encoder.decode(7) == "7"


def test_name_of_a_range_includes_its_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a range contains the offset, unless the file has only one range."""
    monkeypatch.setattr(fake_spark, "RANGE_BYTES", 4)
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[*range(10, 15)], [90]])
    _build(warehouse, "CREATE SIEVE INDEX v ON t (id) OPTIONS (granularity = 'range')")
    names = {name for name, _, _ in _read(warehouse)[1]}
    assert names == {"00000.txt from byte 0", "00000.txt from byte 9", "00001.txt"}


def test_map_has_no_entries_to_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes have no order, so a map has no entries for a picture."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1], [5]])
    _build(warehouse, "CREATE SIEVE INDEX v ON t (id)")
    index = _index(warehouse)
    (plain,) = stored_segments(index.store, index.directory, index.manifest)
    stored = [(*plain[:2], {"shape": "map", "payload": b""}), plain]
    monkeypatch.setattr(version_entries, "stored_segments", lambda *_: stored)
    version, entries = _read(warehouse)
    assert version.has_maps
    assert {name for name, _, _ in entries} == {"00000.txt", "00001.txt"}
