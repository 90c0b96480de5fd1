"""Executor set-up: sends Sieve's code to executors and checks their Python and time zone.

Executors need numpy, pyarrow and pandas, but users install Sieve only on the driver. The front end
sends Sieve's package to the executors as a zip file (``SparkContext.addPyFile``), so driver and
executors always run the same code.
"""

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
from sieve.indexing import segment_tasks
from sieve.indexing.shared_storage import on_this_machine

_NEEDED = ("numpy", "pyarrow", "pandas")
_PROBES = 64
"""Maximum number of tasks that a check runs on the executors, one task per slot."""


def send_code(context: SparkContext) -> None:
    """Sends the package ``sieve`` to all executors, and sets the executors' Python interpreter.

    With a local master, executors use the front end's interpreter, which has all modules that a
    build needs. With any other master, Spark's settings determine the executors' interpreter, as
    for any PySpark job.
    """
    if on_this_machine(context):
        context.pythonExec = sys.executable
    else:
        set_one = context.getConf().get("spark.pyspark.python")
        context.pythonExec = set_one or os.environ.get("PYSPARK_PYTHON") or "python3"
    data = _zipped(Path(sieve.__file__).resolve().parent)
    # Writes the zip file to the driver's own folder, which Spark deletes when the driver ends.
    # Spark rejects a file name that was already added from another path. So a restarted front end
    # must use the same path.
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
            # `ZipInfo` gives each entry the same fixed date. So equal code yields a zip file with
            # the same bytes and the same name. Spark sends equal zip files only once.
            entry = zipfile.ZipInfo(str(Path("sieve") / path.relative_to(package)))
            archive.writestr(entry, path.read_bytes())
    return sink.getvalue()


def check_executors(context: SparkContext) -> None:
    """Raises UnavailableError, with a list of modules, if an executor's Python lacks modules.

    The check runs one small task per slot of the executors. An executor that receives none of the
    tasks may still lack modules. The build's first task on such an executor fails with the same
    message.
    """
    needed = (*_NEEDED, segment_tasks.__name__)

    # Executors cannot import this module, so `missing` calls no other function of the module.
    def missing(_: object) -> list[str]:
        lacks = []
        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError as error:
                lacks.append(f"{name} ({error})")
        return lacks

    if on_this_machine(context):
        lacks = missing(None)
    else:
        slots = max(1, min(context.defaultParallelism, _PROBES))
        lacks = context.parallelize(range(slots), slots).flatMap(missing).collect()
    if lacks:
        raise UnavailableError(
            "SIEVE_EXECUTOR_LACKS",
            f"the executors' Python ({context.pythonExec}) lacks {', '.join(sorted(set(lacks)))}; "
            "install it there, or set spark.pyspark.python to an interpreter that has it",
        )


def zone_matters(format_name: str, type_name: str) -> bool:
    """Returns whether the time zone of the reader's JVM can affect the values of a column.

    ORC files contain local times, so the time zone affects dates and timestamps in ORC. In Parquet,
    the time zone affects only INT96 timestamps and timestamps of the Julian calendar.
    """
    if format_name == "orc":
        return type_name in ("date", "timestamp", "timestamp_ntz")
    return format_name in ("parquet", "hudi", "delta") and type_name == "timestamp"


def check_zones(context: SparkContext, spark: SparkSession) -> None:
    """Raises UnavailableError if an executor's JVM has another time zone than the driver's JVM."""
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
