"""ADVISE SIEVE INDEXES, and the record of past scans that ADVISE reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from spark_session import COMPILED, Lab

SECRET = "utrecht"
QUERIES = (
    "SELECT * FROM orders WHERE id = 717171",
    "SELECT * FROM orders WHERE id IN (717171, 717172)",
    f"SELECT * FROM orders WHERE note = '{SECRET}'",
    "SELECT * FROM orders WHERE year(ordered) = 1970",
    "SELECT * FROM orders WHERE upper(note) = 'A'",
    "SELECT * FROM orders WHERE note LIKE '%7'",
    "SELECT * FROM orders WHERE s.`b b` > 71 AND s.`b b` <= 717",
    f"SELECT * FROM orders JOIN customers c ON customer = c.id WHERE city = '{SECRET}3'",
    (
        "SELECT /*+ MERGE(c) */ * FROM orders JOIN customers c ON customer = c.id "
        f"WHERE city = '{SECRET}3'"
    ),
    "SELECT * FROM orders ORDER BY note LIMIT 3",
    f"SELECT * FROM orders WHERE note = '{SECRET}' OR id = 5",
)


@pytest.fixture(scope="module")
def tables(lab: Lab) -> Iterator[None]:
    """Creates a table of ten files and a small table."""
    with lab.database("advised"):
        lab.sql(
            "CREATE TABLE orders USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, "
            "id % 10 AS customer, string(id) AS note, timestamp_millis(id) AS ordered, "
            "named_struct('b b', id) AS s, array(id) AS list FROM range(1000)"
        )
        lab.sql(
            "CREATE TABLE customers USING parquet AS "
            f"SELECT id, concat('{SECRET}', id) AS city FROM range(10)"
        )
        yield


def recorded(lab: Lab) -> Any:
    """The driver's record of scans, after the listener has received all events."""
    lab.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    record = lab.spark._jvm.org.apache.spark.sql.sieve.observe.ScanRecord
    return json.loads(record.json())


def advice(lab: Lab, scope: str = "") -> list[dict[str, Any]]:
    """The rows that an ADVISE statement returns."""
    recorded(lab)
    return [row.asDict() for row in lab.spark.sql(f"ADVISE SIEVE INDEXES {scope}").collect()]


@pytest.mark.usefixtures("tables")
def test_scans_are_recorded_without_their_constants(lab: Lab) -> None:
    """The record lists the scans of all tables, and keeps their filters without the constants."""
    for query in QUERIES:
        lab.sql(query)
    text = json.dumps(recorded(lab))
    assert "orders" in text
    assert SECRET not in text
    assert "7171" not in text
    assert not re.search(r"[dD][xX]Ry", text), "base64 of the constant"
    point = {
        "op": "and",
        "args": [{"op": "is not null", "col": ["id"]}, {"op": "=", "col": ["id"]}],
    }
    asked = {
        "table": ["advised", "orders"],
        "used": [],
        "filter": {"op": "and", "args": [point]},
    }
    (row,) = [row for row in recorded(lab)["scans"] if json.loads(row["asked"]) == asked]
    size = sum(file.stat().st_size for file in lab.files("orders"))
    assert (row["scans"], row["files"], row["bytes"]) == (1, 10, size)
    assert (row["files_skipped"], row["bytes_skipped"]) == (0, 0)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("create", [False, pytest.param(True, marks=pytest.mark.long)])
def test_advice_names_expressions(lab: Lab, *, create: bool) -> None:
    """ADVISE proposes an index on an expression; with this index, the query reads one file.

    The record of scans omits an expression with a text constant, because the text could be a row's
    value.
    """
    lab.sql(
        "CREATE TABLE payloads USING parquet AS SELECT id, "
        """concat('{"user":{"id":', id, '}}') AS payload, map('k', concat('V', id)) AS attrs """
        "FROM range(0, 1000, 1, 10)"
    )
    wanted = {
        "get_json_object(payload, '$.user.id')": "= '717'",
        "lower(attrs['k'])": "IN ('v717', 'v718')",
        "(CAST(length(payload) AS BIGINT) + id)": "= 735",
    }
    others = (f"concat(payload, '{SECRET}') = 'x'", "id + 1 = 718")
    for predicate in (*(f"{sql} {of}" for sql, of in wanted.items()), *others):
        lab.sql(f"SELECT * FROM payloads WHERE {predicate}")
    assert SECRET not in json.dumps(recorded(lab))
    rows = {row["column"]: row for row in advice(lab, "ON payloads")}
    assert set(rows) == {*wanted, "id"}
    for sql, of in wanted.items():
        assert rows[sql]["statement"] == f"CREATE SIEVE INDEX ON advised.payloads ({sql})"
        assert rows[sql]["files_after"] <= 2.0
        if create:
            assert lab.sql(rows[sql]["estimate"])
            create_without_advice(lab, rows[sql])
            lab.check(f"SELECT * FROM payloads WHERE {sql} {of}", exactly=1)
    if create:
        left = {row["column"]: row["action"] for row in advice(lab, "ON payloads")}
        assert {left[sql] for sql in wanted} == {"keep"}
    lab.sql("DROP TABLE payloads")


