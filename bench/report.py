"""Prints the demo's results: queries, indexes, one EXPLAIN SIEVE, and commands to try next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.lineitem import BY_DATE, BY_ORDER, FILES, LARGE, LARGE_FILES
from bench.queries import Query

_ORDER = {
    BY_DATE: "files in order of arrival: ship date, 2 % of the rows up to two years late",
    BY_ORDER: "files in order of order key, 2 % of the orders in a later file",
}
_NARROW = 100
"""The width of the table without the column WHERE. In a wider table, WHERE uses the rest."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of a query: matching rows, files read with each method, and median seconds.

    `tasks`, `ranges` and `bytes` are pairs: the number without and the number with the index.
    """

    query: Query
    rows: int
    files_without: int
    files_minmax: int
    files_with: int
    files_least: int
    without: float
    with_: float
    tasks: tuple[int, int]
    ranges: tuple[int, int]
    bytes: tuple[int, int]


def headline(console: Console, scale: int) -> None:
    """Prints the introduction."""
    console.print()
    console.print(
        f"[bold]Sieve[/bold] on TPC-H lineitem at scale {scale}: "
        f"{6 * scale} million rows, twice in {FILES} Parquet files, once in {LARGE_FILES}"
    )
    console.print()


def results(console: Console, measured: Sequence[Measured]) -> None:
    """Prints the table of queries."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    wide = console.width >= _NARROW + 20
    table.add_column("\nquery", no_wrap=True)
    if wide:
        table.add_column(
            "\nWHERE",
            style="dim",
            no_wrap=True,
            max_width=console.width - _NARROW,
            overflow="ellipsis",
        )
    for title in ("files\nread", "min/max\nleaves", "[bold cyan]Sieve\nreads[/bold cyan]"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("hold a\nmatch", "without\nms", "[bold cyan]with\nms[/bold cyan]"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("times\nfaster", justify="right", no_wrap=True)
    table.add_column("same\nrows", justify="right", no_wrap=True)
    for name in _ORDER:
        table.add_row(f"[bold]{name}[/bold]")
        for m in (m for m in measured if m.query.table == name):
            where = [m.query.where] if wide else []
            table.add_row(
                f"  {m.query.title}",
                *where,
                str(m.files_without),
                str(m.files_minmax),
                f"[bold cyan]{m.files_with}[/bold cyan]",
                str(m.files_least),
                _ms(m.without),
                f"[bold cyan]{_ms(m.with_)}[/bold cyan]",
                f"{m.without / m.with_:.1f}",
                f"{m.rows:,} [green]✓[/green]",
            )
        table.add_section()
    console.print()
    console.print(table)
    for name, order in _ORDER.items():
        console.print(f"  [dim]{name}: {order}[/dim]")
    console.print(
        "  [dim]min/max leaves: files that the minimum and maximum in their footers cannot rule "
        "out[/dim]"
    )
    console.print("  [dim]hold a match: the least that any index could read[/dim]")
    _ranges(console, [m for m in measured if m.query.table == LARGE])


def _ranges(console: Console, measured: Sequence[Measured]) -> None:
    """Prints the table of queries on large files, whose ranges are row groups."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    table.add_column("\nquery", no_wrap=True)
    for title in (
        "\nranges",
        "[bold cyan]Sieve\nreads[/bold cyan]",
        "\nMB",
        "[bold cyan]Sieve\nreads[/bold cyan]",
        "tasks\nwithout",
        "[bold cyan]tasks\nwith[/bold cyan]",
        "without\nms",
        "[bold cyan]with\nms[/bold cyan]",
        "times\nfaster",
        "same\nrows",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_row(f"[bold]{LARGE}[/bold]")
    for m in measured:
        megabytes = [f"{size / 1e6:,.1f}" for size in m.bytes]
        pairs = (map(str, m.ranges), megabytes, map(str, m.tasks), map(_ms, (m.without, m.with_)))
        cells = [
            cell if k == 0 else f"[bold cyan]{cell}[/bold cyan]"
            for pair in pairs
            for k, cell in enumerate(pair)
        ]
        faster = f"{m.without / m.with_:.1f}"
        table.add_row(f"  {m.query.title}", *cells, faster, f"{m.rows:,} [green]✓[/green]")
    console.print()
    console.print(table)
    console.print(
        f"  [dim]{LARGE}: the rows of {BY_ORDER} in their order, in {LARGE_FILES} files; a range "
        "is a row group[/dim]"
    )


def indexes(console: Console, spark: SparkSession, made: Sequence[tuple[str, str]]) -> None:
    """Prints each index's size and expected skipping, and the advice on a useless index."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for title in ("table", "index"):
        table.add_column(f"\n{title}", no_wrap=True)
    for title in (
        "build\ntime",
        "index\nKB",
        "column\nMB",
        "index /\ncolumn",
        "a key is in\n(files, ranges)",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    useless: list[tuple[str, str, dict[str, str]]] = []
    for name, columns in made:
        for column in columns.split(", "):
            index = f"{column}_sieve"
            found = _described(spark, name, index)
            expected, total = _expected(found)
            if expected > total / 2:
                useless.append((name, column, found))
            size = int(found["bytes"])
            share = float(found["bytes as share of column"].rstrip("%"))
            table.add_row(
                name,
                index,
                f"{float(found['build seconds']):.1f} s",
                f"{size / 1e3:,.0f}",
                f"{size / share / 1e4:,.0f}" if share else "",
                f"{share:.2f} %",
                f"{expected:.1f} of {total:.0f}",
            )
    console.print()
    console.print(table)
    for name, column, found in useless:
        query = f"SELECT * FROM {name} WHERE {column} = 7"
        (scan,) = spark.sql(f"EXPLAIN SIEVE {query}").collect()
        console.print(
            f"  Each value of [bold yellow]{column}[/bold yellow] is in nearly every file. "
            "Sieve says so itself:"
        )
        grid = Table(box=None, padding=(0, 2), show_header=False)
        grid.add_row(f"[dim]DESCRIBE SIEVE INDEX {column}_sieve[/dim]", found["advice"])
        left = f"files_read {scan['files_read']} of files_total {scan['files_total']}"
        grid.add_row(f"[dim]EXPLAIN SIEVE {query}[/dim]", left)
        console.print(grid)


def explained(console: Console, spark: SparkSession, sql: str) -> None:
    """Prints the result of one EXPLAIN SIEVE, with one line per result column."""
    console.print()
    console.print(f"[bold]EXPLAIN SIEVE[/bold] {sql}")
    for row in spark.sql(f"EXPLAIN SIEVE {sql}").collect():
        grid = Table(box=None, padding=(0, 2), show_header=False)
        for name, value in row.asDict().items():
            text = f"{value:,}" if isinstance(value, int) else str(value or "none")
            grid.add_row(f"[dim]{name}[/dim]", text)
        console.print(grid)


def next_lines(console: Console, folder: Path, seconds: float) -> None:
    """Prints three commands that the user can try, with the demo's metastore."""
    console.print()
    console.print(f"[dim]Done in {seconds:.0f} s. The tables are still there; go on with[/dim]")
    console.print()
    sieve = os.path.relpath(Path(".venv/bin/sieve").absolute(), folder)
    for line in (
        f"cd {os.path.relpath(folder)} && {sieve} sql",
        f"EXPLAIN SIEVE SELECT * FROM {BY_ORDER} WHERE l_orderkey = 4242;",
        "CREATE SIEVE INDEX ON your_table (your_column);",
    ):
        console.print(f"  [bold]{line}[/bold]", soft_wrap=True)
    console.print()


def _described(spark: SparkSession, table: str, index: str) -> dict[str, str]:
    rows = spark.sql(f"DESCRIBE SIEVE INDEX EXTENDED {index} ON {table}").collect()
    return {row["property"]: row["value"] for row in rows}


def _expected(found: dict[str, str]) -> tuple[float, float]:
    (line,) = (
        found[f"{what} read for a key that occurs"]
        for what in ("files", "ranges")
        if f"{what} read for a key that occurs" in found
    )
    words = line.split()
    return float(words[0]), float(words[2])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f}"
