"""Measures the CPU time of a Spark Python worker between tasks, with and without `arrow_jobs`.

Before each task, a worker invalidates Python's import caches. After each task, the worker collects
garbage. The benchmark does the same work in one process. The process has imported the same modules
from the same archives as a build's worker. The benchmark runs no Spark job. Other load of the
machine has little effect on the CPU time.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import sys
import time
from pathlib import Path

from sieve.client.spark_home import find_spark, shim_jar

TIMES = 20


def main() -> None:
    """Prints the CPU milliseconds between two tasks, without and with `arrow_jobs`."""
    parser = argparse.ArgumentParser(prog="bench worker", description=__doc__)
    parser.parse_args()
    spark = find_spark({})
    archives = sorted((spark.path / "python" / "lib").glob("*.zip"))
    sys.path[:0] = [str(path) for path in archives]
    sys.path.append(str(shim_jar(spark)))
    for name in ("pyspark.worker", "numpy", "pandas", "pyarrow", "sieve.indexing.segment_tasks"):
        importlib.import_module(name)
    from sieve.indexing.arrow_jobs import spare_next_task

    without = _between_tasks()
    spare_next_task()
    print(f"ms of CPU between two tasks: without {without:.1f}, with {_between_tasks():.1f}")


def _between_tasks() -> float:
    """Mean CPU milliseconds between two tasks."""
    started = time.process_time()
    for _ in range(TIMES):
        importlib.invalidate_caches()
        # This search for a missing module makes Python list the files of every archive.
        importlib.util.find_spec(f"absent_{Path(__file__).stem}")
        gc.collect()
    return (time.process_time() - started) / TIMES * 1000


if __name__ == "__main__":
    main()
