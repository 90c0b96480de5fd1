"""Smoke test of SQL clients. Each client runs CREATE, a query, EXPLAIN SIEVE, SHOW and DROP."""

from __future__ import annotations


def tour(table: str) -> list[str]:
    """The statements for a new table of eight files.

    The first six statements create and use an index; the last two drop the index.
    """
    rows = "SELECT /*+ REPARTITION_BY_RANGE(8, a) */ id AS a FROM range(1000) AS r(id)"
    return [
        f"CREATE TABLE {table} USING parquet AS {rows}",
        f"CREATE SIEVE INDEX ON {table} (a)",
        f"CREATE SIEVE INDEX IF NOT EXISTS ON {table} (a) OPTIONS (budget = '7%')",
        f"SELECT 'found' AS mark, a FROM {table} WHERE a = 7",
        f"EXPLAIN SIEVE SELECT * FROM {table} WHERE a = 7",
        f"SHOW SIEVE INDEXES ON {table}",
        f"DROP SIEVE INDEX ON {table} (a)",
        f"EXPLAIN SIEVE SELECT * FROM {table} WHERE a = 7",
    ]


def check(lines: list[list[str]]) -> None:
    """Checks that a client's output contains the statements' results and their column headings."""
    rows = [line for line in lines if line[0] in {"a_sieve", "found", "1", "default"}]
    created, kept, found, explained, shown, dropped, explained_after = rows
    assert created[:3] == ["a_sieve", "1", "8"]
    assert created[5] == "created"
    assert created[6] in {"NULL", "None", "null"}
    assert kept[5] == "unchanged"
    assert kept[6].endswith("ALTER SIEVE INDEX ... SET OPTIONS changes them")
    assert found == ["found", "7"]
    assert explained[2] == "a_sieve@1"
    assert explained[4:6] == ["8", "1"]
    assert shown[:5] == ["default", shown[1], "a_sieve", "a", "bigint"]
    assert dropped == ["a_sieve"]
    assert explained_after[4:6] == ["8", "8"]


def cells(output: str) -> list[list[str]]:
    """The cells of an output in which tabs separate the columns."""
    return [line.split("\t") for line in output.splitlines() if line.strip()]
