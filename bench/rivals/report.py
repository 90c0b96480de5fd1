"""What the comparison prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich import box
from rich.console import Console
from rich.table import Table

from bench.rivals.columns import GOALS

# What `auto` may read more than the best that needs no more bytes, and than the least possible.
_SLACK = 1.02
_NEAR = 1.10


class Figures(Protocol):
    """One structure on one column: see `Measured`."""

    @property
    def column(self) -> str: ...  # noqa: D102 - documented on the record
    @property
    def structure(self) -> str: ...  # noqa: D102
    @property
    def budget(self) -> float | None: ...  # noqa: D102
    @property
    def bytes(self) -> float: ...  # noqa: D102
    @property
    def mean(self) -> float: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102


def table(
    console: Console,
    name: str,
    measured: Sequence[Figures],
    least: float,
    budgets: Sequence[float],
) -> None:
    """One column: rivals with their bytes, then shapes by budget."""
    rows = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    rows.add_column(f"{name}\n[dim]least possible {least:.2f}[/dim]", no_wrap=True)
    rows.add_column("files\nread", justify="right", no_wrap=True)
    rows.add_column("bytes\n%", justify="right", no_wrap=True, style="dim")
    for budget in budgets:
        rows.add_column(f"files at\n{budget:g} % bytes", justify="right", no_wrap=True)
    for one in (m for m in measured if m.budget is None):
        rows.add_row(one.structure, _files(one.mean), f"{one.bytes:.2f}")
    rows.add_section()
    shapes: dict[str, dict[float, Figures]] = {}
    for one in measured:
        if one.budget is not None:
            shapes.setdefault(one.structure, {})[one.budget] = one
    for shape, by_budget in shapes.items():
        cells = (
            f"{_files(m.mean)} [dim]{m.bytes:.2f}[/dim]" for m in map(by_budget.get, budgets) if m
        )
        rows.add_row(shape, "", "", *cells)
    console.print(rows)


def summary(console: Console, measured: Sequence[Figures], least: dict[str, float]) -> None:
    """Which goals `auto` missed."""
    missed = 0
    autos = [m for m in measured if m.structure == "auto"]
    for auto in autos:
        others = [
            m
            for m in measured
            if m.column == auto.column
            and m.structure != "auto"
            and m.bytes <= max(auto.bytes, auto.budget or 0.0)
            and (m.budget is None or m.budget <= (auto.budget or 0.0))
        ]
        best = min(others, key=lambda m: m.mean, default=auto)
        if auto.mean > best.mean * _SLACK:
            missed += 1
            console.print(
                f"  {auto.column} at {auto.budget:g} %: auto reads {auto.mean:.2f}, "
                f"{best.structure} with {best.bytes:.2f} % reads {best.mean:.2f}"
            )
        goal = GOALS.get(auto.column)
        if goal is not None and auto.budget == goal and auto.mean > least[auto.column] * _NEAR:
            missed += 1
            console.print(
                f"  {auto.column} at {auto.budget:g} %: auto reads {auto.mean:.2f}, "
                f"the least possible is {least[auto.column]:.2f}"
            )
        if auto.bytes > (auto.budget or 0.0):
            missed += 1
            console.print(
                f"  {auto.column} at {auto.budget:g} %: auto needs {auto.bytes:.2f} % bytes"
            )
    console.print(f"  {missed} goals missed by auto, {len(autos)} columns and budgets\n")


def _files(mean: float) -> str:
    return f"{mean:.2f}" if mean < 100 else f"{mean:.0f}"
