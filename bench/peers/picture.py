"""Draws the bytes that queries of `bench.peers` read, relative to a system that skips nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from bench.peers.report import Report, baseline, is_sieve

_LEAST: Final = 1e-2
_INCHES_A_QUERY, _INCHES_A_SYSTEM = 0.27, 1.05


def draw(reports: Mapping[str, Report]) -> Figure:
    """Draws a panel per release of Spark, with a row per query and a column per system.

    A panel omits queries that a system cannot answer, such as time travel.
    """
    systems = [list(dict.fromkeys(e.system for e in r.asked)) for r in reports.values()]
    asked = [
        [each for each in report.by_query() if len(each[1]) == len(names)]
        for report, names in zip(reports.values(), systems, strict=True)
    ]
    heights = [len(queries) for queries in asked]
    width = 3.2 + _INCHES_A_SYSTEM * max(map(len, systems))
    height = 1.6 * len(heights) + _INCHES_A_QUERY * sum(heights)
    figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    for ax, report, names, queries in zip(
        panels.flat, reports.values(), systems, asked, strict=True
    ):
        base = baseline(names)
        alone = np.array([by[base].bytes for _, by in queries], float)
        read = np.array([[by[name].bytes for name in names] for _, by in queries], float)
        share = read / np.maximum(alone, 1)[:, None]
        shown = np.clip(share, _LEAST, 1)
        ax.imshow(shown, norm=LogNorm(_LEAST, 1), cmap="YlOrRd", aspect="auto")
        ax.set_yticks(range(len(queries)), [f"{table}: {query}" for (table, query), _ in queries])
        ax.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
        ax.xaxis.tick_top()
        ax.tick_params(length=0, labelsize=8)
        for label, name in zip(ax.get_xticklabels(), names, strict=True):
            label.set_fontweight("bold" if is_sieve(name) else "normal")
        for (y, x), value in np.ndenumerate(share):
            dark = shown[y, x] > 0.2
            ax.text(x, y, _percent(value), ha="center", va="center", fontsize=7.5,
                    color="white" if dark else "black")  # fmt: skip
        ax.set_title(f"{report.line}: bytes read, in % of {base}", fontsize=10)
    return figure


def _percent(share: float) -> str:
    percent = 100 * share
    return (
        f"{percent:.0f}"
        if percent >= 10
        else f"{percent:.1f}"
        if percent >= 1
        else f"{percent:.2g}"
    )
