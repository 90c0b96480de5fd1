"""If a table's files change twice after the build of an index, queries lose no row."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash_scenarios import prepared

from tests.fake_scan import scan
from tests.fake_spark import EPOCH_S, MODES, Session, Warehouse, keys_of, without_spark


@pytest.fixture(autouse=True, params=MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs each test with `tests.fake_spark` instead of Spark."""
    with without_spark(request.param):
        yield request.param


def files(warehouse: Warehouse) -> list[Path]:
    """The table's files, sorted by name."""
    return sorted((warehouse.folder / "t").iterdir())


def write(path: Path, keys: range, later_s: int) -> None:
    """Writes a file with ``keys``; sets the file's time to ``later_s`` seconds after `EPOCH_S`."""
    path.write_text("\n".join(map(str, keys)))
    os.utime(path, (EPOCH_S + later_s, EPOCH_S + later_s))


def append(warehouse: Warehouse) -> None:
    """Adds one file to the table."""
    write(warehouse.folder / "t" / f"9{len(files(warehouse))}.txt", range(30, 50), 100)


def delete(warehouse: Warehouse) -> None:
    """Deletes one file of the table."""
    files(warehouse)[1].unlink()


def overwrite(warehouse: Warehouse) -> None:
    """Replaces all files of the table."""
    for number, path in enumerate(files(warehouse)):
        path.unlink()
        write(path.with_name(f"8{number}{path.name}"), range(5 * number, 5 * number + 20), 200)


def compact(warehouse: Warehouse) -> None:
    """Replaces two files of the table by one file."""
    one, other = files(warehouse)[:2]
    keys = sorted(keys_of(str(one)) + keys_of(str(other)))
    for path in (one, other):
        path.unlink()
    write(one.with_name(f"7{one.name}"), range(keys[0], keys[-1] + 1), 300)


def replace(warehouse: Warehouse) -> None:
    """Changes a file's keys and sets a later modification time; keeps the name and the length."""
    path = files(warehouse)[0]
    status = path.stat()
    write(path, range(40, 50), int(status.st_mtime) - EPOCH_S + 1)


def lengthen(warehouse: Warehouse) -> None:
    """Changes a file's keys and length; keeps the name and the modification time."""
    path = files(warehouse)[-1]
    status = path.stat()
    write(path, range(10, 45), int(status.st_mtime) - EPOCH_S)


def empty(warehouse: Warehouse) -> None:
    """Removes all rows of a file."""
    write(files(warehouse)[0], range(0), 400)


CHANGES = (append, delete, overwrite, compact, replace, lengthen, empty)


@pytest.mark.sampled(3)
# The parameter of the test is the first of two changes. The test combines the first change with
# each possible second change.
@pytest.mark.parametrize(
    "first",
    [
        append,
        pytest.param(delete, marks=pytest.mark.long),
        overwrite,
        pytest.param(compact, marks=pytest.mark.long),
        replace,
        lengthen,
        pytest.param(empty, marks=pytest.mark.long),
    ],
)
def test_a_table_that_has_changed_twice(
    first: Callable[[Warehouse], None], mode: str, tmp_path: Path
) -> None:
    """After two changes, with or without a REFRESH between them, queries find every row.

    After a final REFRESH, the index covers all files.
    """
    for second, between in itertools.product(CHANGES, (True, False)):
        warehouse, _ = prepared(tmp_path / f"{second.__name__} {between}", "disable")
        first(warehouse)
        if between:
            Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
        second(warehouse)
        stale = [scan(warehouse, "t", key) for key in range(3, 51, 9)]
        assert all(one.used for one in stale)
        Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
        fresh = [scan(warehouse, "t", key) for key in range(3, 51, 9)]
        assert [one.rows for one in fresh] == [one.rows for one in stale]
        # A query for an absent key reads only the files that have no rows.
        assert all((one.ranges > one.total) == (mode == "ranges") for one in fresh)
        bare = sum(path.stat().st_size == 0 for path in files(warehouse))
        assert [scan(warehouse, "t", key).files for key in (-1, 99)] == [bare, bare]
