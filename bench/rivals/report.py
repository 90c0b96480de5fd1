"""Prints the results of the comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from bench.rivals.budgeted import AUTOMATIC
from bench.rivals.columns import GOALS
from bench.rivals.judge import Measured
from bench.rivals.queries import KINDS

# `auto` may read at most `_SLACK` times the files of the best structure up to the size of `auto`.
# `auto` may also read at most `_NEAR` times the lower bound.
_SLACK = 1.02
_NEAR = 1.10


def table(
    console: Console,
    name: str,
    measured: Sequence[Measured],
    least: float,
    budgets: Sequence[float],
) -> None:
    """Prints the table of one column: first the rivals with their sizes, then shapes by budget."""
    rows = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    rows.add_column(f"{name}\n[dim]least possible {least:.2f}[/dim]", no_wrap=True)
    rows.add_column("files\nread", justify="right", no_wrap=True)
    rows.add_column("MB\nread", justify="right", no_wrap=True)
    rows.add_column("bytes\n%", justify="right", no_wrap=True, style="dim")
    for budget in budgets:
        rows.add_column(f"files, MB at\n{budget:g} % bytes", justify="right", no_wrap=True)
    for one in (m for m in measured if m.budget is None):
        rows.add_row(one.structure, *_read(one), f"{one.bytes:.2f}")
    rows.add_section()
    shapes: dict[str, dict[float, Measured]] = {}
    for one in measured:
        if one.budget is not None:
            shapes.setdefault(one.structure, {})[one.budget] = one
    for shape, by_budget in shapes.items():
        cells = (
            f"{' '.join(_read(m))} [dim]{m.bytes:.2f}[/dim]" if m else "-"
            for m in map(by_budget.get, budgets)
        )
        rows.add_row(shape, "", "", "", *cells)
    console.print(rows)


def summary(console: Console, measured: Sequence[Measured], least: Mapping[str, float]) -> None:
    """Prints the goals that `auto` misses, and a comparison for each kind of query."""
    autos = [m for m in measured if m.structure == "auto"]
    missed = [text for auto in autos for text in _missed(auto, measured, least[auto.column])]
    missed += [text for m in measured if m.structure == AUTOMATIC for text in _dear(m, autos)]
    for text in missed:
        console.print(f"  {text}")
    console.print(f"  {len(missed)} goals missed by auto, {len(autos)} columns and budgets")
    for kind in KINDS:
        console.print(f"  {kind}: {_by_kind(kind, autos, measured)}", soft_wrap=True)


def _by_kind(kind: str, autos: Sequence[Measured], measured: Sequence[Measured]) -> str:
    pairs = ((m, _best(m, measured, lambda m: m.files[kind])) for m in autos)
    worse = [(m, best) for m, best in pairs if best and _over(kind, m, best) > 0]
    if not worse:
        return "none reads more than the best at no more bytes"
    m, best = max(worse, key=lambda pair: _over(kind, *pair))
    return (
        f"{len(worse)} of {len(autos)} read more than the best at no more bytes, at worst "
        f"{_files(m.files[kind])} for {_files(best.files[kind])} of {best.structure} "
        f"({m.column}, {m.budget:g} %)"
    )


def _over(kind: str, one: Measured, other: Measured) -> float:
    """The files that `one` reads, minus `_SLACK` times the files that `other` reads."""
    return one.files[kind] - other.files[kind] * _SLACK


def _missed(auto: Measured, measured: Sequence[Measured], least: float) -> Iterator[str]:
    at = f"{auto.column} at {auto.budget:g} %: auto"
    best = _best(auto, measured, lambda m: m.mean)
    if best and auto.mean > best.mean * _SLACK:
        yield (
            f"{at} reads {auto.mean:.2f}, "
            f"{best.structure} with {best.bytes:.2f} % reads {best.mean:.2f}"
        )
    if auto.budget == GOALS.get(auto.column) and auto.mean > least * _NEAR:
        yield f"{at} reads {auto.mean:.2f}, the least possible is {least:.2f}"
    if auto.bytes > (auto.budget or 0.0):
        yield f"{at} needs {auto.bytes:.2f} % bytes"


def _dear(chosen: Measured, autos: Sequence[Measured]) -> Iterator[str]:
    """Yields a line if queries read more files with the budget `auto` than with 1 %."""
    for one in autos:
        if one.column == chosen.column and one.budget == 1 and chosen.mean > one.mean * _SLACK:
            yield f"{one.column}: {AUTOMATIC} reads {chosen.mean:.2f}, 1 % reads {one.mean:.2f}"


def _best(
    auto: Measured, measured: Sequence[Measured], files: Callable[[Measured], float]
) -> Measured | None:
    """The structure up to the size of `auto` that reads the fewest files."""
    budget = auto.budget or 0.0
    others = (
        m
        for m in measured
        if m.column == auto.column
        and m.structure not in ("auto", AUTOMATIC)
        and m.bytes <= max(auto.bytes, budget)
        and (m.budget is None or m.budget <= budget)
    )
    return min(others, key=files, default=None)


def _read(one: Measured) -> tuple[str, str]:
    return _files(one.mean), _files(one.megabytes)


def _files(mean: float) -> str:
    return f"{mean:.2f}" if mean < 100 else f"{mean:.0f}"
