"""Tests table functions without Spark.

Some functions return the rows of a statement; others return their own rows.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import DeniedError, InvalidInputError, UnsupportedError
from sieve.reader.lru_cache import FileCache
from sql_ext.statements.context import Row
from sql_ext.statements.table_functions import FUNCTIONS, call
from tests.fake_spark import PlainStatement, Session, Warehouse, without_spark
from udfs import counters, files, segments


@dataclass(frozen=True, slots=True)
class Statement(PlainStatement):
    """The context of a user's statement.

    This context records the columns whose permissions it checks.
    """

    asked: list[Any] = field(default_factory=list)
    denied: bool = False

    def plan_column(self, table: Any, column: Any) -> None:
        self.asked.append((list(table), list(column.path)))
        if self.denied:
            raise DeniedError("SIEVE_PERMISSION_DENIED", "no right to query t")


def statement(warehouse: Warehouse, *, denied: bool = False, **other: Any) -> Statement:
    """Returns the context of a call of a function."""
    at = Session(warehouse).context()
    assert isinstance(at, PlainStatement)
    names = [name for name in at.__dataclass_fields__ if name not in other]
    return Statement(**{name: getattr(at, name) for name in names}, **other, denied=denied)


def rows(at: Statement, name: str, **arguments: Any) -> list[Row]:
    """Calls a function; each returned row has a value for each column of the function."""
    answer = call({"name": name, "arguments": arguments}, at)
    assert answer["columns"] == FUNCTIONS[name].columns
    found = list(answer["rows"])
    assert all(len(row) == len(answer["columns"]) for row in found)
    return found


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Creates a table of two files with an index, and a table without an index."""
    made = Warehouse(tmp_path)
    made.create_table("t", [[1, 2], [3]])
    made.create_table("u", [[7]])
    with without_spark():
        Session(made).sql("CREATE SIEVE INDEX v ON t (id)")
    return made


@pytest.mark.parametrize(
    ("name", "arguments", "sql"),
    [
        ("sieve_indexes", {}, "SHOW SIEVE INDEXES"),
        ("sieve_indexes", {"database": ["shop"]}, "SHOW SIEVE INDEXES IN shop"),
        ("sieve_versions", {"table": ["t"]}, "SHOW SIEVE VERSIONS ON t"),
        ("sieve_describe", {"table": ["t"], "index": "v"}, "DESCRIBE SIEVE INDEX v ON t"),
        (
            "sieve_describe",
            {"table": ["t"], "index": "v", "detail": "Extended"},
            "DESCRIBE SIEVE INDEX EXTENDED v ON t",
        ),
    ],
)
def test_a_function_gives_the_rows_of_its_statement(
    warehouse: Warehouse, name: str, arguments: dict[str, Any], sql: str
) -> None:
    """A function returns the same rows as its statement."""
    at = statement(warehouse)
    assert rows(at, name, **arguments) == list(Session(warehouse).sql(sql)) != []
    assert at.asked == []


def test_another_detail_than_extended_is_refused(warehouse: Warehouse) -> None:
    """`sieve_describe` accepts only the detail 'extended', as the error for other values says."""
    with pytest.raises(InvalidInputError, match=r"takes 'extended' as its third .* not 'all'"):
        rows(statement(warehouse), "sieve_describe", table=["t"], index="v", detail="all")


def test_segments_need_permission_to_query_the_column(warehouse: Warehouse) -> None:
    """`sieve_segments` needs permission to query the column, because its rows contain keys."""
    at = statement(warehouse)
    found = rows(at, "sieve_segments", table=["t"], index="V")
    assert [row[1:3] for row in found] == [("1", "3")]
    assert at.asked == [(["t"], ["id"])]
    with pytest.raises(DeniedError):
        rows(statement(warehouse, denied=True), "sieve_segments", table=["t"], index="v")
    with pytest.raises(InvalidInputError, match="has no index w"):
        rows(at, "sieve_segments", table=["t"], index="w")


def png_size(row: Row) -> tuple[int, ...]:
    """Returns the width and height of the picture in a row of ``sieve_inspect``."""
    png = base64.b64decode(row[1], validate=True)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert b"Software" not in png
    return struct.unpack(">II", png[16:24])


def test_picture_needs_permission_to_query_the_column(warehouse: Warehouse) -> None:
    """`sieve_inspect` returns one row if the user has permission to query the column."""
    at = statement(warehouse)
    ((summary, _),) = found = rows(at, "sieve_inspect", table=["t"], index="V")
    assert at.asked == [(["t"], ["id"])]
    median, *widest = summary.splitlines()
    assert median == "of all keys a file spans 50.0% by min and max (median), 50.0% by the index"
    assert [line.partition(" with ")[2] for line in widest] == [
        "66.7% of all keys, 66.7% by min and max",
        "33.3% of all keys, 33.3% by min and max",
    ]
    assert png_size(found[0]) == (1320, 990)
    with pytest.raises(DeniedError):
        rows(statement(warehouse, denied=True), "sieve_inspect", table=["t"], index="v")


def test_error_of_inspect_states_a_remedy(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to do if the index has no key, or if matplotlib is missing."""
    warehouse.create_table("empty", [[]])
    with without_spark():
        Session(warehouse).sql("CREATE SIEVE INDEX v ON empty (id)")
    at = statement(warehouse)
    with pytest.raises(UnsupportedError, match=r"no file of shop\.empty holds a key"):
        rows(at, "sieve_inspect", table=["empty"], index="v")
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)
    with pytest.raises(UnsupportedError, match=r"pip install 'sieve-index\[inspect\]'"):
        rows(at, "sieve_inspect", table=["t"], index="v")


def test_spark_plans_the_query_of_sieve_files(warehouse: Warehouse) -> None:
    """`sieve_files` returns the files that Spark plans to read, and refuses unknown tables."""
    asked: list[Any] = []

    def plan(session: Any, table: Any, predicate: str) -> str:
        asked.append((session, table, predicate))
        return json.dumps({"files": [], "index": None})

    driver = SimpleNamespace(explain=lambda: SimpleNamespace(files=plan))
    at = statement(warehouse, driver=driver)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "file_rows", lambda scan: iter([(len(scan),) * len(files.COLUMNS)]))
        assert rows(at, "sieve_files", table=["t"], predicate="id = 1") == [
            (2,) * len(files.COLUMNS)
        ]
    assert asked == [(at.session, ["t"], "id = 1")]
    with pytest.raises(InvalidInputError, match="there is no table `w`"):
        rows(at, "sieve_files", table=["w"], predicate="id = 1")


def test_the_counters_of_the_driver_and_the_size_of_the_cache(warehouse: Warehouse) -> None:
    """`sieve_status` shows the counters of the driver, and the size of the cache.

    For a cache without a limit, it shows the limit 0.
    """
    counted = [["scans", None, 5], ["unused", "gone", 1]]
    driver = SimpleNamespace(counters=lambda: json.dumps(counted))
    at = statement(warehouse, driver=driver, cache=FileCache(1 << 20))
    sizes = [("cache_bytes", None, 0), ("cache_bytes_bound", None, 1 << 20)]
    assert rows(at, "sieve_status") == [*counted, *sizes]
    unbound = replace(at, cache=FileCache(0))
    assert rows(unbound, "sieve_status")[-1] == ("cache_bytes_bound", None, 0)
    assert (len(segments.COLUMNS), len(counters.COLUMNS)) == (7, 3)
