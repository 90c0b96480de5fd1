"""TPC-H's raw tables, made by tpchgen-cli."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def generate(folder: Path, table: str, scale: float) -> Path:
    """A raw table of a scale, one Parquet file; an earlier run's is used again.

    Args:
        folder: for tables of this scale alone.
        table: TPC-H's name of it.
        scale: the scale factor.
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
