"""Compares Sieve's shapes with other structures of equal size: ``make bench-rivals``.

The numbers of files and bytes that queries read are means over six kinds of query with equal
weights. The sizes of structures are in percent of the column's bytes. All structures use the key
codes that a build would choose. The benchmark also checks that no structure omits a file with a
matching key.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench.rivals.budgeted import SHAPES, Builder
from bench.rivals.columns import NAMES, Column, column
from bench.rivals.judge import Judge, Measured
from bench.rivals.picture import draw
from bench.rivals.report import summary, table
from bench.rivals.structures import rivals

BUDGETS = (0.3, 1.0, 3.0, 6.0, 20.0, 30.0)
FOLDER = Path(__file__).resolve().parents[2] / "build" / "bench-rivals"


def main() -> None:
    """Measures all columns. Prints a table per column and the missed goals, and draws a picture."""
    parser = argparse.ArgumentParser(prog="python -m bench rivals", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--spread", type=float, default=0.0, help="of bytes a row, between files")
    parser.add_argument("--queries", type=int, default=1000, help="of each kind")
    parser.add_argument("--columns", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--budgets", nargs="+", type=float, default=BUDGETS, help="percent")
    parser.add_argument("--picture", type=Path, default=FOLDER / "rivals.png", help="PNG file")
    parser.add_argument("--json", type=Path, help="file for all figures; default: by the picture")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder for TPC-H")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 165, highlight=False)
    found: list[Measured] = []
    least: dict[str, float] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        # Each column has one step of the progress bar per budget, one step for the rivals, and one
        # step for the budget `auto`.
        steps = len(args.budgets) + 2
        bar = progress.add_task("", total=steps * len(args.columns))
        for name in args.columns:
            progress.update(bar, description=name)
            of = replace(column(name, args.rows, args.files, args.data), spread=args.spread)
            measured, least[name] = _measure(of, args, lambda: progress.advance(bar))
            found += measured
            table(console, name, measured, least[name], args.budgets)
    summary(console, found, least)
    _keep(args, found, least)
    console.print(f"  picture: {args.picture}")


def _measure(
    of: Column, args: argparse.Namespace, step: Callable[[], None]
) -> tuple[list[Measured], float]:
    judge = Judge(of, args.queries)
    found = [judge.measured(rival, None) for rival in rivals(of, judge.exact)]
    step()
    builder = Builder(of, judge.exact)
    for percent in args.budgets:
        built = builder.within(percent / 100 * of.nbytes, args.shapes)
        found.extend(judge.measured(one, percent) for one in built)
        step()
    if "auto" in args.shapes:
        found.append(judge.measured(builder.automatic(), None))
    step()
    return found, judge.least()


def _keep(args: argparse.Namespace, found: list[Measured], least: dict[str, float]) -> None:
    """Writes the figures to a JSON file, and the picture to a PNG file."""
    figures = args.json or args.picture.with_suffix(".json")
    for file in (args.picture, figures):
        file.parent.mkdir(parents=True, exist_ok=True)
    of = {key: getattr(args, key) for key in ("rows", "files", "queries", "spread")}
    measured = [asdict(m) for m in found]
    figures.write_text(json.dumps({**of, "least": least, "measured": measured}, indent=1))
    draw(found, least, args.files).savefig(args.picture)


if __name__ == "__main__":
    main()
