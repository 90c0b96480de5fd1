"""Prints the report of `bench.peers`: Sieve's worst queries, each table, and all costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

from bench.peers.measure import QueryCost, TableCost, Written

WORST = 3
PLAIN, NO_INDEX = "Spark alone", "Hudi, no index"


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one release of Spark: the costs of queries, of tables and of writes."""

    line: str
    asked: list[QueryCost]
    made: list[TableCost]
    written: list[Written]

    def by_query(self) -> Iterator[tuple[tuple[str, str], Mapping[str, QueryCost]]]:
        """Yields each query's table and name, with a dict from system to the query's figures."""
        found: dict[tuple[str, str], dict[str, QueryCost]] = {}
        for each in self.asked:
            found.setdefault((each.table, each.query), {})[each.system] = each
        yield from found.items()


@dataclass(frozen=True, slots=True)
class Beaten:
    """A query's cost with Sieve, and with the other system that reads the fewest bytes."""

    line: str
    table: str
    query: str
    other: QueryCost
    own: QueryCost

    @property
    def times(self) -> float:
        """Sieve's bytes read, divided by the other system's bytes read."""
        return (self.own.bytes + 1) / (self.other.bytes + 1)


def is_sieve(system: str) -> bool:
    """Returns whether the system with this name uses Sieve."""
    return system.startswith("Sieve")


def baseline(systems: Collection[str]) -> str:
    """Name of the system that skips nothing. On Spark 3.5, this is Hudi without an index.

    Args:
        systems: names of the systems on one release of Spark.
    """
    return NO_INDEX if NO_INDEX in systems else PLAIN


def worst(reports: Mapping[str, Report]) -> Sequence[Beaten]:
    """All queries, sorted by the ratio of Sieve's bytes to the bytes of the best other system."""
    found = []
    for report in reports.values():
        for (table, query), by in report.by_query():
            # On Spark 3.5, the system "Spark alone" reads the original files, which are smaller
            # than Hudi's files. So this code does not compare Sieve with "Spark alone".
            without = PLAIN if NO_INDEX in by else ""
            others = (one for name, one in by.items() if not is_sieve(name) and name != without)
            least = min(others, key=lambda one: one.bytes)
            own = (one for name, one in by.items() if is_sieve(name))
            found += [Beaten(report.line, table, query, least, one) for one in own]
    return sorted(found, key=lambda one: -one.times)


def print_report(console: Console, reports: Mapping[str, Report]) -> None:
    """Prints all tables of the report."""
    _print_worst(console, reports)
    for report in reports.values():
        for name in dict.fromkeys(each.table for each in report.asked):
            console.print(_queries(report, name))
        console.print(_costs(report))
        if report.written:
            console.print(_writes(report))


def _print_worst(console: Console, reports: Mapping[str, Report]) -> None:
    table = _table(f"the {WORST} queries on which Sieve reads most against another system")
    for title in ("query", "system", "files", "MB", "ms"):
        table.add_column(title, justify="left" if title in ("query", "system") else "right")
    for each in worst(reports)[:WORST]:
        for title, one in ((f"{each.table}: {each.query}", each.own), ("", each.other)):
            table.add_row(title, one.system, str(one.files), _mb(one.bytes), f"{one.ms:,.0f}")
    console.print(table)


def _queries(report: Report, name: str) -> Table:
    systems = list(dict.fromkeys(e.system for e in report.asked if e.table == name))
    table = _table(f"{name} on {report.line}: files / MB / tasks / ms")
    table.add_column("query", no_wrap=True)
    for system in systems:
        table.add_column(system, justify="right")
    for (of, query), by in report.by_query():
        if of == name:
            table.add_row(query, *(_cell(by.get(system)) for system in systems))
    return table


def _cell(one: QueryCost | None) -> str:
    if one is None:
        return ""
    return f"{one.files} / {_mb(one.bytes)} / {one.tasks} / {one.ms:,.0f}"


def _costs(report: Report) -> Table:
    table = _table(f"what the systems' tables cost on {report.line}")
    for title in ("table", "system", "s", "MB rewritten", "KB beside"):
        table.add_column(title, justify="left" if title in ("table", "system") else "right")
    for one in report.made:
        rewritten, beside = _mb(one.rewritten), f"{one.beside / 1e3:,.0f}"
        table.add_row(one.table, one.system, f"{one.seconds:.1f}", rewritten, beside)
    return table


def _writes(report: Report) -> Table:
    table = _table(f"writes of 1 % of the log on {report.line}")
    for title in ("system", "write", "s", "MB read", "MB written", "right at once"):
        table.add_column(title, justify="right" if title[:2] in ("s", "MB") else "left")
    for one in report.written:
        right = "yes" if one.right else "no"
        table.add_row(
            one.system, one.kind, f"{one.seconds:.1f}", _mb(one.read), _mb(one.bytes), right
        )
    return table


def _table(title: str) -> Table:
    return Table(box=box.MARKDOWN, title=title, padding=(0, 1))


def _mb(size: float) -> str:
    return f"{size / 1e6:,.2f}"
