"""Runs a file of the golden corpus, and compares its results with the expected results."""

from __future__ import annotations

from collections.abc import Sequence

from corpus import EVERY_MODE, OVER_THRIFT, Script, Statement, read_expected, render
from engines import SETTINGS, Engine, Result
from spark_session import INTERPRETED


def prepare(engine: Engine, script: Script) -> None:
    """Creates the tables and indexes of a corpus file."""
    for statement in script.setup:
        rows = engine.run(statement.sql).rows
        assert not any(row.startswith("error:") for row in rows), (statement.text, rows)


def answers(engine: Engine, mode: str, script: Script, every: int = 1) -> list[Result | None]:
    """The result of each statement in a mode. An omitted statement has the result None.

    Args:
        engine: the engine that runs the statements.
        mode: one of `MODES`.
        script: the script with the statements.
        every: the number n, if only one query in n runs.
    """
    interpreted = {} if script.name in EVERY_MODE | OVER_THRIFT else INTERPRETED
    for key, value in (SETTINGS[mode] | interpreted).items():
        engine.run(f"SET {key}={value}")
    return [
        engine.run(s.sql) if mode in s.modes and (k % every == 0 or not s.only_reads) else None
        for k, s in enumerate(script.queries)
    ]


def wrong_files(statement: Statement, mode: str, read: int | None) -> list[str]:
    """Returns a message if the number of files read does not fit the statement's annotation."""
    allowed = statement.files
    if allowed is None or read is None:
        return []
    right = read == allowed.total if mode == "off" else allowed.allow(read)
    return [] if right else [f"{mode} reads {read} files, wanted {allowed}: {statement.text}"]


def differences(script: Script, mode: str, results: Sequence[Result | None]) -> list[str]:
    """Describes rows that differ from the ``.out`` file, and unexpected numbers of files read."""
    expected = read_expected(script.expected)
    assert len(expected) == len(script.queries), "the .out file is of another .sql file"
    wrong = []
    for statement, result, entry in zip(script.queries, results, expected, strict=True):
        if result is None:
            continue
        found = render(statement, result.rows)
        if found != entry:
            wrong.append(f"{mode} gives\n{found}instead of\n{entry}")
        wrong += wrong_files(statement, mode, result.files)
    return wrong
