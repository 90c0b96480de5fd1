"""Files read at equal bytes, Sieve's shapes and their rivals: ``make bench-rivals``.

Bytes are in percent of 8 bytes a row. Files are the mean over six kinds of query, and each kind
counts alike. Before anything is counted, every structure must have named every file that holds a
matching key.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from bench.rivals.budgeted import SHAPES, cut, sample, shaped
from bench.rivals.columns import NAMES, Column, column
from bench.rivals.queries import KINDS, queries
from bench.rivals.report import summary, table
from bench.rivals.structures import Structure, rivals, truth

BUDGETS = (0.3, 1.0, 3.0, 6.0, 30.0)
FOLDER = Path(__file__).resolve().parents[2] / "build" / "bench-rivals"


@dataclass(frozen=True, slots=True)
class Measured:
    """One structure on one column.

    Attributes:
        column: its name.
        structure: its name.
        budget: percent it was to keep within; None for those that know no budget.
        bytes: percent it needs.
        files: files read by a query, by kind.
        mean: over the kinds.
        seconds: to build it, from the sorted keys on.
    """

    column: str
    structure: str
    budget: float | None
    bytes: float
    files: dict[str, float]
    mean: float
    seconds: float


class Judge:
    """Asks structures about one column."""

    def __init__(self, of: Column, count: int) -> None:
        self._column = of
        self._queries = queries(of, count)
        self.exact = truth(of)
        self._truth = {kind: self.exact.may_hold(*q) for kind, q in self._queries.items()}

    def least(self) -> float:
        """Files that hold a match."""
        return float(np.mean([answer.sum(axis=1).mean() for answer in self._truth.values()]))

    def measured(self, structure: Structure, budget: float | None, seconds: float) -> Measured:
        """What a structure reads, once it is sure that it misses nothing."""
        files = {}
        for kind, (low, high) in self._queries.items():
            answer = structure.may_hold(low, high)
            missed = int(np.count_nonzero(self._truth[kind] & ~answer))
            if missed:
                raise SystemExit(
                    f"{structure.name} on {self._column.name} misses {missed} files: {kind}"
                )
            files[kind] = float(answer.sum(axis=1).mean())
        size = 100 * structure.nbytes / (8 * len(self._column.codes))
        mean = float(np.mean([files[kind] for kind in KINDS]))
        return Measured(self._column.name, structure.name, budget, size, files, mean, seconds)


def main() -> None:
    """Measure, print a table a column, and say which goals were missed."""
    parser = argparse.ArgumentParser(prog="python -m bench rivals", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--queries", type=int, default=1000, help="of each kind")
    parser.add_argument("--columns", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--budgets", nargs="+", type=float, default=BUDGETS, help="percent")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder for TPC-H")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    found: list[Measured] = []
    least: dict[str, float] = {}
    for name in args.columns:
        measured, least[name] = _measure(column(name, args.rows, args.files, args.data), args)
        found += measured
        table(console, name, measured, least[name], args.budgets)
    summary(console, found, least)
    if args.json:
        args.json.write_text(
            json.dumps({"least": least, "measured": [asdict(m) for m in found]}, indent=1)
        )


def _measure(of: Column, args: argparse.Namespace) -> tuple[list[Measured], float]:
    judge = Judge(of, args.queries)
    found = [judge.measured(rival, None, 0.0) for rival in rivals(of, judge.exact)]
    mass = sample(of)
    for percent in args.budgets:
        budget = percent / 100 * 8 * len(of.codes)
        intervals = cut(of, mass, budget)
        for shape in args.shapes:
            started = time.perf_counter()
            built = shaped(of, mass, intervals, shape, budget)
            found.append(judge.measured(built, percent, time.perf_counter() - started))
    return found, judge.least()


if __name__ == "__main__":
    main()