def create_without_advice(lab: Lab, row: dict[str, Any]) -> None:
    """Creates a suggested index, and asserts that CREATE finds no problem with it."""
    (created,) = lab.spark.sql(row["statement"]).collect()
    assert created.advice is None


def test_advice_judges_rare_elements_and_long_texts(lab: Lab) -> None:
    """ADVISE suggests an index if most of its keys are rare, and CREATE then reports no problem.

    Most elements of the arrays are in all files, but most distinct elements are in one file. Most
    sequences of 4 digits are in all files, but a text of 12 digits is in one file.
    """
    lab.sql(
        "CREATE TABLE events USING parquet AS SELECT id, array('all', if(id % 3 = 0, concat('t', "
        "id), 'some'), 'more') AS tags, concat_ws(' ', lpad(pmod(xxhash64(id), 1000000000000), 12, "
        "'0'), lpad(pmod(xxhash64(-id), 1000000000000), 12, '0')) AS line FROM range(0, 9000, 1, 6)"
    )
    (piece,) = lab.sql("SELECT substr(line, 1, 12) FROM events WHERE id = 4717")[0]
    wanted = {"tags": "array_contains(tags, 't4716')", "line": f"line LIKE '%{piece}%'"}
    for predicate in wanted.values():
        lab.sql(f"SELECT * FROM events WHERE {predicate}")
    rows = {row["column"]: row for row in advice(lab, "ON events")}
    assert {column for column in rows if column != "id"} == set(wanted)
    for column in wanted:
        create_without_advice(lab, rows[column])
    lab.check(f"SELECT * FROM events WHERE {wanted['tags']}", exactly=1)
    lab.sql("DROP TABLE events")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("create", [False, pytest.param(True, marks=pytest.mark.long)])
def test_advice_names_tuples(lab: Lab, *, create: bool) -> None:
    """If each value in a predicate is in many files, ADVISE proposes an index on a tuple.

    If one value in a predicate is in all files, ADVISE proposes an index on another column of the
    predicate. CREATE accepts both proposals.
    """
    lab.sql(
        "CREATE TABLE pairs USING parquet AS SELECT id, pmod(xxhash64(id), 60) AS a, "
        "pmod(xxhash64(-id), 60) AS b, id % 9 AS everywhere, id AS x FROM range(0, 9000, 1, 30)"
    )
    wanted = {"(a, b)": "a = 3 AND b IN (7, 8)", "x": "everywhere = 7 AND x = 3031"}
    others = ("(a, b) IN ((3L, 7L), (4L, 5L))", "a = 3 AND b > 50", "everywhere = 7")
    for predicate in (*wanted.values(), *others):
        lab.sql(f"SELECT * FROM pairs WHERE {predicate}")
    rows = {row["column"]: row for row in advice(lab, "ON pairs")}
    assert set(rows) == set(wanted)
    assert rows["(a, b)"]["statement"] == "CREATE SIEVE INDEX ON advised.pairs ((a, b))"
    assert rows["(a, b)"]["asked"] == "in 2"
    if create:
        for row in rows.values():
            assert lab.sql(row["estimate"])
            create_without_advice(lab, row)
        found = lab.check(f"SELECT * FROM pairs WHERE {wanted['(a, b)']}")
        assert found.files <= 8
        lab.check(f"SELECT * FROM pairs WHERE {wanted['x']}", exactly=1)
        left = {row["column"]: row["action"] for row in advice(lab, "ON pairs")}
        assert left == dict.fromkeys(wanted, "keep"), "indexes that would serve older scans"
    lab.sql("DROP TABLE pairs")


