"""Runs `sieve archive` as a user types it. Later starts of Spark use the class archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import sieve

# All other tests share one archive. This test writes its own archive, which takes 20 s of CPU time.
pytestmark = pytest.mark.tools


def test_a_later_start_maps_the_archive(tmp_path: Path) -> None:
    """After `sieve archive`, Spark loads classes from the archive, and prints nothing about it."""
    # The test run's own options load an archive. With these options, Java could not write another
    # archive.
    cache = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "SPARK_SUBMIT_OPTS": "",
    }
    archive = Path(sieve(tmp_path, "archive", **cache).strip())
    assert archive.stat().st_size > 50_000_000
    assert list(tmp_path.iterdir()) == [tmp_path / "cache"]
    log = tmp_path / "classes"
    loads = f"-Xlog:class+load=info:file={log}"
    args = ("--driver-java-options", loads, "-e", "SELECT 6 * 7 AS answer")
    assert sieve(tmp_path, "sql", *args, **cache).split() == ["answer", "42"]
    lines = log.read_text(errors="replace").splitlines()
    mapped = sum("shared objects file (top)" in line for line in lines)
    assert mapped > len(lines) / 2
