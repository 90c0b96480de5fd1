"""Compares queries that use an index with an oracle: Spark without the index."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from foreign_tables import ForeignTable, Probe
from generated_predicates import draw_predicate, literal
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark_session import Lab

Outcome = Counter[str] | str
"""The rows of a query as a multiset, or the name of the query's error."""


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT statement on the table ``t``."""

    shown: str
    where: str

    @property
    def counts(self) -> bool:
        """Returns whether the query's result is a count of rows."""
        return self.shown.startswith("count(")

    def branch(self, number: int = 0, file: str | None = None) -> str:
        """The query's SQL for one file or for all files; each row begins with a number."""
        shown = f"CAST({self.shown} AS STRING)" if self.counts else self.shown
        only = f" AND _metadata.file_name = '{file}'" if file else ""
        return f"SELECT {number} AS k, {shown} AS r FROM t AS t WHERE ({self.where}){only}"


@dataclass(slots=True)
class Tally:
    """Counts a run's comparisons, and what indexes did in the comparisons."""

    tables: int = 0
    refused: int = 0
    pairs: int = 0
    errors: int = 0
    asked: int = 0
    pruned: int = 0
    skipped: int = 0
    listed: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items())


def draw_query(rng: random.Random, table: ForeignTable, probes: Sequence[Probe]) -> Query:
    """A query with a random projection. The predicate is random, or selects the row of a probe."""
    columns = [*table.columns, "p"]
    leaves = ["s.a", "s.b"] if "s" in columns else []
    some = rng.sample([*columns, *leaves], k=rng.choice([1, 1, 2, 3]))
    fields = [f"{name} AS f{k}" for k, name in enumerate(some)]
    whole = "to_json({}, map('ignoreNullFields', 'false'))".format
    shown = rng.choice(
        [
            *[whole("struct(*)")] * 4,
            whole("struct(rid)"),
            whole(f"struct({', '.join(fields)})"),
            whole(f"struct({', '.join(fields)})"),
            "count(*)",
            f"count({some[0]})",
        ]
    )
    if not probes or rng.random() < 0.5:
        return Query(shown, draw_predicate(rng, table.drawn, depth=rng.choice([0, 0, 1, 2])))
    probe = rng.choice(probes)
    name, value = probe.column.sql, literal(probe.column, probe.value)
    form = rng.choice(["{0} = {1}", "{0} <=> {1}", "{0} IN ({1})", "{0} BETWEEN {1} AND {1}"])
    return Query(shown, form.format(name, value))


def compare(lab: Lab, context: str, queries: Sequence[Query], tally: Tally) -> None:
    """Asserts that queries return the same rows or the same error with and without the index."""
    with _counted(lab, tally), lab.setting("spark.sieve.strict", "true"):
        _compare_together(lab, context, queries, tally)
    tally.pairs += len(queries)


def _compare_together(lab: Lab, context: str, queries: Sequence[Query], tally: Tally) -> None:
    """Compares queries in one job. After a failure, compares each half, down to single queries."""
    if len(queries) == 1:
        _compare_alone(lab, context, queries[0], tally)
        return
    together = " UNION ALL ".join(query.branch(k) for k, query in enumerate(queries))
    with lab.setting("spark.sieve.enabled", "false"):
        off = _numbered(lab, together)
    on = off if isinstance(off, str) else _numbered(lab, together)
    if isinstance(off, str) or isinstance(on, str):
        middle = len(queries) // 2
        _compare_together(lab, context, queries[:middle], tally)
        _compare_together(lab, context, queries[middle:], tally)
        return
    for k, query in enumerate(queries):
        assert on[k] == off[k], _difference(context, query, off[k], on[k])


def _compare_alone(lab: Lab, context: str, query: Query, tally: Tally) -> None:
    on = _outcome(lab, query)
    with lab.setting("spark.sieve.enabled", "false"):
        off = _outcome(lab, query)
        if isinstance(off, str):
            tally.errors += 1
        if on == off:
            return
        assert isinstance(off, str), _difference(context, query, off, on)
        # Spark can fail at a file that the index skips, so the test compares only the other files.
        names = sorted(Path(name).name for name in lab.spark.table("t").inputFiles())
        apart = [_outcome(lab, query, name) for name in names]
    errors = {outcome for outcome in apart if isinstance(outcome, str)}
    if isinstance(on, str):
        assert on in errors, _difference(context, query, off, on)
        return
    found = sum((rows for rows in apart if isinstance(rows, Counter)), Counter[str]())
    if query.counts:
        found = Counter([str(sum(int(n) * times for n, times in found.items()))])
    assert on == found, _difference(context, query, found, on)


def _difference(context: str, query: Query, off: Outcome, on: Outcome) -> str:
    if isinstance(off, Counter) and isinstance(on, Counter):
        return f"{context}: {query}\nlost: {dict(off - on)}\nmore: {dict(on - off)}"
    return f"{context}: {query}\nwithout the index: {off}\nwith it: {on}"


def _numbered(lab: Lab, text: str) -> dict[int, Counter[str]] | str:
    try:
        rows = lab.sql(text)
    except (PySparkException, Py4JJavaError) as error:
        return _name(error)
    found: dict[int, Counter[str]] = {k: Counter() for k in range(text.count(" AS k, "))}
    for k, row in rows:
        found[k][str(row)] += 1
    return found


def _outcome(lab: Lab, query: Query, file: str | None = None) -> Outcome:
    rows = _numbered(lab, query.branch(0, file))
    return rows if isinstance(rows, str) else rows[0]


def _name(error: PySparkException | Py4JJavaError) -> str:
    """The error condition in Spark's report, or the class of the error's root cause."""
    assert "SIEVE_" not in str(error), str(error)
    if isinstance(error, PySparkException):
        condition = getattr(error, "getCondition", error.getErrorClass)
        return str(condition() or type(error).__name__)
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getClass().getName())


@contextmanager
def _counted(lab: Lab, tally: Tally) -> Iterator[None]:
    before = counters(lab)
    yield
    done = counters(lab) - before
    tally.asked += done["prune_calls"]
    tally.pruned += done["scans_pruned"]
    tally.skipped += done["files_skipped"]
    tally.listed += done["files_listed"]


def counters(lab: Lab) -> Counter[str]:
    """The values of the driver's counters about indexes."""
    return Counter(dict(lab.sql("SELECT counter, sum(value) FROM sieve_status() GROUP BY counter")))
