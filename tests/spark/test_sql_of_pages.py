"""Runs the SQL blocks of each docs page in order, and compares the results with the page.

Blocks marked ``sql`` are run; blocks marked ``sql-grammar`` show a statement's form, and are not
run. Below a block, a page shows the results of the block's last statements. Blank lines separate
the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_session import Lab

HOME = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"^( *)```sql\n(?P<sql>.*?)^\1```\n(?:\1```\n(?P<shown>.*?)^\1```)?", re.DOTALL | re.MULTILINE
)

_MARKED_OR_NOT = re.compile(r"^( *)```(\S*)\n(?P<text>.*?)^\1```", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(
    r"\s*(ADVISE|ALTER|CALL|CREATE|DESCRIBE|DROP|EXPLAIN|INSERT|MERGE|REFRESH|SELECT|SET|SHOW) "
)

MARKS = {"readme": pytest.mark.tools, "json": pytest.mark.long}
# The examples of the page on statements read the table that README creates.
DATABASES = {
    "home": ["docs/index.md"],
    "tutorial": ["docs/tutorial.md"],
    "json": ["docs/recipes/json.md"],
    "readme": ["README.md", "docs/sql.md", "docs/recipes/advise.md"],
}
ELSEWHERE = {"docs/recipes/superset.md": "tests/clients/test_superset.py"}

# Statements that run before a block with the given text. These statements create tables and indexes
# that the block needs and its page does not create.
BEFORE = {
    "JOIN customers": [
        "ALTER TABLE orders ADD COLUMNS (customer BIGINT)",
        "CREATE TABLE customers USING parquet AS SELECT id, 'Utrecht' AS city FROM range(10)",
    ],
    # The first example of the home page indexes a table that README creates.
    "ON orders (id);\nSELECT": [
        """CREATE TABLE orders USING parquet AS
          SELECT /*+ REPARTITION_BY_RANGE(100, arrived) */ id, arrived, id % 997 AS amount
          FROM (SELECT id, if(id % 50 = 7, id + id * 7919 % 400000, id) AS arrived
            FROM range(1000000))"""
    ],
}

MEASURED = {"seconds", "value", "bytes", "bytes_total", "bytes_read"} | {
    "first_key", "last_key", "blocks", "expected_files",
}  # fmt: skip
"""Columns that vary: times, counts and sizes, and the borders of segments.

Borders of segments depend on the sample that a build draws.
"""


def blocks(page: str) -> Iterator[re.Match[str]]:
    """The SQL blocks of a page, in order."""
    return _BLOCK.finditer((HOME / page).read_text(encoding="utf-8"))


def printed(lab: Lab, statement: str) -> list[list[str]]:
    """A result as text: its column names, then its rows."""
    frame = lab.spark.sql(statement)
    rows = [["NULL" if cell is None else str(cell) for cell in row] for row in frame.collect()]
    lowered = [
        [cell.lower() if cell in {"True", "False"} else cell for cell in row] for row in rows
    ]
    # The pages show table names in the database `default`.
    here = f"spark_catalog.{lab.spark.catalog.currentDatabase()}."
    texts = [[cell.replace(here, "spark_catalog.default.") for cell in row] for row in lowered]
    return comparable([frame.columns, *texts])


def comparable(rows: list[list[str]]) -> list[list[str]]:
    """The rows, with a mark in place of each number that varies."""
    measured = [name in MEASURED for name in rows[0]]
    return [
        [
            "#" if is_measured and re.fullmatch(r"[\d.]+", cell) else cell
            for cell, is_measured in zip(row, measured, strict=True)
        ]
        for row in rows
    ]


def tables(shown: str) -> list[list[list[str]]]:
    """The results that a page shows below a block."""
    answers = shown.strip("\n").split("\n\n")
    return [
        comparable([re.split(r" {2,}", line.strip()) for line in answer.splitlines()])
        for answer in answers
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("database", "least"),
    [
        pytest.param(name, least, marks=MARKS.get(name, ()))
        for name, least in zip(DATABASES, (1, 10, 1, 8), strict=True)
    ],
)
def test_sql_blocks_of_a_page_have_the_results_shown(lab: Lab, database: str, least: int) -> None:
    """In order and in an empty database, a page's blocks give the results that the page shows."""
    compared, wrong = 0, []
    with lab.database(database):
        for block in (block for page in DATABASES[database] for block in blocks(page)):
            for phrase, statements in BEFORE.items():
                if phrase in block["sql"]:
                    for statement in statements:
                        lab.sql(statement)
            statements = block["sql"].strip().removesuffix(";").split(";\n")
            answers = [printed(lab, statement) for statement in statements]
            if block["shown"] is None:
                continue
            shown = tables(block["shown"])
            if "sieve_status()" in block["sql"]:
                # The counters include scans that other tests have made in this session.
                answers = [[row for row in answers[-1] if row in shown[0]]]
            if answers[-len(shown) :] != shown:
                wrong.append((block["sql"], answers[-len(shown) :]))
            compared += 1
    assert not wrong
    assert compared >= least


def test_no_page_is_left_out() -> None:
    """This module or one of the listed modules tests each page with an SQL block."""
    pages = [HOME / "README.md", *(HOME / "docs").rglob("*.md")]
    names = {str(page.relative_to(HOME)) for page in pages}
    with_sql = {name for name in names if "```sql\n" in (HOME / name).read_text(encoding="utf-8")}
    run = {page for listed in DATABASES.values() for page in listed}
    assert with_sql == run | ELSEWHERE.keys()
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (HOME / test).read_text(encoding="utf-8")
    for name in names:
        text = (HOME / name).read_text(encoding="utf-8")
        unmarked = [block["text"] for block in _MARKED_OR_NOT.finditer(text) if not block[2]]
        assert not [text for text in unmarked if _STATEMENT.match(text)], name
    for page in with_sql:
        text = (HOME / page).read_text(encoding="utf-8")
        assert len(list(blocks(page))) == text.count("```sql\n")
