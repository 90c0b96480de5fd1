"""What the runs of TPC-DS and TPC-H say: a line a query while it runs, and a summary."""

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
"""A query is slower if it takes so many times as long, and more than it varies by itself."""
FEWER = 0.99
"""A query reads fewer bytes if it reads less than this share: footers are read again at times."""
_SIEVE, _CONSTANTS, _SPARK = "Sieve", "constants", "Spark alone"


def head(console: Console, setting: str) -> None:
    """Titles of the columns."""
    console.print(f"\n[bold]{setting}[/bold]: C constants alone, S Sieve")
    console.print(
        "query   files:  C       S   MB: Spark       C       S   ms: Spark       C       S"
        "   scans with keys: files read, that hold a partner",
        soft_wrap=True,
    )


def line(console: Console, one: Measured) -> None:
    """The figures of a query."""
    turns = one.turns
    if turns is None:
        console.print(f"{one.number:>5}   [red]{one.fault}[/red]", soft_wrap=True)
        return
    modes = (_SPARK, _CONSTANTS, _SIEVE)
    sizes = "".join(f"{turns.tasks[mode].bytes / 1e6:8.1f}" for mode in modes)
    times = "".join(f"{turns.ms[mode]:8,.0f}" for mode in modes)
    keys = "; ".join(f"{s.table}.{'+'.join(s.columns)} {s.read}, {s.least}" for s in one.scans)
    files = f"{turns.files[_CONSTANTS]:10,} {turns.files[_SIEVE]:7,}"
    console.print(
        f"{one.number:>5} {files}   {sizes}   {times}   {keys}  {one.fault}", soft_wrap=True
    )


def summary(console: Console, measured: Sequence[Measured]) -> None:
    """Figures over all queries of a setting."""
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
        f"fewer bytes than by constants alone: {len(fewer)} of {len(done)} queries; "
        f"{thirds} of them skip a third or more"
    )
    for title, of in (
        ("bytes, MB", _megabytes),
        ("rows, thousands", _rows),
        ("CPU of tasks, s", _cpu),
    ):
        totals = ", ".join(
            f"{mode} {sum(of(t, mode) for _, t in done):,.1f}" for mode in _modes(done)
        )
        say(f"{title}: {totals}")
    _times(console, done, _CONSTANTS)
    _times(console, done, _SPARK)
    _partners(console, measured)
    _unpruned(console, done)


def _unpruned(console: Console, done: Sequence[tuple[Measured, Turns]]) -> None:
    """Why queries read what they read by constants alone, where that was looked for."""
    for one, turns in done:
        if _share(turns) >= FEWER and (one.scans or one.unkeyed):
            useless = [f"{s.table} (keys that occur in every file)" for s in one.scans]
            scans = Counter([*useless, *one.unkeyed]).items()
            told = "; ".join(f"{n} x {scan}" if n > 1 else scan for scan, n in scans)
            console.print(f"query {one.number} reads no fewer bytes: {told}", soft_wrap=True)


def shares(measured: Sequence[Measured]) -> list[Shares]:
    """What the picture shows of queries."""
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
    """Only of scans that skip: keys that occur in every file pick none."""
    scans = [s for one in measured for s in one.scans if s.read < FILES]
    if scans:
        read, least = sum(s.read for s in scans), sum(s.least for s in scans)
        by = read / least if least else float(read > 0)
        console.print(
            f"{len(scans)} scans that skip by keys read {read:,} files, of which {least:,} hold a "
            f"partner: {by:.2f} times"
        )


def _share(turns: Turns) -> float:
    before = turns.tasks[_CONSTANTS].bytes
    return turns.tasks[_SIEVE].bytes / before if before else 1.0


def _modes(done: Sequence[tuple[Measured, Turns]]) -> Sequence[str]:
    return tuple(done[0][1].ms)


def _megabytes(turns: Turns, mode: str) -> float:
    return turns.tasks[mode].bytes / 1e6


def _rows(turns: Turns, mode: str) -> float:
    return turns.tasks[mode].rows / 1e3


def _cpu(turns: Turns, mode: str) -> float:
    return turns.tasks[mode].cpu_ms / 1e3
