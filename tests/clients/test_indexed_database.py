"""Tests that the checker of `make test-sqlancer` detects a lost row."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrift_session import thrift_session

from tests.foreign.hive_proxy import HiveProxy
from tests.foreign.indexed_database import IndexedDatabase, Tally

if TYPE_CHECKING:
    from conftest import Site

ONE, TWO = (f"SELECT a, input_file_name() FROM t WHERE a = {a}" for a in (1, 2))


def test_sees_a_lost_row(site: Site) -> None:
    """The checker indexes all columns before the first query, and reports a lost row."""
    tally = Tally()
    warehouse = site.folder / "spark-warehouse"
    proxy = HiveProxy(site.thrift_port, lambda each: IndexedDatabase(each, warehouse, tally))
    proxy.start()
    with thrift_session(site.thrift_port) as connection:
        connection.cursor().execute("CREATE DATABASE judged")
    with proxy, thrift_session(proxy.port, database="judged") as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (a INT, b STRING) USING parquet")
        for number in range(4):
            cursor.execute(f"INSERT INTO t VALUES ({number}, 'x{number}')")
        ((_, first),), ((_, second),) = _rows(cursor, ONE), _rows(cursor, TWO)
        assert tally.counts["tables indexed"] == 1
        assert tally.counts["columns indexed"] == 2
        assert tally.counts["queries compared"] == 2
        assert not tally.refused
        assert not tally.differences
        _replace(Path(second.removeprefix("file://")), Path(first.removeprefix("file://")))
        assert len(_rows(cursor, f"{ONE} OR a < 0")) == 1
        proxy.shutdown()
    assert not proxy.errors
    (difference,) = tally.differences
    assert "OR a < 0" in difference


def _rows(cursor: Any, query: str) -> list[tuple[Any, ...]]:
    cursor.execute(query)
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    cursor.close()
    return rows


def _replace(path: Path, by: Path) -> None:
    """Gives a file the content of another file of equal length; keeps the modification time."""
    before = path.stat()
    for name in (".{}.crc", "{}"):
        shutil.copy(by.with_name(name.format(by.name)), path.with_name(name.format(path.name)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
