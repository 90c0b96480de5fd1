"""``make bench-start``: measures the time that Sieve adds to a new driver's first answer.

Each round runs all commands in turn, each command in a new process and a new folder. The benchmark
compares two commands only within a round, in which other load slows all commands alike. A command's
CPU time includes all descendants of its process.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import first_create
from sieve.client.spark_home import find_spark

_SET_CHILD_SUBREAPER = 36

PAIRS = {
    "first SHOW SIEVE INDEXES - first SHOW TABLES": (
        ("sieve", "SHOW SIEVE INDEXES"),
        ("sieve", "SHOW TABLES"),
    ),
    "sieve sql - spark-sql, SELECT 1": (("sieve", "SELECT 1"), ("spark", "SELECT 1")),
}


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU seconds and the wall-clock seconds of a command."""

    wall: float
    cpu: float

    def __sub__(self, other: Taken) -> Taken:
        return Taken(self.wall - other.wall, self.cpu - other.cpu)


def main() -> None:
    """Runs all commands in turn, and prints the differences in time between pairs of commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", help="the command sieve of another checkout, to compare with")
    options = parser.parse_args()
    adopt_orphans()
    programs = {
        "sieve": [str(Path(sys.executable).with_name("sieve")), "sql"],
        "spark": [str(find_spark(os.environ).path / "bin" / "spark-sql")],
    }
    pairs = dict(PAIRS)
    if options.before:
        programs["before"] = [options.before, "sql"]
        show = ("before", "SHOW SIEVE INDEXES")
        pairs["before: first SHOW SIEVE INDEXES - now"] = (show, ("sieve", show[1]))
    taken: dict[tuple[str, str], list[Taken]] = {}
    for _ in range(options.rounds):
        for command in dict.fromkeys(one for pair in pairs.values() for one in pair):
            program, sql = command
            one = measured([*programs[program], "-e", sql])
            print(f"{program}: {sql}: CPU {one.cpu:.1f} s, wall {one.wall:.1f} s", flush=True)
            taken.setdefault(command, []).append(one)
    report(taken, pairs)
    first_create.report()


def adopt_orphans() -> None:
    """Makes this process the parent of each descendant whose own parent has ended.

    The front end ends after its parent, the driver. This setting lets the benchmark measure the
    front end's CPU time.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def measured(command: Sequence[str]) -> Taken:
    """Runs a command, waits until all of its processes have ended, and returns its times."""
    with tempfile.TemporaryDirectory() as folder:
        # In a new folder, the command finds no class archive of the user and no metastore of an
        # earlier run.
        environment = os.environ | {"XDG_CACHE_HOME": folder}
        before, started = children_cpu(), time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        wall = time.perf_counter() - started
        while reap():
            pass
        return Taken(wall, children_cpu() - before)


def reap() -> bool:
    """Waits until an adopted process ends; returns False if there is no adopted process."""
    try:
        os.wait()
    except ChildProcessError:
        return False
    return True


def children_cpu() -> float:
    """CPU seconds of all ended processes that this process has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def report(
    taken: Mapping[tuple[str, str], Sequence[Taken]],
    pairs: Mapping[str, tuple[tuple[str, str], tuple[str, str]]],
) -> None:
    """Prints each command's median times, and each pair's median difference."""
    table = Table("", "CPU, s", "wall, s")
    for (program, sql), each in taken.items():
        table.add_row(f"{program}: {sql}", *medians(each))
    table.add_section()
    for title, (one, other) in pairs.items():
        rounds = zip(taken[one], taken[other], strict=True)
        table.add_row(title, *medians([a - b for a, b in rounds]))
    Console().print(table)


def medians(each: Sequence[Taken]) -> tuple[str, str]:
    """Median CPU and wall-clock seconds as text, each with its minimum and maximum."""

    def shown(values: list[float]) -> str:
        return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"

    return shown([one.cpu for one in each]), shown([one.wall for one in each])


if __name__ == "__main__":
    main()
