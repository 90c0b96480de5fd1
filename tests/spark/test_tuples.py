"""Indexes on several columns: queries for rare combinations of frequent values read few files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab

FILES = 8


@pytest.fixture(scope="module")
def orders(lab: Lab) -> Iterator[Lab]:
    """Each tenant and each id is in all files; each pair of a tenant and an id is in one file."""
    with lab.database("tuples"):
        columns = (
            "IF(n = 7, NULL, concat('t', n % 10)) AS tenant, int(n % 5) AS five, n < 1500 AS even, "
            "IF(n = 15, NULL, n DIV 10 % 100) AS id, n DIV 1000 AS file, double(n % 3) AS x, "
            "date_add(date'2026-01-01', int(n % 10)) AS day, struct(n % 10 AS v) AS s, "
            "smallint(n DIV 10 % 100) AS small"
        )
        numbers = (
            f"SELECT (id % 1000 * 8 + id DIV 1000) % 8000 AS n FROM range(0, 8000, 1, {FILES})"
        )
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT {columns} FROM ({numbers})")
        lab.sql("CREATE SIEVE INDEX pair ON t ((Tenant, ID))")
        lab.sql("CREATE SIEVE INDEX flags ON t ((even, file))")
        lab.sql("CREATE SIEVE INDEX short ON t ((five, small))")
        lab.sql("CREATE SIEVE INDEX three ON t ((s.v, five, day))")
        with lab.setting("spark.sieve.audit.sample", "1"):
            yield lab


def least(lab: Lab, predicate: str) -> int:
    """The number of files that contain a row that matches the predicate."""
    with lab.setting("spark.sieve.enabled", "false"):
        return len(set(lab.sql(f"SELECT input_file_name() FROM t WHERE {predicate}")))


QUERIES = {
    "a pair": "tenant = 't3' AND id = 42",
    "turned around": "42 = id AND 't3' = tenant",
    "beside other filters": "tenant = 't3' AND id = 42 AND x > 0",
    "equal or both NULL": "tenant <=> 't3' AND 42 <=> id",
    "absent": "tenant = 't3' AND id = 4200",
    "one of several": "tenant = 't3' AND id IN (42, 55)",
    "several of each": "tenant IN ('t3', 't4') AND id IN (42, 55)",
    "OR": "(tenant = 't3' AND id = 42) OR (tenant = 't4' AND id = 77)",
    "a list": "(tenant, id) IN (('t3', 42L), ('t4', 77L))",
    "a list in another order": "(id, tenant) IN ((42L, 't3'), (77L, 't4'))",
    "a tuple": "(tenant, id) = named_struct('tenant', 't3', 'id', 42L)",
    "a truth value": "even AND file = 0",
    "a truth value, absent": "NOT even AND file = 0",
    "three columns": "s.v = 3 AND five = 3 AND day = '2026-01-04'",
    "three columns, absent": "s.v = 3 AND five = 1 AND day = '2026-01-04'",
}


LONG = {
    "turned around", "absent", "one of several", "a list", "a truth value, absent",
    "three columns, absent", "IN", "EXISTS", "one column of two", "no pair",
}  # fmt: skip
"""The filters and joins that only `make test-long` runs. They differ from another one in a word."""


def _names(queries: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in queries]


@pytest.mark.parametrize("name", _names(QUERIES))
def test_values_of_all_columns_read_the_files_that_match(orders: Lab, name: str) -> None:
    """A filter on all columns of the index reads only files with the combinations in the filter."""
    predicate = QUERIES[name]
    orders.check(f"SELECT * FROM t WHERE {predicate}", at_most=least(orders, predicate))


@pytest.mark.parametrize(
    "predicate",
    [
        "tenant = 't3'",
        "tenant = 't3' AND id > 42",
        "NOT (tenant = 't3' AND id = 42)",
        "tenant = 't3' OR id = 42",
        "tenant <=> NULL AND id <=> 0",
        "tenant IS NULL AND id = 0",
        "(tenant, id) IN ((CAST(NULL AS STRING), 0L), ('t3', 42L))",
        "(tenant, id) IN (('t5', CAST(NULL AS BIGINT)))",
        "(tenant, id) NOT IN (('t3', 42L))",
    ],
)
def test_other_filters_lose_nothing(orders: Lab, predicate: str) -> None:
    """Queries lose no row by a filter that the index cannot use, such as NULLs in a struct."""
    assert (
        orders.check(f"SELECT * FROM t WHERE {predicate}").rows.total() > 0 or "NULL" in predicate
    )


KEYS = (
    "SELECT * FROM VALUES ('t3', 42L), ('t4', 77L), (NULL, 0L), ('t9', NULL), ('t1', -1L) "
    "AS k (a, b)"
)
JOINS = {
    "IN": ("(tenant, id) IN (SELECT a, b FROM wanted)", 2),
    "IN in another order": ("(id, tenant) IN (SELECT b, a FROM wanted)", 2),
    "EXISTS": ("EXISTS (SELECT 1 FROM wanted WHERE a = tenant AND b = id)", 2),
    "further conditions": (
        "EXISTS (SELECT 1 FROM wanted WHERE a = tenant AND b = id AND b = five * 21)",
        2,
    ),
    "a column without an index first": (
        "EXISTS (SELECT 1 FROM wanted WHERE b % 3 = x AND a = tenant AND b = id)",
        2,
    ),
    "one column of two": ("tenant IN (SELECT a FROM wanted)", FILES),
    "equal or both NULL": ("EXISTS (SELECT 1 FROM wanted WHERE a <=> tenant AND b <=> id)", FILES),
    "no pair": ("(tenant, id) IN (SELECT a, b + 1000 FROM wanted)", 0),
    "NOT IN": ("NOT EXISTS (SELECT 1 FROM wanted WHERE a = tenant AND b = id)", FILES),
}


@pytest.fixture(params=["broadcast", "fetched"])
def keys_of(request: pytest.FixtureRequest, orders: Lab) -> Iterator[Lab]:
    """A table of join-key pairs. A broadcast or a separate job supplies the keys to a scan."""
    orders.sql(f"CREATE OR REPLACE TEMPORARY VIEW wanted AS {KEYS}")
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sieve.join.pruning": "always"}
    with orders.settings(settings if request.param == "fetched" else {}):
        yield orders


@pytest.mark.parametrize("name", _names(JOINS))
def test_pairs_of_a_join_read_the_files_that_match(keys_of: Lab, name: str) -> None:
    """A join reads only files that contain both values of a row of the other side."""
    predicate, files = JOINS[name]
    assert keys_of.check(f"SELECT * FROM t WHERE {predicate}").files == files


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM t JOIN wanted ON a = tenant AND b = id", 2),
        pytest.param(
            "SELECT * FROM t LEFT JOIN wanted ON b = id AND a = tenant", FILES,
            marks=pytest.mark.long,
        ),
        ("SELECT * FROM t FULL JOIN wanted ON b = id AND a = tenant", FILES),
        ("SELECT * FROM both JOIN wanted ON a = t AND b = i", 2 + FILES),
        ("SELECT id FROM pairs WHERE (tenant, id) IN (SELECT a, b FROM wanted)", 2),
        pytest.param(
            "SELECT * FROM t JOIN wanted ON a = lower(tenant) AND b = id", FILES,
            marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_joins_by_a_pair(keys_of: Lab, query: str, files: int) -> None:
    """A join reads all files if it keeps all rows of `t`, or if it compares function results."""
    views = {
        "both": "SELECT id AS i, tenant AS t FROM t UNION ALL SELECT -id, tenant FROM t",
        "pairs": "SELECT tenant, id, count(*) FROM t GROUP BY tenant, id",
    }
    for name, query_of_view in views.items():
        keys_of.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query_of_view}")
    assert keys_of.check(query).files == files


STRUCTS = (
    "struct(t.tenant, t.id) = struct(d.tenant, d.id)",
    "named_struct('a', t.tenant, 'b', t.id) = named_struct('a', d.tenant, 'b', d.id)",
    "struct(t.tenant, t.id) <=> struct(d.tenant, d.id)",
    "struct(struct(t.tenant, t.id)) = struct(struct(d.tenant, d.id))",
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("on", STRUCTS)
def test_structs_with_null_in_a_field_can_be_equal(keys_of: Lab, on: str) -> None:
    """A join on structs finds rows with NULL in a field, so the index on the tuple is not used."""
    keys = "(SELECT DISTINCT tenant, id FROM t WHERE tenant IS NULL OR id IS NULL OR id = 42)"
    found = keys_of.check(f"SELECT t.*, d.id AS other FROM t JOIN {keys} d ON {on}")
    assert any("None" in row for row in found.rows)
    keys_of.check(f"SELECT * FROM t WHERE EXISTS (SELECT 1 FROM {keys} d WHERE {on})")


def test_side_filled_with_null_gets_keys_from_a_job(orders: Lab) -> None:
    """A separate job supplies keys for the side that an outer join fills with NULL."""
    orders.sql(f"CREATE OR REPLACE TEMPORARY VIEW wanted AS {KEYS}")
    with orders.setting("spark.sieve.join.pruning", "always"):
        query = "SELECT * FROM wanted LEFT JOIN t ON b = id AND a = tenant"
        assert orders.check(query).files == 2


def test_short_integers_of_a_broadcast(orders: Lab) -> None:
    """Short integer keys match, although a broadcast packs two short integers into one BIGINT."""
    pairs = "(SELECT * FROM VALUES (-1S, 3), (42S, 3), (42S, NULL) AS k (b, a))"
    query = f"SELECT * FROM t JOIN {pairs} ON small = b AND five = a"
    assert orders.check(query).files == 2


def test_explain_names_the_keys_of_a_join(keys_of: Lab) -> None:
    """EXPLAIN SIEVE shows that the index on two columns will get pairs of join keys."""
    query = "SELECT * FROM t WHERE (tenant, id) IN (SELECT a, b FROM wanted)"
    shown = [row.asDict() for row in keys_of.spark.sql(f"EXPLAIN SIEVE {query}").collect()]
    assert [row["indexes"] for row in shown] == ["pair@1"]
    assert "(tenant, id) IN (keys of" in shown[0]["predicate"]


def test_rows_with_null_are_found_by_lists(orders: Lab) -> None:
    """Lists with NULL find rows without a tenant or an id; such rows have no key in the index."""
    for row in ("(CAST(NULL AS STRING), 0L)", "('t5', CAST(NULL AS BIGINT))"):
        found = orders.check(f"SELECT * FROM t WHERE (tenant, id) IN ({row})")
        assert found.rows.total() == 1


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("named_struct('x', tenant, 'y', id)", "write the columns of a tuple as (a, b)"),
        ("(tenant, x)", "DOUBLE cannot be part of a tuple"),
        ("(tenant, lower(tenant))", "index the expression in it by itself"),
        ("(tenant, id, file, day, five)", "2 to 4 columns"),
        ("(tenant, nothing)", "no column nothing"),
    ],
)
def test_tuple_of_unsuitable_columns_is_refused(orders: Lab, typed: str, reason: str) -> None:
    """CREATE refuses a tuple that has an unsuitable column, and the error says why."""
    with pytest.raises(PySparkException) as error:
        orders.sql(f"CREATE SIEVE INDEX wrong ON t ({typed})")
    assert reason in str(error.value)


def test_statements_on_a_tuple(orders: Lab) -> None:
    """For tuples, SHOW names the columns, CHECK finds every key, and REFRESH adds files."""
    shown = {row[2]: row[3] for row in orders.sql("SHOW SIEVE INDEXES ON t")}
    assert shown == {
        "pair": "(tenant, id)",
        "flags": "(even, file)",
        "short": "(five, small)",
        "three": "(s.v, five, day)",
    }
    assert {row[2] for row in orders.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
