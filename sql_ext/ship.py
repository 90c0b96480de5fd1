"""Getting the build code to the executors, and finding out whether they can run it."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from pyspark import SparkContext

from sieve.errors import UnavailableError

_NEEDED = ("numpy", "pyarrow", "pandas")


def send_code(context: SparkContext) -> None:
    """Send the package ``sieve`` to all executors, and pick the Python that they run.

    On a local master the executors live in the driver, and this interpreter is known to have what
    the build needs; elsewhere Spark's own settings name the interpreter.
    """
    chosen = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
    local = context.master.startswith("local") and not context.master.startswith("local-cluster")
    context.pythonExec = chosen or (sys.executable if local else "python3")
    package = Path(__file__).resolve().parent.parent / "sieve"
    data = _zipped(package)
    folder = Path(tempfile.mkdtemp(prefix="sieve-"))
    archive = folder / f"sieve-{hashlib.sha256(data).hexdigest()[:16]}.zip"
    archive.write_bytes(data)
    context.addPyFile(str(archive))


def _zipped(package: Path) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*.py")):
            # A fixed date: the same code has the same bytes, so it is sent once.
            entry = zipfile.ZipInfo(str(Path("sieve") / path.relative_to(package)))
            archive.writestr(entry, path.read_bytes())
    return sink.getvalue()


def check_executors(context: SparkContext) -> None:
    """Raise UnavailableError naming what an executor's Python lacks.

    One small task is tried an executor slot; an executor that no task reached fails in the build
    itself, by the same names.
    """
    needed = (*_NEEDED, "sieve.build.tasks")
    zone = time.strftime("%z")

    def probe(_: object) -> list[str]:
        problems = [f"module {name}" for name in needed if not _found(name)]
        if time.strftime("%z") != zone:
            problems.append(f"the driver's time zone (UTC{zone}, not UTC{time.strftime('%z')})")
        return problems

    slots = max(1, min(context.defaultParallelism, 64))
    missing = sorted(set(context.parallelize(range(slots), slots).flatMap(probe).collect()))
    if missing:
        raise UnavailableError(
            "SIEVE_EXECUTOR_LACKS",
            f"the executors' Python ({context.pythonExec}) lacks {', '.join(missing)}; install it "
            "there, or set spark.pyspark.python to an interpreter that has it",
        )


def _found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