@pytest.mark.usefixtures("tables")
def test_each_suggestion_is_accepted_and_not_repeated(lab: Lab) -> None:
    """CREATE accepts suggestions with odd names or equal default names, and ADVISE keeps them."""
    lab.sql(
        "CREATE TABLE odd USING parquet AS SELECT named_struct('f', concat('Us', id), 'on', md5("
        "string(id))) AS s, array(concat('t', id)) AS `on`, id AS a, 3 * id AS b FROM "
        "range(0, 1000, 1, 10)"
    )
    wanted = {
        "lower(s.f)": "lower(s.f) = 'us717'",
        "on": "array_contains(`on`, 't717')",
        "(a + b)": "a + b = 2868",
        "(a * b)": "a * b = 1542267",
    }
    for predicate in wanted.values():
        lab.sql(f"SELECT * FROM odd WHERE {predicate}")
    rows = {row["column"]: row for row in advice(lab, "ON odd")}
    assert set(rows) == set(wanted)
    for row in rows.values():
        assert lab.sql(row["estimate"])
        create_without_advice(lab, row)
    for predicate in wanted.values():
        lab.check(f"SELECT * FROM odd WHERE {predicate}", exactly=1)
    left = sorted((row["column"], row["action"]) for row in advice(lab, "ON odd"))
    assert left == sorted((column, "keep") for column in wanted)
    lab.sql("DROP TABLE odd")


@pytest.mark.usefixtures("tables")
@pytest.mark.skipif("__import__('pyspark').__version__ < '4'", reason="VARIANT came with Spark 4")
@pytest.mark.parametrize(
    ("pushed", "create"),
    [
        ("true", False),
        pytest.param("true", True, marks=pytest.mark.long),
        pytest.param("false", True, marks=pytest.mark.long),
    ],
)
def test_advice_names_paths_in_a_variant(lab: Lab, pushed: str, *, create: bool) -> None:
    """ADVISE proposes an index on a path in a VARIANT. The index includes the path's type.

    Spark's setting that pushes paths into the scan makes no difference. CREATE accepts the
    proposal.
    """
    lab.sql(
        "CREATE TABLE logs USING parquet AS SELECT "
        """parse_json(concat('{"n":', id, ',"user":{"name":"u', id, '"}}')) AS v """
        "FROM range(0, 1000, 1, 10)"
    )
    wanted = {
        "variant_get(v, '$.n', 'BIGINT')": "variant_get(v, '$.n', 'bigint') = 717",
        "try_variant_get(v, '$.user.name', 'STRING')": (
            "try_variant_get(v, '$.user.name', 'string') = 'u717'"
        ),
    }
    # Spark reads single parts of a VARIANT only in compiled queries.
    with lab.settings(COMPILED | {"spark.sql.variant.pushVariantIntoScan": pushed}):
        for predicate in wanted.values():
            lab.sql(f"SELECT count(*) FROM logs WHERE {predicate}")
        rows = {row["column"]: row for row in advice(lab, "ON logs")}
        assert set(rows) == set(wanted)
        if create:
            for row in rows.values():
                create_without_advice(lab, row)
            for predicate in wanted.values():
                lab.check(f"SELECT count(*) FROM logs WHERE {predicate}", exactly=1)
            left = {row["column"]: row["action"] for row in advice(lab, "ON logs")}
            assert left == dict.fromkeys(wanted, "keep")
    lab.sql("DROP TABLE logs")


@pytest.mark.long
def test_advice_names_elements_of_arrays(lab: Lab) -> None:
    """ADVISE proposes indexes on elements of arrays, fields of structs in arrays, and map keys."""
    lab.sql(
        "CREATE TABLE posts USING parquet AS SELECT id, "
        "array(concat('t', id), if(id % 4 = 0, 'all', NULL)) AS tags, "
        "array(named_struct('price', id)) AS items, map(concat('k', id), 1) AS attrs, "
        "array(id % 2) AS everywhere FROM range(0, 1000, 1, 10)"
    )
    wanted = {
        "tags": "array_contains(tags, 't717')",
        "items.price": "exists(items, item -> item.price = 717)",
        "map_keys(attrs)": "map_contains_key(attrs, 'k717')",
    }
    for predicate in (*wanted.values(), "array_contains(everywhere, 1)", "exists(tags, t -> NULL)"):
        lab.sql(f"SELECT * FROM posts WHERE {predicate}")
    assert "t717" not in json.dumps(recorded(lab))
    rows = {row["column"]: row for row in advice(lab, "ON posts")}
    assert set(rows) == set(wanted)
    for sql, predicate in wanted.items():
        create_without_advice(lab, rows[sql])
        lab.check(f"SELECT * FROM posts WHERE {predicate}", exactly=1)
    left = {row["column"]: row["action"] for row in advice(lab, "ON posts")}
    assert {left[sql] for sql in wanted} == {"keep"}
    lab.sql("DROP TABLE posts")


