"""The tutorial is true: each SQL block runs, and prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path

from spark_session import Lab

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
_BLOCK = re.compile(r"```sql\n(?P<sql>.*?)```\n(?:```\n(?P<shown>.*?)```)?", re.DOTALL)


def printed(lab: Lab, statement: str) -> list[list[str]]:
    """Heads and rows of an answer as texts."""
    frame = lab.spark.sql(statement)
    rows = [["NULL" if cell is None else str(cell) for cell in row] for row in frame.collect()]
    lowered = [
        [cell.lower() if cell in {"True", "False"} else cell for cell in row] for row in rows
    ]
    return [frame.columns, *lowered]


def test_the_tutorial_is_true(lab: Lab) -> None:
    """In order, in an empty database; what is shown below a block is its last answer."""
    compared = 0
    with lab.database("tutorial"):
        for block in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
            for statement in block["sql"].strip().removesuffix(";").split(";\n"):
                answer = printed(lab, statement)
            if block["shown"] is not None:
                shown = [re.split(r" {2,}", line) for line in block["shown"].splitlines()]
                assert answer == shown, block["sql"]
                compared += 1
    assert compared >= 9
