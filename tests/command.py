"""The ``sieve`` command as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def sieve(folder: Path, *args: str, **environ: str) -> str:
    """Runs ``sieve`` in a folder until it ends; returns the standard output.

    Args:
        folder: the working folder of the command.
        args: the arguments of the command.
        environ: environment variables in addition to those of the test run.
    """
    done = subprocess.run(
        [str(Path(sys.executable).with_name("sieve")), *args],
        cwd=folder,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
