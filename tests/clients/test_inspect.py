"""Runs `sieve inspect` as a user types it, on a table in the metastore of the test site."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from thrift_session import thrift_session

if TYPE_CHECKING:
    from conftest import Site

TABLE = """
CREATE TABLE drawn USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(10, arrived) */ id, arrived
  FROM (SELECT id, if(id % 50 = 7, id + 300, id) AS arrived FROM range(1000))
"""


@pytest.fixture(scope="module")
def drawn(site: Site) -> Site:
    """A site with an indexed table. Late rows of the table are in slightly later files."""
    with thrift_session(site.thrift_port) as connection:
        for statement in (TABLE, "CREATE SIEVE INDEX ON drawn (id)"):
            connection.cursor().execute(statement)
    return site


def _inspect(site: Site, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("sieve")), "inspect", *args],
        cwd=site.folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.long
def test_inspect_writes_a_picture_and_a_summary(drawn: Site, tmp_path: Path) -> None:
    """`sieve inspect` writes a full-size PNG, and prints a summary and the PNG's path.

    A client of the Thrift server gets the same picture and summary.
    """
    output = tmp_path / "picture.png"
    done = _inspect(
        drawn, *drawn.metastore_option, "--output", str(output), "default.drawn", "ID_sieve"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    *lines, where = done.stdout.splitlines()
    assert where == str(output)
    assert lines[0].startswith("files read for a key that occurs: ")
    assert any(line.startswith("of all keys a file spans ") for line in lines)
    assert sum(line.startswith("widest: part-") for line in lines) == 3
    data = output.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1320, 990)
    assert len(data) > 20_000
    with thrift_session(drawn.thrift_port) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT summary, png FROM sieve_inspect('drawn', 'id_sieve')")
        ((summary, png),) = cursor.fetchall()
    assert summary.splitlines() == lines
    assert png == data


@pytest.mark.long
def test_unknown_index_prints_one_line(drawn: Site) -> None:
    """For an unknown index, `sieve inspect` prints one line and no stack trace.

    The command reports other errors unchanged.
    """
    done = _inspect(drawn, *drawn.metastore_option, "drawn", "nope")
    assert done.returncode == 1
    # spark-submit merges standard output and error of a Python program into one stream.
    assert "Error: [SIEVE_UNKNOWN_INDEX]" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(drawn.folder.glob("*.png"))


@pytest.mark.parametrize(
    "args",
    [["drawn"], ["drawn", "i", "--output", "/nowhere/x.png"], ["t", "i", "--output", "x.svg"]],
)
def test_wrong_command_line_fails_before_spark_starts(site: Site, args: list[str]) -> None:
    """`sieve inspect` reports a missing name or an unwritable file before Spark starts."""
    done = _inspect(site, *args)
    assert done.returncode == 2
    assert "Usage: sieve inspect" in done.stderr
