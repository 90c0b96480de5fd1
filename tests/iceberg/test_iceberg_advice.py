"""ADVISE SIEVE INDEXES and the driver's record of scans include scans of Iceberg tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from iceberg_tables import create, insert, namespace, sizes
from spark_session import Lab

from sieve.workload.event_log.open_logs import find_logs
from sieve.workload.event_log.replay import Replay
from tests.event_log import logged

pytestmark = pytest.mark.iceberg


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test."""
    with namespace(lab, "spark_catalog.advised"):
        yield


def scans(lab: Lab, table: str) -> dict[str, dict[str, Any]]:
    """For each filter, the totals of all scans of a table with this filter."""
    lab.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    record = json.loads(lab.spark._jvm.org.apache.spark.sql.sieve.observe.ScanRecord.json())
    asked = [(json.loads(one["asked"]), one) for one in record["scans"]]
    return {json.dumps(of["filter"]): one for of, one in asked if of["table"] == table.split("/")}


def advice(lab: Lab, scope: str) -> dict[str, dict[str, Any]]:
    """The rows that ADVISE returns, as a dict from column name to the row about that column."""
    lab.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    rows = lab.spark.sql(f"ADVISE SIEVE INDEXES {scope}").collect()
    return {row["column"]: row.asDict() for row in rows}


def test_scans_are_recorded(lab: Lab) -> None:
    """The record contains the bytes of scans with and without an index, but no constants."""
    create(lab)
    insert(lab)
    create(lab, "d", "id BIGINT, k INT")
    lab.sql("INSERT INTO d SELECT /*+ COALESCE(1) */ * FROM VALUES (42, 3)")
    query = "SELECT * FROM t WHERE id = 717 AND v LIKE 'secret%'"
    lab.sql(query)
    ((text, one),) = scans(lab, "advised/t").items()
    assert json.dumps({"op": "=", "col": ["id"]}) in text
    counts = ("scans", "files", "bytes", "files_skipped", "bytes_skipped")
    assert [one[name] for name in counts] == [1, 10, sizes(lab, "true"), 0, 0]
    assert "717" not in json.dumps(one)
    assert "secret" not in json.dumps(one)
    lab.sql("SELECT /*+ BROADCAST(d) */ t.v FROM t JOIN d ON t.id = d.id WHERE k = 3")
    joined = {"op": "join", "col": ["id"]}
    assert any(json.dumps(joined) in text for text in scans(lab, "advised/t"))
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    before = scans(lab, "advised/t")
    lab.sql("SELECT * FROM t WHERE id = 42")
    lab.sql("SELECT * FROM t WHERE id = 43")
    (one,) = [row for row in scans(lab, "advised/t").values() if row not in before.values()]
    size = sizes(lab, "id = 42")
    assert json.loads(one["asked"])["used"] == ["id_sieve@1"]
    assert [one[name] for name in counts] == [2, 2, 2 * size, 18, 2 * (sizes(lab, "true") - size)]


def test_advice(lab: Lab) -> None:
    """ADVISE proposes indexes whose CREATE works, and advises to keep an index that queries use."""
    create(lab, "u")
    insert(lab, "id, concat('v', id DIV 10) v", "u")
    for k in range(3):
        lab.sql(f"SELECT * FROM u WHERE id = {40 + k}")
        lab.sql(f"SELECT * FROM u WHERE lower(v) = 'v{k}'")
    lab.sql("SELECT * FROM u ORDER BY id LIMIT 3")
    rows = advice(lab, "ON u")
    assert set(rows) == {"id", "lower(v)"}
    assert rows["id"]["files_before"] == 10
    assert rows["id"]["files_after"] < 4
    assert lab.sql(rows["id"]["estimate"])
    lab.sql(rows["id"]["statement"])
    lab.check("SELECT * FROM u WHERE id = 42", exactly=1)
    found = advice(lab, "IN advised")
    assert [found[column]["action"] for column in ("id", "lower(v)")] == ["keep", "create"]


def test_advice_names_the_catalog(lab: Lab) -> None:
    """The statements that ADVISE proposes name the table's catalog."""
    with namespace(lab, "store.deals"):
        create(lab)
        insert(lab)
        for k in range(3):
            lab.sql(f"SELECT * FROM t WHERE id = {40 + k}")
        (row,) = advice(lab, "").values()
        assert row["statement"] == "CREATE SIEVE INDEX ON store.deals.t (id)"
        lab.sql(row["statement"])
        lab.check("SELECT * FROM store.deals.t WHERE id = 42", exactly=1)
        assert advice(lab, "IN store.deals")["id"]["action"] == "keep"
        lab.sql("DROP SIEVE INDEX id_sieve ON t")


def test_indexed_expressions_are_not_suggested_again(lab: Lab) -> None:
    """ADVISE keeps an index on an expression or on elements, and suggests no second index."""
    lab.sql(
        "CREATE TABLE posts USING iceberg AS SELECT id, concat('Us', id) AS name, "
        "array(concat('t', id)) AS tags FROM range(0, 1000, 1, 10)"
    )
    wanted = {"lower(name)": "lower(name) = 'us717'", "tags": "array_contains(tags, 't717')"}
    for predicate in wanted.values():
        lab.sql(f"SELECT id FROM posts WHERE {predicate}")
    rows = advice(lab, "ON posts")
    assert {row["action"] for row in rows.values()} == {"create"}
    assert set(rows) == set(wanted)
    for column, predicate in wanted.items():
        lab.sql(rows[column]["statement"])
        lab.check(f"SELECT id FROM posts WHERE {predicate}", exactly=1)
    lab.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = lab.spark.sql("ADVISE SIEVE INDEXES ON posts").collect()
    assert sorted((row.column, row.action) for row in found) == sorted(
        (column, "keep") for column in wanted
    )


def test_scans_in_event_logs(lab: Lab, tmp_path: Path) -> None:
    """An event log contains the tables, filters, join keys and bytes of Iceberg scans."""
    create(lab, "u")
    insert(lab, "id, concat('v', id DIV 10) v", "u")
    lab.sql("CREATE TABLE store.advised.d (id BIGINT, k INT) USING iceberg")
    lab.sql("INSERT INTO store.advised.d VALUES (42, 3)")
    with logged(lab, tmp_path, compress="false"), lab.setting("spark.sieve.enabled", "false"):
        lab.sql("SELECT * FROM u WHERE lower(v) = 'v7' AND v LIKE '%v7%' AND id > 3")
        lab.sql(
            "SELECT /*+ BROADCAST(d) */ v FROM u JOIN store.advised.d ON u.id = d.id WHERE k = 3"
        )
        lab.sql("SELECT * FROM u ORDER BY id LIMIT 3")
    lab.sql("DROP TABLE store.advised.d")
    replay = Replay()
    for log in find_logs(tmp_path):
        replay.read(log)
    assert (replay.scans, replay.unread) == (4, {})
    size, names = sizes(lab, "true", "u"), ("advised", "u")
    found = {group.table + tuple(group.kinds.values()): group for group in replay.workload}
    assert set(found) == {
        (*names, "=", "range"),
        (*names, "join"),
        (*names, "order by limit"),
        ("store.advised", "d", "="),
    }
    assert [one.bytes for one in found.values() if one.table == names] == [size] * 3
    assert set(found[*names, "=", "range"].kinds) == {("", "lower(v)"), ("id",)}
