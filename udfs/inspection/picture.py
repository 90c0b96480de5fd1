"""Plots an index with matplotlib: each file's keys, and how many files a query reads per key."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sieve.arrays.dtypes import Numbers
from udfs.inspection.layout import FileLayout, raster, reads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS: Final = 1000
_TITLE_WIDTH: Final = 110
"""The maximum number of characters in a line of the title, small enough for wide characters."""
_MOST_ROWS: Final = 500
_BRIDGE: Final = 20
# If a query for a key can read more files than this, the lower plot's axis is logarithmic.
_LINEAR: Final = 20
_SPAN: Final = np.array([0.80, 0.84, 0.90])
_ENTRY: Final = np.array([0.05, 0.30, 0.58])
# Matches a control character, or ``\x`` and two hexadecimal digits. The decoder writes ``\x`` and
# two digits for a byte that is not part of a character.
_NO_TEXT: Final = re.compile(r"\\x[0-9a-f]{2}|[\x00-\x1f\x7f-\x9f]")
_LABEL: Final = 22
"""The maximum number of characters in a label on the key axis."""
_BY_ENDS: Final = "#8fa3bf"
_BY_INDEX: Final = "#0d4d94"
_LEAST: Final = "#c2410c"
_BY_MAP: Final = "#15803d"
_LEAST_TEXT: Final = 3
"""A shortened text keeps at least this many characters if all of them belong to a key."""
_APART: Final = 0.1
"""The minimum distance between two labels, as a share of the axis."""


def draw(
    layout: FileLayout,
    title: Sequence[str],
    decode: Callable[[int], str],
    expected: Mapping[str, Any],
    *,
    as_text: bool = False,
) -> Figure:
    """Draws the figure: 1320 pixels wide and 990 pixels high, with 132 dots per inch.

    Args:
        layout: the files and their entries.
        title: the sentences above the figure. Each sentence begins on a new line, and the function
            wraps it to the figure's width.
        decode: converts a key code to text.
        expected: mean numbers of files for a key that occurs. The dict lacks numbers that the build
            did not record. ``exact`` counts the files that contain the key. ``map`` counts the
            files that a query with ``=`` or IN reads if a hash map answers it.
        as_text: whether keys are texts. The code of a text contains only the text's first
            characters.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.5), dpi=132, layout="constrained")
    lines = [line for sentence in title for line in textwrap.wrap(sentence, _TITLE_WIDTH)]
    # Names and keys can contain dollar signs. Matplotlib would parse the text between two dollar
    # signs as a formula.
    figure.suptitle("\n".join(lines), fontsize=10, ha="left", x=0.01, parse_math=False)
    axes = figure.subplots(
        2, 2, sharex="col", sharey="row", height_ratios=(3, 1.2), width_ratios=(8, 1)
    )
    _files(axes[0, 0], layout)
    _shares(axes[0, 1], layout)
    _reads(axes[1, 0], layout, expected)
    axes[1, 1].set_visible(False)
    _ticks(axes[1, 0], layout, decode, as_text=as_text)
    return figure


def _files(ax: Axes, layout: FileLayout) -> None:
    n = len(layout.paths)
    rows = min(n, _MOST_ROWS)
    spans = raster(layout.spans, layout.axis, n, rows, _COLUMNS)[..., None]
    covered = raster(layout.entries, layout.axis, n, rows, _COLUMNS)[..., None]
    image = 1 - spans * (1 - _SPAN)
    image += covered * (_ENTRY - image)
    ax.imshow(
        image, extent=(0, 1, n + 0.5, 0.5), aspect="auto", interpolation="nearest", rasterized=True
    )
    ax.locator_params(axis="y", integer=True)
    ax.set_ylabel(f"{n} files, in order of their least key")
    ax.set_title(
        "dark: keys for which the index reads the file    pale: between its min and max only",
        fontsize=9,
        loc="left",
    )


def _shares(ax: Axes, layout: FileLayout) -> None:
    """Plots the shares of the key axis that each file's key range and entries cover."""
    n = len(layout.paths)
    place = np.arange(1, n + 1)
    ax.fill_betweenx(place, layout.width(), color=_BY_ENDS, alpha=0.5, lw=0, step="mid")
    ax.fill_betweenx(place, layout.covered(), color=_BY_INDEX, lw=0, step="mid")
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.5, 1], ["0", "½", "all"], fontsize=8)
    ax.tick_params(labelbottom=True, labelleft=False)
    ax.set_title("share of the keys", fontsize=9)


