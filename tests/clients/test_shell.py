"""Tests what `sieve sql` prints.

On a terminal, it prints aligned rows and progress. Elsewhere, it separates columns by tabs.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from pathlib import Path

import pytest
from command import sieve

COLUMNS = 72
STATEMENTS = """
CREATE TABLE t USING parquet AS SELECT id, 'x' AS s FROM range(0, 10000, 1, 8);
CREATE SIEVE INDEX ON t (id, s);
SELECT 'a' AS first, 12345 AS second UNION ALL SELECT 'long', 1;
EXPLAIN SIEVE SELECT * FROM t WHERE id = 123;
SELECT 1 AS `Response code`;
CHECK SIEVE INDEX ON t;
"""


def on_terminal(folder: Path, *args: str) -> str:
    """The standard output and error that `sieve` prints on a terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        command = str(Path(sys.executable).with_name("sieve"))
        os.execv(command, [command, *args])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    printed = b""
    while True:
        try:
            some = os.read(terminal, 1 << 16)
        except OSError:  # The command has closed the terminal.
            break
        if not some:
            break
        printed += some
    _, status = os.waitpid(process, 0)
    assert status == 0, printed.decode()
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.long
def test_a_terminal_gets_aligned_rows_and_steps(tmp_path: Path) -> None:
    """On a terminal, `sieve sql` wraps a wide last column, and prints a wide result as a list.

    The shell also aligns rows, and shows the progress of a statement.
    """
    (tmp_path / "s.sql").write_text(STATEMENTS)
    printed = on_terminal(tmp_path, "sql", "-f", "s.sql")
    lines = [line.rpartition("\r")[2].rstrip() for line in printed.split("\n")]
    assert lines[0].startswith("Starting Spark")
    assert lines.count("Response code") == 1
    at = lines.index("first  second")
    assert lines[at + 1 : at + 3] == ["a      12345", "long   1"]
    at = lines.index("row 1", at)
    assert lines[at + 1] == "scan          1"
    assert "files_read    1" in lines[at:]
    assert lines[lines.index("Response code") + 1] == "1"
    assert any(line.startswith("index     file  status  detail") for line in lines)
    assert "id_sieve  NULL  ok      files: 8 ok" in lines
    assert "\rreading " in printed
    assert " of 8 files" in printed
    # Column s has one value, which every file contains. So CREATE gives advice about the index on
    # s. All lines of this advice have the same indentation.
    advice = next(k for k, line in enumerate(lines) if "this index cannot" in line)
    assert lines[advice + 1].startswith(" " * (lines[advice].index("this index")))


@pytest.mark.long
def test_a_pipe_gets_tabs(tmp_path: Path) -> None:
    """To a pipe, `sieve sql` prints the same output as Spark's own shell.

    A statement without result columns prints no header.
    """
    (tmp_path / "s.sql").write_text(STATEMENTS)
    lines = sieve(tmp_path, "sql", "-f", "s.sql").splitlines()
    assert lines[0].split("\t") == [
        "index", "version", "files", "bytes", "seconds", "change", "advice",
    ]  # fmt: skip
    at = lines.index("first\tsecond")
    assert lines[at + 1 : at + 3] == ["a\t12345", "long\t1"]
    assert lines[lines.index("Response code") + 1] == "1"
    assert "id_sieve\tNULL\tok\tfiles: 8 ok" in lines
