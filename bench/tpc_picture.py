"""Draws two shares for each TPC-DS or TPC-H query: the share of bytes, and the share of time.

The share of bytes is relative to the bytes that Sieve reads without join keys. The share of time is
relative to the time of Spark alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_SKIPPING, _WHOLE = "#2a9d8f", "#c9c9c9"


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of one query.

    Attributes:
        number: the query's number in its suite.
        bytes: the bytes that the query's tasks read with Sieve, divided by the bytes read with
            Sieve without join keys.
        time: the query's time with Sieve, divided by its time with Spark alone.
    """

    number: int
    bytes: float
    time: float


def draw(title: str, queries: Sequence[Shares]) -> Figure:
    """Draws two panels with one bar per query, in order of the queries' shares of bytes."""
    ordered = sorted(queries, key=lambda one: (one.bytes, one.time))
    figure = Figure(figsize=(max(6, 0.13 * len(ordered)), 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    _bars(above, [one.bytes for one in ordered], "bytes read, by those\nby constants alone")
    _bars(below, [one.time for one in ordered], "time, by that of\nSpark alone")
    below.set_xticks(range(len(ordered)), [str(one.number) for one in ordered], rotation=90)
    below.tick_params(axis="x", labelsize=6, length=0)
    below.set_xlabel("query")
    above.set_title(title, fontsize=10)
    return figure


def _bars(ax: Axes, shares: Sequence[float], what: str) -> None:
    colours = [_SKIPPING if share < 1 else _WHOLE for share in shares]
    ax.bar(range(len(shares)), shares, color=colours, width=0.8)
    ax.axhline(1, color="black", linewidth=0.8)
    ax.set_ylabel(what, fontsize=8)
    ax.set_xlim(-0.6, len(shares) - 0.4)
    ax.grid(visible=True, axis="y", alpha=0.3)