@pytest.mark.long
def test_advice_names_substrings(lab: Lab) -> None:
    """ADVISE proposes indexes on substrings for long patterns, and no constant is recorded."""
    lab.sql(
        "CREATE TABLE lines USING parquet AS SELECT id, concat('line ', md5(string(id))) AS line, "
        "concat('Code ', md5(string(-id))) AS code FROM range(0, 1000, 1, 10)"
    )
    found = {
        of: lab.spark.sql(f"SELECT md5(string({of}717)) k").first().k[7:19] for of in ("", "-")
    }
    wanted = {
        "line": f"line LIKE '%{found['']}%'",
        "lower(code)": f"code ILIKE '%{found['-']}_%'",
    }
    for predicate in (*wanted.values(), "line LIKE '%abc%'", "id > 0 OR line LIKE '%abcd%'"):
        lab.sql(f"SELECT * FROM lines WHERE {predicate}")
    assert not any(part in json.dumps(recorded(lab)) for part in found.values())
    rows = {row["column"]: row for row in advice(lab, "ON lines")}
    assert {column for column in rows if column != "id"} == set(wanted)
    for sql, predicate in wanted.items():
        assert rows[sql]["statement"].endswith(f"({sql}) OPTIONS (kind = 'substring')")
        assert "contains " in rows[sql]["asked"]
        assert lab.sql(rows[sql]["estimate"])
        assert rows[sql]["files_after"] < rows[sql]["files_before"]
        create_without_advice(lab, rows[sql])
        lab.check(f"SELECT * FROM lines WHERE {predicate}", exactly=1)
    left = {row["column"]: row["action"] for row in advice(lab, "ON lines")}
    assert {left[sql] for sql in wanted} == {"keep"}
    lab.sql("DROP TABLE lines")


@pytest.mark.long
@pytest.mark.usefixtures("tables")
def test_advice_ranks_columns_by_saved_bytes(lab: Lab) -> None:
    """ADVISE lists the best index first, with counts of scans and a CREATE that can be run."""
    for query in QUERIES:
        lab.sql(query)
    rows = advice(lab)
    orders = {row["column"]: row for row in rows if row["table"] == "orders"}
    assert {row["action"] for row in rows} == {"create"}
    assert next(iter(orders)) == "id"
    # Each file contains every customer, so ADVISE proposes no index on the column `customer`.
    assert {"id", "note", "upper(note)", "ordered", "s.b b"} == set(orders)
    assert re.search(r"= \d", orders["id"]["asked"])
    for word in ("= ", "other ", "order by limit ", "or "):
        assert word in orders["note"]["asked"]
    assert "between " in orders["ordered"]["asked"]
    assert "between " in orders["s.b b"]["asked"]
    for row in orders.values():
        assert row["files_after"] < row["files_before"] == 10.0
    assert orders["id"]["files_after"] < 6.0
    saved = [row["bytes_saved"] for row in rows]
    assert saved == sorted(saved, reverse=True)
    assert orders["s.b b"]["statement"] == "CREATE SIEVE INDEX ON advised.orders (s.`b b`)"
    assert orders["id"]["estimate"] == "ESTIMATE SIEVE INDEX ON advised.orders (id)"
    assert SECRET not in json.dumps(rows)
    assert lab.sql("SELECT * FROM sieve_advice('advised')") == [tuple(row.values()) for row in rows]
    assert advice(lab, "ON orders") == [row for row in rows if row["table"] == "orders"]
    assert advice(lab, "IN default") == []
    assert lab.sql("CALL sieve.advise(table => 'customers')") == [
        tuple(row.values()) for row in rows if row["table"] == "customers"
    ]


