"""Draws mutants, runs mypy and the tests that reach each mutant, and lists the survivors."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.mutants import planted
from tests.mutants.drawing import Mutant, draw
from tests.mutants.running import Bench

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Tests the mutants. The exit code is 1 if more than one in ten mutants survives.

    No test can kill a mutant that behaves like the original code. So read each survivor.
    """
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=100, help="how many to draw")
    parser.add_argument("--seed", default=str(random.SystemRandom().getrandbits(32)))
    parser.add_argument("--only", default="", help="modules whose paths contain this")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tested at once")
    parser.add_argument(
        "--no-spark", dest="spark", action="store_false", help="unit tests alone, no tests of Spark"
    )
    parser.add_argument("--planted", action="store_true", help="the faults of planted.toml instead")
    given = parser.parse_args()
    if given.planted:
        return planted.main(given.only)
    sys.stdout.write(f"--seed {given.seed} draws these again\n")
    drawn = list(islice(draw(ROOT, given.seed, given.only), given.number))
    with tempfile.TemporaryDirectory(prefix="sieve-mutants-") as folder:
        free: SimpleQueue[Bench] = SimpleQueue()
        benches = [Bench(ROOT, Path(folder) / str(k)) for k in range(given.jobs)]
        reach = benches[0].measure()
        for bench in benches:
            bench.warm_types()
            free.put(bench)

        one_spark = Lock()

        def verdict(mutant: Mutant) -> str:
            bench = free.get()
            try:
                end = bench.end(mutant, reach)
                if end in ("killed", "by time"):
                    return end
                if bench.killed_by_types(mutant):
                    return "by types"
                if given.spark:
                    with one_spark:
                        if bench.killed_on_spark(mutant):
                            return "by Spark"
            finally:
                free.put(bench)
            return end

        ends: Counter[str] = Counter()
        with ThreadPoolExecutor(given.jobs) as pool:
            for mutant, end in zip(drawn, pool.map(verdict, drawn), strict=True):
                ends[end] += 1
                sys.stdout.write(f"{end:9} {mutant}\n")
                sys.stdout.flush()
        for bench in benches:
            bench.close()
    sys.stdout.write(f"{dict(ends)}\n")
    return 0 if ends["SURVIVES"] + ends["UNREACHED"] <= given.number / 10 else 1


if __name__ == "__main__":
    sys.exit(main())
