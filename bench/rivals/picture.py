"""Plots files read by index size: a panel per column, a line per shape, a dot per rival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from bench.rivals.budgeted import AUTOMATIC
from bench.rivals.judge import Measured

_ACROSS: Final = 4
_LEAST: Final = "least possible"
_TOLD: Final = 1.0
"""The budget, in percent, for which each panel shows the number of files read."""

_LINES: Final[Mapping[str, Mapping[str, Any]]] = {
    "auto": {"color": "#0d4d94", "lw": 5, "alpha": 0.45, "marker": "o", "ms": 6.5, "mew": 0},
    "intervals": {"color": "#1f9bcf", "lw": 1.3, "marker": "."},
    "map": {"color": "#9333b8", "lw": 1.6, "marker": "."},
}
_DOTS: Final = {
    AUTOMATIC: ("o", "#ea580c"),
    "min/max": ("s", "#1a1a1a"),
    "10 intervals": ("v", "#8a6d3b"),
    "160 intervals": ("^", "#8a6d3b"),
    "seed sieve, error 10": ("P", "#d97706"),
    "seed sieve, error 100": ("X", "#d97706"),
    "Bloom filter a file": ("D", "#db2777"),
    "exact inverted list": ("*", "#111827"),
}


def draw(measured: Sequence[Measured], least: Mapping[str, float], files: int) -> Figure:
    """Draws the figure. Both axes are logarithmic, and all panels have the same axis of bytes.

    Args:
        measured: measurements of all structures for all columns.
        least: for each column, the mean number of files with a match.
        files: number of files, which is the same for each column.
    """
    # The legend needs one more cell of the grid.
    rows = len(least) // _ACROSS + 1
    figure = Figure(figsize=(13, 1 + 2.4 * rows), dpi=80, layout="constrained")
    panels = figure.subplots(rows, _ACROSS, sharex=True, squeeze=False)
    for ax, name in zip(panels.flat, least, strict=False):
        of = [m for m in measured if m.column == name]
        _panel(ax, name, of, least[name])
        _scales(ax, min(m.mean for m in of), files)
    for ax in panels.flat[max(0, len(least) - _ACROSS) : len(least)]:
        ax.tick_params(labelbottom=True)
    for ax in panels.flat[len(least) :]:
        ax.set_axis_off()
    figure.suptitle(
        f"Files that a query reads, of {files}, against the bytes of the index: "
        "lower left is better",
        fontsize=15,
    )
    figure.supylabel("files read, mean over six kinds of query")
    figure.supxlabel("bytes of the index, % of the column's")
    handles = {line.get_label(): line for ax in panels.flat for line in ax.get_lines()}
    order = [name for name in (*_LINES, _LEAST, *_DOTS) if name in handles]
    legend = panels.flat[len(least)].legend(
        [handles[name] for name in order],
        [f"Sieve, {name}" if name in _LINES else name for name in order],
        loc="upper left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0,
        ncols=2 if len(least) % _ACROSS < _ACROSS - 1 else 1,
        fontsize=12 if len(least) % _ACROSS < _ACROSS - 1 else 9,
        frameon=False,
    )
    # The legend can be wider than its cell, so the layout must ignore the legend.
    legend.set_in_layout(False)
    return figure


def _panel(ax: Axes, name: str, measured: Sequence[Measured], least: float) -> None:
    ax.set_title(name, fontsize=11, loc="left")
    ax.grid(color="#e5e7eb", lw=0.7)
    ax.set_axisbelow(True)
    ax.axhline(least, color="#c2410c", lw=1.2, label=_LEAST)
    for shape, style in _LINES.items():
        of = sorted((m for m in measured if m.structure == shape), key=lambda m: (m.bytes, -m.mean))
        if of:
            ax.plot([m.bytes for m in of], [m.mean for m in of], label=shape, **style)
    for m in measured:
        if m.structure in _DOTS:
            marker, color = _DOTS[m.structure]
            size = 9 if marker == "*" else 7
            ax.plot(m.bytes, m.mean, marker, color=color, ms=size, mew=0, label=m.structure)
    _in_words(ax, measured)


def _in_words(ax: Axes, measured: Sequence[Measured]) -> None:
    """Writes into a panel the number of files read with min/max, and with `auto`."""
    plain = next((m for m in measured if m.structure == "min/max"), None)
    auto = next((m for m in measured if m.structure == "auto" and m.budget == _TOLD), None)
    if plain and auto:
        text = f"min/max {plain.mean:.3g}\nauto at {_TOLD:g} %: {auto.mean:.3g}"
        ax.text(0.03, 0.05, text, transform=ax.transAxes, fontsize=9, color="#0d4d94")


def _scales(ax: Axes, least: float, files: int) -> None:
    """Sets logarithmic scales. The scale of bytes is the same in all panels."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    # Leaves space for the text below the line of the lower bound.
    ax.set_ylim(least * (least / files) ** 0.6 / 1.8, 1.4 * files)
    ticks = [t for t in (0.1, 0.3, 1, 3, 10, 30, 50, 100, 300, 1000, 3000, 10000) if t <= files]
    for axis, places in ((ax.xaxis, (0.01, 0.1, 1, 10, 100)), (ax.yaxis, [*ticks, files])):
        axis.set_major_locator(FixedLocator(places))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
