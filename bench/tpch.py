"""Generates TPC-H's raw tables with the program tpchgen-cli."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def generate(folder: Path, table: str, scale: float) -> Path:
    """Returns the path of a raw table, one Parquet file. Generates this file unless it exists.

    Args:
        folder: folder for all tables of this scale.
        table: the table's name in TPC-H.
        scale: scale factor.
    """
    target = folder / f"{table}.parquet"
    if not target.exists():
        part = folder / "raw.tmp"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        command = [Path(sys.executable).parent / "tpchgen-cli", "parquet", "-s", str(scale)]
        subprocess.run(
            [*command, f"--tables={table}", f"--output-dir={part}"], check=True, capture_output=True
        )
        (part / target.name).rename(target)
        part.rmdir()
    return target
