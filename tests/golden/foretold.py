"""Compares the prediction of EXPLAIN SIEVE with the actual run for queries of the corpus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpus import Script, Statement
from engines import SparkEngine, refusal
from pyspark.errors import PySparkException
from spark_session import Lab

AT_RUN_TIME = "at run time"
OF_VALUES = {"keys-too-many", "keys-failed", "unbounded"}
"""Reasons that EXPLAIN SIEVE cannot predict, because they depend on run-time values."""

Counts = Mapping[tuple[str, str | None], int]


def differences(lab: Lab, script: Script, every: int) -> list[str]:
    """Describes each query for which the run differs from the prediction of EXPLAIN SIEVE."""
    wrong = []
    for number, statement in enumerate(script.queries):
        if not statement.only_reads:
            SparkEngine(lab.spark).run(statement.sql)
        elif number % every == 0 and {"on", "strict"} & set(statement.modes):
            wrong += [f"{statement.text}\n  {why}" for why in difference(lab, statement)]
    return wrong


def difference(lab: Lab, statement: Statement) -> list[str]:
    """The differences between EXPLAIN SIEVE's prediction for a statement and the actual run."""
    try:
        rows = [row for row in lab.explain(statement.sql) if reasons(row) != {"no-index"}]
    except PySparkException as error:
        refused = SparkEngine(lab.spark).run(statement.sql).rows == (refusal(error),)
        return [] if refused else [str(error)]
    before = counts(lab)
    SparkEngine(lab.spark).run(statement.sql)
    after = counts(lab)
    run = {key: after[key] - before.get(key, 0) for key in after if after[key] > before.get(key, 0)}
    return list(compared(rows, run))


def compared(rows: Sequence[Mapping[str, Any]], run: Counts) -> Iterator[str]:
    """Describes how a run differs from the rows of EXPLAIN SIEVE.

    A run can have fewer scans than EXPLAIN shows: scans can share an exchange, and a join can be
    empty.
    """
    later = [row for row in rows if AT_RUN_TIME in (row["predicate"] or "")]
    said = {
        "scans": len(rows),
        "scans_at_run_time": len(later),
        "files_listed": sum(row["files_total"] for row in rows),
    }
    did = {name: run.get((name, None), 0) for name in said}
    all_ran = did["scans"] == said["scans"]
    if did != said if all_ran else any(did[name] > said[name] for name in said):
        yield f"says {said}, does {did}"
    least = sum(row["files_total"] - row["files_read"] for row in rows)
    skipped = run.get(("files_skipped", None), 0)
    if all_ran and (skipped < least if later else skipped != least):
        yield f"says that {least} files are skipped, and skips {skipped}"
    foretold = {reason for row in rows for reason in reasons(row)} - OF_VALUES
    why = {reason for name, reason in run if reason and name == "index_not_used"} - OF_VALUES
    if why != foretold if all_ran else why - foretold:
        yield f"says {sorted(foretold)}, and has the reasons {sorted(why)}"


def reasons(row: Mapping[str, Any]) -> set[str]:
    """The reasons that a row of EXPLAIN SIEVE contains."""
    return set(re.findall(r"([a-z-]+)(?: \([^)]*\))?: \d", row["reasons"] or ""))


def counts(lab: Lab) -> Counts:
    """The values of Sieve's counters over all scans so far."""
    rows = lab.sql("SELECT counter, reason, value FROM sieve_status()")
    return {(counter, reason): int(value) for counter, reason, value in rows}