def _reads(ax: Axes, layout: FileLayout, expected: Mapping[str, Any]) -> None:
    middle = (np.arange(_COLUMNS) + 0.5) / _COLUMNS
    by_ends = _bridged(reads(layout.spans, layout.axis, _COLUMNS)[0])
    by_index, most = map(_bridged, reads(layout.entries, layout.axis, _COLUMNS))
    ax.fill_between(middle, by_ends, color=_BY_ENDS, alpha=0.3, lw=0)
    ax.plot(middle, by_ends, color=_BY_ENDS, lw=1.2, label="by min and max")
    if np.nanmax(most - by_index) > 0.5:
        ax.plot(middle, most, color=_BY_INDEX, lw=0.5, alpha=0.5, label="at most")
    by_map = expected.get("map")
    label = "by the index" if by_map is None else "by the index, for ranges"
    ax.plot(middle, by_index, color=_BY_INDEX, lw=1.4, label=label)
    if by_map is not None:
        label = f"by the map, for = and IN: {by_map:.2f}"
        ax.axhline(by_map, color=_BY_MAP, lw=1.4, label=label)
    if "exact" in expected:
        label = f"hold the key, in the mean: {expected['exact']:.2f}"
        ax.axhline(expected["exact"], color=_LEAST, lw=1, ls="--", label=label)
    ax.set_xlim(0, 1)
    top = max(np.nanmax(by_ends), np.nanmax(most))
    if top > _LINEAR:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(0.8 if top > _LINEAR else 0, top * 1.2)
    ax.grid(axis="y", alpha=0.3)
    ax.set_ylabel("files read\nfor one key")
    ax.legend(
        fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderpad=0
    )


def _bridged(line: Numbers) -> Numbers:
    """Fills short gaps in a line with the value before the gap, so that single keys are visible."""
    there = np.flatnonzero(~np.isnan(line))
    last = there[np.maximum(np.searchsorted(there, np.arange(len(line)), side="right") - 1, 0)]
    near = np.abs(np.arange(len(line)) - last) <= _BRIDGE
    return np.where(near, line[last], np.nan)


def _ticks(ax: Axes, layout: FileLayout, decode: Callable[[int], str], *, as_text: bool) -> None:
    places, codes, until = _labelled(layout)
    words = [*map(decode, codes)]
    if as_text:
        words = shortened(words, [*map(decode, until)])
    ax.set_xticks(places, [_short(word) for word in words], fontsize=8, parse_math=False)
    first, *_, last = ax.get_xticklabels()
    first.set_horizontalalignment("left")
    if last is not first:
        last.set_horizontalalignment("right")
    ax.set_xlabel(
        "keys" if layout.axis.even else "keys in order, wider where the index has more entries"
    )


def _labelled(layout: FileLayout) -> tuple[list[float], list[int], list[int]]:
    """Returns the position of each label on the axis, and two codes between which a key exists.

    Each position is the start of an entry, because no key has a code between entries. An entry can
    begin a little below its least key. But the first entry begins with a key, and the last entry
    ends with a key.
    """
    codes, entry = np.unique(layout.entries.low, return_inverse=True)
    least_high = np.full(len(codes), layout.entries.high.max())
    np.minimum.at(least_high, entry, layout.entries.high)
    at = layout.axis.begin(codes)
    places, labels, until = [0.0], [int(codes[0])], [int(codes[0])]
    for place in (0.2, 0.4, 0.6, 0.8):
        k = int(np.argmin(np.abs(at - place)))
        if places[-1] + _APART <= at[k] <= 1 - _APART:
            places.append(float(at[k]))
            labels.append(int(codes[k]))
            until.append(int(least_high[k]))
    greatest = int(layout.entries.high.max())
    if greatest > labels[0]:
        return [*places, 1.0], [*labels, greatest], [*until, greatest]
    return places, labels, until


def shortened(keys: Sequence[str], until: Sequence[str]) -> list[str]:
    """Shortens each text to the characters that distinguish it from the texts before and after it.

    A code represents several texts. The decoder returns the least text of a code, even if the index
    does not contain this text as a key. Only the common prefix of ``keys[k]`` and ``until[k]`` is
    certain to belong to a key.
    """
    labels = []
    for k, (key, last) in enumerate(zip(keys, until, strict=True)):
        beside = [keys[n] for n in (k - 1, k + 1) if 0 <= n < len(keys)]
        common = max((_common(key, other) for other in beside), default=0)
        count = min(max(_LEAST_TEXT, common + 1), max(1, _common(key, last)))
        labels.append(key if len(key) <= count else key[:count] + "…")
    return labels


def _common(one: str, other: str) -> int:
    """Returns the number of characters in the common prefix of two texts."""
    pairs = zip(one, other, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _short(key: str) -> str:
    """Returns a label for a key: its first characters, up to the first byte that is not text."""
    text, *rest = _NO_TEXT.split(key, maxsplit=1)
    if not rest and len(text) <= _LABEL:
        return text
    return text[: _LABEL - 1] + "…"
