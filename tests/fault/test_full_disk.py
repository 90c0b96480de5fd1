"""Tests statements on a disk that becomes full while a statement writes any of its files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab

PAGE = 4096
PAGES = 64
QUERY = "SELECT * FROM t WHERE id = 5"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 pages (a mounted tmpfs)."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={PAGES * PAGE}"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"may not mount a small disk: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def free(disk: Path) -> int:
    """The number of free pages on the disk."""
    return os.statvfs(disk).f_bavail


def leave(disk: Path, pages: int) -> None:
    """Fills the disk until exactly ``pages`` pages are free."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    filler.write_bytes(bytes((free(disk) - pages) * PAGE))
    assert free(disk) == pages


def squeeze(lab: Lab, disk: Path, statement: str) -> int:
    """Repeats a statement, with more free pages each time, until it works; counts the failures.

    Each failed statement frees its disk pages, and queries return the right rows.
    """
    for pages in range(PAGES // 2):
        leave(disk, pages)
        try:
            lab.sql(statement)
        except PySparkException as error:
            failure = str(error)
        else:
            return pages
        assert "No space left on device" in failure
        assert free(disk) == pages, sorted(disk.rglob("*"))
        lab.check(QUERY)
    raise AssertionError(f"no room for {statement}")


@pytest.mark.long
def test_statements_on_a_full_disk_work_or_change_nothing(lab: Lab, disk: Path) -> None:
    """If any write fills the disk, CREATE, REFRESH and DROP either succeed or change nothing."""
    with (
        lab.database("full"),
        lab.setting("spark.sieve.path", disk.as_uri()),
        lab.setting("spark.sieve.roots", disk.as_uri()),
    ):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        assert squeeze(lab, disk, "CREATE SIEVE INDEX ON t (id)") > 2
        lab.check(QUERY, exactly=1)
        lab.sql("INSERT INTO t SELECT 40")
        assert squeeze(lab, disk, "REFRESH SIEVE INDEX ON t") > 2
        lab.check(QUERY, exactly=1)
        assert squeeze(lab, disk, "DROP SIEVE INDEX ON t (id)") > 0
        assert [path.name for path in disk.iterdir()] == ["filler"]
        lab.check(QUERY, exactly=5)
