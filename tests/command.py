"""Runs the ``sieve`` command as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def sieve(folder: Path, *args: str, **environ: str) -> str:
    """Runs ``sieve`` in a folder until the command ends; returns the standard output.

    Args:
        folder: the working folder of the command.
        args: the arguments of the command.
        environ: environment variables that are added to those of the test run.
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
