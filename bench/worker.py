"""CPU time of a Spark Python worker between two tasks, with and without `arrow_jobs`.

Spark invalidates the import caches before each task, and collects garbage after each task. The
benchmark does both in a process with the imports of a build's worker. The imports come from the
same archives as in a worker. No Spark job runs. The benchmark measures CPU time, which other load
on the machine hardly affects.
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
    """Prints milliseconds of CPU per task."""
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
    """Mean milliseconds of CPU between two tasks."""
    started = time.process_time()
    for _ in range(TIMES):
        importlib.invalidate_caches()
        # To search for a missing module, Python lists the files of every archive.
        importlib.util.find_spec(f"absent_{Path(__file__).stem}")
        gc.collect()
    return (time.process_time() - started) / TIMES * 1000


if __name__ == "__main__":
    main()
