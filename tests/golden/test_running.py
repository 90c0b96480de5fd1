"""With ``--every``, a run omits some queries, but never a statement that changes something."""

from __future__ import annotations

from pathlib import Path

from corpus import read_script
from engines import Result
from running import answers


class Noted:
    """An engine that only records each statement."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def run(self, sql: str) -> Result:
        self.given.append(sql)
        return Result((sql,))


def test_every_change_runs_if_queries_are_omitted(tmp_path: Path) -> None:
    """An omitted query has the result None. A run never omits statements that change something."""
    path = tmp_path / "some.sql"
    changes = ["INSERT INTO t SELECT 1", "SET a = b", "REFRESH SIEVE INDEX ON t"]
    queries = ["SELECT 0", *changes, "with x as (select 4) table x", "SELECT 5", "SELECT 6"]
    path.write_text("--@ queries\n" + "".join(f"{one};\n" for one in queries))
    engine, script = Noted(), read_script(path)
    results = answers(engine, "on", script, every=3)
    assert [r and r.rows[0] for r in results] == ["SELECT 0", *changes, None, None, "SELECT 6"]
    assert engine.given[-5:] == ["SELECT 0", *changes, "SELECT 6"]
    engine.given.clear()
    assert [r and r.rows[0] for r in answers(engine, "on", script)] == queries
