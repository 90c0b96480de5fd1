"""Files read against bytes: a panel a column, Sieve's shapes as lines and their rivals as dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from bench.rivals.judge import Measured

_ACROSS: Final = 4
_LEAST: Final = "least possible"

_LINES: Final[Mapping[str, Mapping[str, Any]]] = {
    "auto": {"color": "#0d4d94", "lw": 5, "alpha": 0.45, "marker": "o", "ms": 6.5, "mew": 0},
    "intervals": {"color": "#1f9bcf", "lw": 1.3, "marker": "."},
    "runs": {"color": "#2e8b57", "lw": 1.3, "ls": "--", "marker": "."},
    "map": {"color": "#9333b8", "lw": 1.6, "marker": "."},
}
_DOTS: Final = {
    "min/max": ("s", "#1a1a1a"),
    "10 intervals": ("v", "#8a6d3b"),
    "160 intervals": ("^", "#8a6d3b"),
    "seed sieve, error 10": ("P", "#d97706"),
    "seed sieve, error 100": ("X", "#d97706"),
    "Bloom filter a file": ("D", "#db2777"),
    "exact inverted list": ("*", "#6b7280"),
}


def draw(measured: Sequence[Measured], least: Mapping[str, float], files: int) -> Figure:
    """The figure; all panels have the same axes, both by magnitude.

    Args:
        measured: structures on columns.
        least: files that hold a match, mean over the kinds of query, by column.
        files: of each column.
    """
    rows = -(-len(least) // _ACROSS)
    figure = Figure(figsize=(13, 1.6 + 2.35 * rows), dpi=80, layout="constrained")
    panels = figure.subplots(rows, _ACROSS, sharex=True, sharey=True, squeeze=False)
    everywhere = [m.mean for m in measured] + [*least.values()]
    for ax, name in zip(panels.flat, least, strict=False):
        _panel(ax, name, [m for m in measured if m.column == name], least[name])
    for ax in panels.flat[len(least) :]:
        ax.set_visible(False)
    for ax in panels.flat[max(0, len(least) - _ACROSS) : len(least)]:
        ax.tick_params(labelbottom=True)
    _scales(panels[0, 0], min(everywhere), files)
    figure.supylabel(f"files that a query reads, of {files}: mean over six kinds of query")
    figure.supxlabel("bytes of the index, % of the column")
    figure.suptitle("Lower left is better: few files read, and few bytes spent", fontsize=15)
    handles = {line.get_label(): line for ax in panels.flat for line in ax.get_lines()}
    order = [name for name in (*_LINES, _LEAST, *_DOTS) if name in handles]
    figure.legend(
        [handles[name] for name in order],
        [f"Sieve, {name}" if name in _LINES else name for name in order],
        loc="outside upper center",
        ncols=6,
        frameon=False,
    )
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
            ax.plot(m.bytes, m.mean, marker, color=color, ms=7, mew=0, label=m.structure)


def _scales(ax: Axes, least: float, files: int) -> None:
    """Of all panels, as they share them."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(0.8 * least, 1.3 * files)
    ticks = [t for t in (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000) if t <= files]
    for axis, places in ((ax.xaxis, (0.01, 0.1, 1, 10, 100)), (ax.yaxis, [*ticks, files])):
        axis.set_major_locator(FixedLocator(places))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
