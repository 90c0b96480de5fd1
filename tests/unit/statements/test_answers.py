"""Tests the columns that CREATE, REFRESH and OPTIMIZE return: change, seconds and advice."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.environment import Advice
from sieve.operations import create as creating
from sql_ext.statements import context
from tests.fake_scan import scan
from tests.fake_spark import Session, Warehouse, without_spark

CREATE = "CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """A table of four files."""
    made = Warehouse(tmp_path)
    made.create_table("t", [range(10 * k, 10 * k + 10) for k in range(4)])
    with without_spark():
        yield made


def answers(warehouse: Warehouse, *statements: str) -> list[tuple[Any, ...]]:
    """Runs statements; returns version, change and advice from the last statement's rows."""
    rows = [Session(warehouse).sql(statement) for statement in statements][-1]
    return [(row[1], row[5], row[6]) for row in rows]


def test_change_names_the_work_that_was_done(warehouse: Warehouse) -> None:
    """The column `change` says "created", "unchanged", "refreshed" or "rebuilt"."""
    create = CREATE.replace("INDEX ON", "INDEX IF NOT EXISTS ON")
    assert answers(warehouse, create) == [(1, "created", None)]
    assert answers(warehouse, create) == [(1, "unchanged", None)]
    assert answers(warehouse, "REFRESH SIEVE INDEX ON t") == [(1, "unchanged", None)]
    assert answers(warehouse, "OPTIMIZE SIEVE INDEX ON t") == [(1, "unchanged", None)]
    warehouse.append("t", range(40, 50))
    assert answers(warehouse, "REFRESH SIEVE INDEX ON t") == [(2, "refreshed", None)]
    assert answers(warehouse, "OPTIMIZE SIEVE INDEX ON t") == [(3, "rebuilt", None)]
    assert answers(warehouse, "REFRESH SIEVE INDEX ON t FULL") == [(4, "rebuilt", None)]


def test_seconds_are_the_time_of_the_statement(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column `seconds` is the statement's time, about 0 if REFRESH does nothing."""
    now, build = [0.0], creating.build_contents

    def slow(*args: Any, name: str) -> Any:
        now[0] += 7
        return build(*args, name=name)

    monkeypatch.setattr(context, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(creating, "build_contents", slow)
    (created,) = Session(warehouse).sql(CREATE)
    assert created[4] == 7
    (unchanged,) = Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    assert unchanged[4] == 0
    (kept,) = Session(warehouse).sql("CREATE SIEVE INDEX IF NOT EXISTS ON t (id)")
    assert kept[4] == 0


def test_advice_names_the_problems_of_an_index(warehouse: Warehouse) -> None:
    """The advice mentions options that differ, a disabled index, and a lost registration."""
    other = "CREATE SIEVE INDEX IF NOT EXISTS ON t (id) OPTIONS (error = 2)"
    ((_, change, advice),) = answers(warehouse, CREATE, other)
    assert change == "unchanged"
    assert "ALTER SIEVE INDEX ... SET OPTIONS" in advice
    off = "ALTER SIEVE INDEX id_sieve ON t DISABLE"
    ((_, change, advice),) = answers(warehouse, off, "REFRESH SIEVE INDEX ON t")
    assert change == "unchanged"
    assert advice.endswith("ALTER SIEVE INDEX `id_sieve` ON `shop`.`t` ENABLE")
    assert answers(warehouse, "ALTER SIEVE INDEX id_sieve ON t ENABLE", CREATE_AGAIN)[0][2] is None
    warehouse.alter("t", lambda before: {"born": before["born"]})
    ((_, change, advice),) = answers(warehouse, "REFRESH SIEVE INDEX ON t")
    assert change == "unchanged"
    assert "registered again" in advice


CREATE_AGAIN = "CREATE SIEVE INDEX IF NOT EXISTS ON t (id)"


def test_answer_counts_files_that_are_always_read(warehouse: Warehouse) -> None:
    """The advice counts files that every query reads, such as files with a time in the future."""
    future = time.time() + 3600
    os.utime(warehouse.folder / "t" / "00003.txt", (future, future))
    ((_, change, advice),) = answers(warehouse, CREATE)
    assert change == "created"
    assert advice.startswith("1 of 4 files were written too shortly before")
    assert scan(warehouse, "t", 3).files == 2


def test_show_of_a_database_counts_stale_files(warehouse: Warehouse) -> None:
    """SHOW for a database counts the new and changed files of each index that is not disabled."""
    session = Session(warehouse)
    session.sql(CREATE)
    assert [row[6] for row in session.sql("SHOW SIEVE INDEXES")] == ["ready"]
    warehouse.append("t", range(40, 50))
    changed = warehouse.folder / "t" / "00001.txt"
    changed.write_text("11\n12")
    assert [row[6] for row in session.sql("SHOW SIEVE INDEXES")] == ["stale: 2 files"]
    session.sql("ALTER SIEVE INDEX id_sieve ON t DISABLE")
    assert [row[6] for row in session.sql("SHOW SIEVE INDEXES")] == ["disabled"]


def test_each_advice_is_shown_once() -> None:
    """`Advice.of` returns the advice for one index and for all indexes, without repetition."""
    advice = Advice()
    advice.add("for a", "a")
    advice.add("for all")
    advice.add("for a", "a")
    assert advice.of("a") == ["for a", "for all"]
    assert advice.of("b") == ["for all"]
    assert list(advice) == [("a", "for a"), (None, "for all")]