@pytest.mark.usefixtures("tables")
def test_each_scan_is_recorded_once(lab: Lab) -> None:
    """The record counts each scan once, even in nested executions, unions and subqueries."""

    def scans() -> int:
        rows = recorded(lab)["scans"]
        return sum(
            row["scans"]
            for row in rows
            if json.loads(row["asked"])["table"] == ["advised", "orders"]
        )

    for statement, expected in [
        ("CREATE TABLE made USING parquet AS SELECT id FROM orders WHERE id = 5", 1),
        ("INSERT INTO made SELECT id FROM orders WHERE id = 5", 1),
        ("SELECT id FROM orders WHERE id = 5 UNION ALL SELECT id FROM orders WHERE id = 6", 2),
        ("SELECT * FROM made WHERE id = (SELECT max(id) FROM orders WHERE note = 'x')", 1),
        ("EXPLAIN SELECT * FROM orders WHERE id = 5", 0),
        ("EXPLAIN SIEVE SELECT * FROM orders WHERE id = 5", 0),
    ]:
        before = scans()
        lab.sql(statement)
        assert scans() - before == expected, statement


@pytest.mark.long
@pytest.mark.usefixtures("tables")
def test_index_that_saves_bytes_is_not_proposed_again(lab: Lab) -> None:
    """For an existing index, ADVISE shows the bytes that the index saves, and proposes no CREATE.

    The function for advice and the ADVISE statement return the same rows.
    """
    for query in QUERIES:
        lab.sql(query)
    lab.sql(advice(lab, "ON orders")[0]["statement"])
    lab.check("SELECT * FROM orders WHERE id = 7", exactly=1)
    rows = advice(lab, "ON orders")
    assert "id" not in {row["column"] for row in rows if row["action"] == "create"}
    (kept,) = [row for row in rows if row["action"] != "create"]
    assert (kept["action"], kept["index"], kept["column"]) == ("keep", "id_sieve", "id")
    assert kept["bytes_saved"] > 0
    assert kept["statement"] is None
    lab.sql("DROP SIEVE INDEX ON orders (id)")


@pytest.mark.usefixtures("tables")
def test_advice_tests_is_null(lab: Lab) -> None:
    """ADVISE proposes an index for IS NULL if few files contain NULL.

    For IS NULL on an array, ADVISE proposes no index on the elements, because an index on elements
    cannot serve IS NULL.
    """
    lab.sql(
        "CREATE TABLE holes USING parquet AS SELECT id, if(id % 3 = 0, NULL, id) AS often, "
        "if(id = 717, NULL, id) AS once, if(id = 717, NULL, array(id)) AS tags "
        "FROM range(0, 1000, 1, 10)"
    )
    for column in ("often", "once", "tags"):
        lab.sql(f"SELECT * FROM holes WHERE {column} IS NULL")
    lab.sql("SELECT * FROM holes ORDER BY tags LIMIT 3")
    (row,) = advice(lab, "ON holes")
    assert (row["column"], row["files_after"]) == ("once", 1.0)
    create_without_advice(lab, row)
    lab.check("SELECT * FROM holes WHERE once IS NULL", exactly=1)
    lab.sql("DROP TABLE holes")


@pytest.mark.long
@pytest.mark.usefixtures("tables")
def test_advice_drops_an_index_that_skips_nothing(lab: Lab) -> None:
    """If an index has skipped no file in twenty scans, ADVISE proposes a DROP that can be run."""
    lab.sql("CREATE SIEVE INDEX ON orders (customer)")
    lab.check("SELECT * FROM orders WHERE customer = 3", exactly=10)
    for key in range(19):
        lab.sql(f"SELECT count(*) FROM orders WHERE customer = {key % 10}")
    (row,) = [row for row in advice(lab, "ON orders") if row["action"] == "drop"]
    assert (row["index"], row["bytes_saved"]) == ("customer_sieve", 0)
    assert lab.sql(row["statement"]) == [("customer_sieve",)]


def test_a_dropped_table_is_not_named(lab: Lab) -> None:
    """After a table is dropped, the record keeps the scans, but ADVISE does not name the table."""
    with lab.database("advised_twice"):
        lab.sql("CREATE TABLE gone USING parquet AS SELECT id FROM range(10)")
        lab.sql("SELECT * FROM gone WHERE id = 3")
        lab.sql("DROP TABLE gone")
        assert advice(lab) == []
