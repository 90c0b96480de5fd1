"""Statements for crash tests, and the invariants that must hold after any crash."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.fake_scan import Scan, scan
from tests.fake_spark import Session, Warehouse, registrations

CREATE = "CREATE SIEVE INDEX IF NOT EXISTS ON t (id) OPTIONS (error = 1)"
LOST = "another tool writes the table as it was"

STATEMENTS = {
    "create": [CREATE],
    "replace": [CREATE, "append", "CREATE OR REPLACE SIEVE INDEX ON t (id)"],
    "refresh": [CREATE, "append", "REFRESH SIEVE INDEX ON t"],
    "refresh in full": [CREATE, "REFRESH SIEVE INDEX ON t FULL"],
    "optimize": [CREATE, "append", "REFRESH SIEVE INDEX ON t", "OPTIMIZE SIEVE INDEX ON t"],
    "adopt": [CREATE, LOST, "REFRESH SIEVE INDEX ON t"],
    "disable": [CREATE, "ALTER SIEVE INDEX id_sieve ON t DISABLE"],
    "set options": [CREATE, "ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (error = 9)"],
    "vacuum": [CREATE, "REFRESH SIEVE INDEX ON t FULL", "VACUUM SIEVE INDEX ON t RETAIN 0 HOURS"],
    "vacuum all": [CREATE, "drop table", "age", "VACUUM SIEVE INDEXES"],
    "drop": [CREATE, "DROP SIEVE INDEX IF EXISTS id_sieve ON t"],
}
"""For each scenario: statements that prepare the table, and then the statement under test."""


def prepared(folder: Path, name: str) -> tuple[Warehouse, str]:
    """Prepares a scenario in a new warehouse. Returns the warehouse and the tested statement."""
    warehouse = Warehouse(folder / "shop")
    warehouse.create_table("t", [range(10 * k, 10 * k + 10) for k in range(4)])
    *before, last = STATEMENTS[name]
    for step in before:
        _play(warehouse, step)
    return warehouse, last


def _play(warehouse: Warehouse, step: str) -> None:
    if step == "append":
        warehouse.append("t", range(40, 50))
    elif step == LOST:
        warehouse.alter("t", lambda before: {"born": before["born"]})
    elif step == "drop table":
        (warehouse.folder / "t.properties").unlink()
    elif step == "age":
        age(warehouse)
    else:
        Session(warehouse).sql(step)


def age(warehouse: Warehouse) -> None:
    """Makes every file below the root two days older."""
    before = time.time() - 48 * 3600
    for path in warehouse.root.rglob("*"):
        os.utime(path, (before, before))


WHOLE = frozenset({"no-index", "disabled"})


def looked_at(warehouse: Warehouse, reasons: frozenset[str] = WHOLE) -> Scan | None:
    """Checks that queries lose no row, and that they read whole files only for the given reasons.

    Returns the last scan, or None if the table does not exist.
    """
    if not (warehouse.folder / "t.properties").exists():
        return None
    told = [scan(warehouse, "t", key) for key in (45, 13)]
    assert {reason for one in told for reason in one.reasons} <= reasons, told
    return told[-1]


def stable(warehouse: Warehouse, last: str) -> tuple[int | None, dict[str, int]]:
    """Repeats the statement, makes all files two days old, and runs VACUUM.

    Returns:
        How many files a query reads after VACUUM, and how many index files of each kind remain.
    """
    Session(warehouse).sql(last)
    end = looked_at(warehouse)
    age(warehouse)
    Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    if end is not None and end.used:
        Session(warehouse).sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS")
    assert looked_at(warehouse) == end
    assert _candidates(warehouse) == []
    return None if end is None else end.files, _left(warehouse)


def _candidates(warehouse: Warehouse) -> list[str]:
    """The files of unregistered index folders."""
    there = (warehouse.folder / "t.properties").exists()
    properties = registrations(warehouse.properties("t")) if there else {}
    known = {json.loads(value)["uuid"] for value in properties.values()}
    files = [path for path in warehouse.root.rglob("*") if path.is_file()]
    inside = [str(path.relative_to(warehouse.root)) for path in files]
    return [name for name in inside if name.partition("/")[0] not in known]


def _left(warehouse: Warehouse) -> dict[str, int]:
    """The number of files of each kind below the root, except manifests and ``_SUCCESS`` files."""
    told = dict.fromkeys(("intent.json", "registered", "runs", "locations", "intents"), 0)
    for path in warehouse.root.rglob("*"):
        kind = path.relative_to(warehouse.root).parts[1:2]
        if path.is_file() and kind and kind[0] in told and path.name != "_SUCCESS":
            told[kind[0]] += 1
    return told
