"""What keys of a join take on their way to a scan: ``python -m bench keys``.

The driver makes a filter of values as they come, unsorted; the front end answers a request with as
many keys, or with the ranges that many become, over 10,000 files. Both are timed apart, warm.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.lookup import LIST, RANGES, predicate_of, request_of, service_of
from bench.made_version import make_version
from bench.session import start_session

KEYS = (10_000, 1_000_000)
FILES = 10_000
DOMAIN = 1 << 40


def main() -> None:
    """Prints milliseconds, the median and the least of the rounds."""
    parser = argparse.ArgumentParser(prog="python -m bench keys", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder) / "spark", {})
        jvm: Any = spark._jvm  # noqa: SLF001 - no public API
        rows = spark.range(1)._jdf  # noqa: SLF001 - no public API
        key = rows.queryExecution().analyzed().output().head()
        filters = jvm.org.apache.spark.sql.sieve.RunTimeFilters
        for n in KEYS:
            values = jvm.java.util.Random(n).longs(n, 0, DOMAIN).boxed().toArray()
            _print(f"driver: a filter of {n:,} keys", partial(filters.oneOf, key, values), rounds)
        spark.stop()
        made = make_version(Path(folder), FILES)
        serve, rng = service_of(made), np.random.default_rng(1)
        for kind in (LIST, RANGES):
            _print(
                f"front end: {kind}",
                partial(serve, request_of(made, predicate_of(kind, rng))),
                rounds,
            )


def _print(title: str, run: Callable[[], object], rounds: int) -> None:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1e3)
    print(f"{title:36} median {np.median(times):8.1f} ms, least {min(times):8.1f} ms")


if __name__ == "__main__":
    main()
