"""Getting the build code to the executors, and finding out whether they can run it."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import sys
import zipfile
from pathlib import Path

from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession

import sieve
from sieve.errors import UnavailableError
from sieve.indexing.shared_storage import on_this_machine

_NEEDED = ("numpy", "pyarrow", "pandas")
_PROBES = 64
"""Most slots that are tried for what they lack."""


def send_code(context: SparkContext) -> None:
    """Send the package ``sieve`` to all executors, and pick the Python that they run.

    On a local master the executors live in the driver, and this interpreter is known to have what
    the build needs; elsewhere Spark's own settings name the interpreter, as for any PySpark job.
    """
    if on_this_machine(context):
        context.pythonExec = sys.executable
    else:
        set_one = context.getConf().get("spark.pyspark.python")
        context.pythonExec = set_one or os.environ.get("PYSPARK_PYTHON") or "python3"
    data = _zipped(Path(sieve.__file__).resolve().parent)
    # The driver's own folder, which goes when it ends. A file may be added from one place only, and
    # a front end that was started again adds it once more.
    folder = Path(SparkFiles.getRootDirectory()) / "sieve-code"
    folder.mkdir(exist_ok=True)
    archive = folder / f"sieve-{hashlib.sha256(data).hexdigest()[:16]}.zip"
    partial = archive.with_suffix(f".{os.getpid()}")
    partial.write_bytes(data)
    partial.replace(archive)
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
    needed = (*_NEEDED, "sieve.indexing.tasks")

    # All in one function: executors cannot look up names of this module.
    def lacking(_: object) -> list[str]:
        lacks = []
        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError as error:
                lacks.append(f"{name} ({error})")
        return lacks

    if on_this_machine(context):
        lacks = lacking(None)
    else:
        slots = max(1, min(context.defaultParallelism, _PROBES))
        lacks = context.parallelize(range(slots), slots).flatMap(lacking).collect()
    if lacks:
        raise UnavailableError(
            "SIEVE_EXECUTOR_LACKS",
            f"the executors' Python ({context.pythonExec}) lacks {', '.join(sorted(set(lacks)))}; "
            "install it there, or set spark.pyspark.python to an interpreter that has it",
        )


def zone_matters(format_name: str, type_name: str) -> bool:
    """Whether what a file's reader makes of a column may depend on the zone of its JVM.

    ORC keeps local times; Parquet's INT96 times and those of the Julian calendar are shifted by it.
    """
    if format_name == "orc":
        return type_name in ("date", "timestamp", "timestamp_ntz")
    return format_name in ("parquet", "hudi") and type_name == "timestamp"


def check_zones(context: SparkContext, spark: SparkSession) -> None:
    """Raise UnavailableError unless the executors' JVMs are in the driver's time zone."""
    if on_this_machine(context):
        return
    zone = "java_method('java.time.ZoneId', 'systemDefault')"
    ours = str(spark._jvm.java.time.ZoneId.systemDefault().getId())  # noqa: SLF001 - no other door
    slots = max(1, min(context.defaultParallelism, _PROBES))
    found = spark.range(0, slots, 1, slots).selectExpr(f"{zone} AS zone").distinct().collect()
    others = sorted({row.zone for row in found} - {ours})
    if others:
        raise UnavailableError(
            "SIEVE_EXECUTOR_ZONE",
            f"executors are in time zone {', '.join(others)} and the driver is in {ours}, so they "
            "read other times out of the same file; set -Duser.timezone in "
            "spark.driver.extraJavaOptions and spark.executor.extraJavaOptions to one zone",
        )
