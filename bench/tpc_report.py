"""Prints the results of TPC-DS and TPC-H: a line after each query, and a summary."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from bench.in_turns import Turns
from bench.tpc import Measured
from bench.tpc_data import FILES
from bench.tpc_picture import Shares

SLOWER = 1.03
"""A query counts as slower with Sieve if the ratio of its times exceeds this factor, and also
exceeds the spread of the other mode's runs."""
FEWER = 0.99
"""A share of bytes counts as smaller only below this limit. Spark may read a footer twice."""
_WIDTH = 8
_SIEVE, _SPARK = "Sieve", "Spark alone"


def head(console: Console, setting: str, modes: Sequence[str]) -> None:
    """Prints the titles of the columns. Each kind of figure has one column per mode."""
    console.print(f"\n[bold]{setting}[/bold]: {', '.join(modes)}")
    kinds = "   ".join(f"{kind:<{_WIDTH * len(modes)}}" for kind in ("files", "MB", "ms"))
    console.print(
        f"query   {kinds}   scans with keys: files read, that hold a partner", soft_wrap=True
    )


def line(console: Console, one: Measured) -> None:
    """Prints the line of a query."""
    turns = one.turns
    if turns is None:
        console.print(f"{one.number:>5}   [red]{one.fault}[/red]", soft_wrap=True)
        return
    files = "".join(f"{of:{_WIDTH},}" for of in turns.files.values())
    sizes = "".join(f"{of.bytes / 1e6:{_WIDTH}.1f}" for of in turns.tasks.values())
    times = "".join(f"{ms:{_WIDTH},.0f}" for ms in turns.ms.values())
    keys = "; ".join(f"{s.table}.{'+'.join(s.columns)} {s.read}, {s.least}" for s in one.scans)
    console.print(
        f"{one.number:>5}   {files}   {sizes}   {times}   {keys}  {one.fault}", soft_wrap=True
    )


def summary(console: Console, measured: Sequence[Measured]) -> None:
    """Prints the figures that summarise all queries under one of Spark's settings."""
    done = [(one, one.turns) for one in measured if one.turns is not None]
    if not done:
        return
    shares = [_share(turns) for _, turns in done]
    fewer = [share for share in shares if share < FEWER]
    thirds = sum(share <= 2 / 3 for share in fewer)
    faults = [f"query {one.number}: {one.fault}" for one in measured if one.fault]
    say = console.print
    say(
        f"\nrows equal in {len(measured) - len(faults)} of {len(measured)} queries",
        *faults,
        sep="\n",
    )
    say(
        f"fewer bytes than {_others(done)[-1]}: {len(fewer)} of {len(done)} queries; "
        f"{thirds} of them skip a third or more"
    )
    for title, of in (
        ("bytes, MB", _megabytes),
        ("rows, thousands", _rows),
        ("CPU of tasks, s", _cpu),
    ):
        totals = ", ".join(
            f"{mode} {sum(of(t, mode) for _, t in done):,.1f}" for mode in done[0][1].ms
        )
        say(f"{title}: {totals}")
    for other in reversed(_others(done)):
        _times(console, done, other)
    _partners(console, measured)
    _unpruned(console, done)


def _unpruned(console: Console, done: Sequence[tuple[Measured, Turns]]) -> None:
    """Prints the known reasons if join keys do not reduce the bytes that a query reads."""
    for one, turns in done:
        if _share(turns) >= FEWER and (one.scans or one.unkeyed):
            useless = [f"{s.table} (keys that occur in every file)" for s in one.scans]
            scans = Counter([*useless, *one.unkeyed]).items()
            told = "; ".join(f"{n} x {scan}" if n > 1 else scan for scan, n in scans)
            console.print(f"query {one.number} reads no fewer bytes: {told}", soft_wrap=True)


def shares(measured: Sequence[Measured]) -> list[Shares]:
    """The shares of all queries, which the picture shows."""
    return [
        Shares(one.number, _share(one.turns), one.turns.ms[_SIEVE] / one.turns.ms[_SPARK])
        for one in measured
        if one.turns is not None
    ]


def _times(console: Console, done: Sequence[tuple[Measured, Turns]], other: str) -> None:
    ratios = {one.number: turns.ms[_SIEVE] / turns.ms[other] for one, turns in done}
    spreads = {one.number: turns.spread[other] for one, turns in done}
    slower = [n for n, ratio in ratios.items() if ratio > max(SLOWER, spreads[n])]
    worst, mean = max(ratios, key=ratios.__getitem__), statistics.geometric_mean(ratios.values())
    console.print(
        f"time by that of {other}: geometric mean {mean:.3f}; "
        f"worst query {worst} {ratios[worst]:.2f}, where {other} varies by {spreads[worst]:.2f}; "
        f"{len(slower)} slower than {SLOWER} and than that {slower or ''}"
    )


def _partners(console: Console, measured: Sequence[Measured]) -> None:
    """Prints how many files scans with join keys read, and how many files have a match."""
    scans = [s for one in measured for s in one.scans if s.read < FILES]
    if scans:
        read, least = sum(s.read for s in scans), sum(s.least for s in scans)
        by = read / least if least else float(read > 0)
        console.print(
            f"{len(scans)} scans that skip by keys read {read:,} files, of which {least:,} hold a "
            f"partner: {by:.2f} times"
        )


def _share(turns: Turns) -> float:
    """The bytes that a query reads with Sieve, divided by the bytes that it reads without Sieve."""
    *_, before, _ = (totals.bytes for totals in turns.tasks.values())
    return turns.tasks[_SIEVE].bytes / before if before else 1.0


def _others(done: Sequence[tuple[Measured, Turns]]) -> Sequence[str]:
    """Names of all modes without the last mode, Sieve."""
    *others, _ = done[0][1].ms
    return others


def _megabytes(turns: Turns, mode: str) -> float:
    return turns.tasks[mode].bytes / 1e6


def _rows(turns: Turns, mode: str) -> float:
    return turns.tasks[mode].rows / 1e3


def _cpu(turns: Turns, mode: str) -> float:
    return turns.tasks[mode].cpu_ms / 1e3
