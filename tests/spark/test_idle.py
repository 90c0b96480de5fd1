"""Scans use indexes that skip nothing less and less often, and return the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from spark_session import Lab

VAIN = "SELECT count(*) FROM t WHERE customer = {}"


@pytest.fixture
def table(lab: Lab) -> Iterator[None]:
    """Ten files in order of id, each with every customer but 10, and an index on each column."""
    with lab.database("idle"):
        lab.spark.range(0, 200, 1, 10).selectExpr(
            "id", "if(id = 7, 10, id % 10) AS customer", "id % 3 AS plain"
        ).write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (id, customer)")
        yield


def calls(lab: Lab, query: str, times: int) -> list[int]:
    """Which of several runs of a query, each with other constants, sent a prune request."""
    made = [asked(lab)]
    for n in range(times):
        answer = lab.run(query.format(n % 9 if "{}" in query else ""))
        assert sum(answer.rows.values()) == 1
        assert answer.files == 10
        made.append(asked(lab))
    return [n for n in range(times) if made[n + 1] > made[n]]


def asked(lab: Lab) -> int:
    """The number of prune requests so far."""
    return status(lab, "prune_calls")


def status(lab: Lab, counter: str, reason: str | None = None) -> int:
    """A counter of the driver, read without a query so that no scan runs in between."""
    counters = json.loads(lab.spark._jvm.org.apache.spark.sql.sieve.ask.Counters.json())
    (value,) = (value for *key, value in counters if key == [counter, reason])
    return int(value)


def states(lab: Lab) -> dict[str, str]:
    """The states of the indexes."""
    return dict(lab.sql("SELECT column, state FROM sieve_indexes()"))


@pytest.mark.usefixtures("table")
def test_scans_in_vain_rest(lab: Lab) -> None:
    """Useless scans send 8 requests, skip 2, send 1, skip 4, send 1, skip 8; useful forms go on."""
    before = status(lab, "index_not_used", "idle")
    assert calls(lab, VAIN, 26) == [*range(8), 10, 15, 24]
    assert status(lab, "index_not_used", "idle") - before == 26 - 11
    assert states(lab) == {"id": "ready", "customer": "idle"}
    for key in range(12):
        lab.check(f"SELECT * FROM t WHERE id = {key}", exactly=1)
        assert lab.run(f"SELECT * FROM t WHERE id = {key}").files == 1


@pytest.mark.usefixtures("table")
def test_a_value_that_skips_wakes_its_form(lab: Lab) -> None:
    """A form of filter resumes at its next request that skips a file.

    Until that request, scans read all files.
    """
    calls(lab, VAIN, 8)
    query = "SELECT count(*) FROM t WHERE customer = 10"
    assert [lab.run(query).files for _ in range(5)] == [10, 10, 1, 1, 1]
    assert states(lab)["customer"] == "ready"
    lab.check(query, exactly=1)
    assert calls(lab, VAIN, 9) == [*range(8)]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "statement",
    [
        "REFRESH SIEVE INDEX customer_sieve ON t FULL",
        "CREATE SIEVE INDEX other ON t (plain)",
        "ALTER SIEVE INDEX id_sieve ON t DISABLE",
    ],
)
def test_a_changed_index_wakes_all_scans(lab: Lab, statement: str) -> None:
    """The next scan after the change sends a request, and SHOW reports the index in use."""
    calls(lab, VAIN, 9)
    assert states(lab)["customer"] == "idle"
    lab.sql(statement)
    if "customer" in statement:
        assert states(lab)["customer"] == "ready"
    assert calls(lab, VAIN, 9) == [*range(8)]


@pytest.mark.usefixtures("table")
def test_who_asks_always(lab: Lab) -> None:
    """EXPLAIN, `sieve_files`, strict, require and audits send a request in any case."""
    calls(lab, VAIN, 12)
    for setting, value in [("strict", "true"), ("require", "true"), ("audit.sample", "0.001")]:
        with lab.setting(f"spark.sieve.{setting}", value):
            assert calls(lab, VAIN, 3) == [0, 1, 2]
    (scan,) = lab.explain(VAIN.format(3))
    assert (scan["reasons"], scan["indexes"]) == ("idle: 10", "customer_sieve@1")
    (scan,) = lab.explain("SELECT count(*) FROM t WHERE customer = 10")
    assert (scan["reasons"], scan["files_read"]) == ("idle: 10", 1)
    with lab.setting("spark.sieve.strict", "true"):
        (scan,) = lab.explain(VAIN.format(3))
        assert scan["reasons"] is None
    before = asked(lab)
    lab.explain(VAIN.format(3))
    files = lab.sql("SELECT kept FROM sieve_files('t', 'customer = 10')")
    assert sum(kept for (kept,) in files) == 1
    assert asked(lab) == before + 2


@pytest.mark.usefixtures("table")
def test_filters_on_other_columns_rest_too(lab: Lab) -> None:
    """A filter that no index can serve makes its requests useless, but makes no index idle."""
    assert calls(lab, "SELECT count(*) FROM t WHERE plain = {} OR plain < 5", 11) == [*range(8), 10]
    assert set(states(lab).values()) == {"ready"}


def test_forms_differ_by_field_and_empty_listings_do_not_count(lab: Lab) -> None:
    """Filters on two fields of a struct are two forms.

    A scan of an absent partition counts for no form.
    """
    with lab.database("idle_forms"):
        lab.spark.range(0, 200, 1, 10).selectExpr(
            "named_struct('a', id % 10, 'b', id) AS s", "id"
        ).write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (s.a, s.b)")
        for k in range(9):
            lab.run(f"SELECT * FROM t WHERE s.a = {k}")
        assert [lab.run(f"SELECT * FROM t WHERE s.b = {k}").files for k in range(3)] == [1, 1, 1]
        lab.spark.range(0, 200, 1, 10).selectExpr(
            "id", "if(id < 100, 'x', 'y') AS p"
        ).write.partitionBy("p").saveAsTable("u")
        lab.sql("CREATE SIEVE INDEX ON u (id)")
        for k in range(12):
            assert lab.run(f"SELECT * FROM u WHERE p = 'none' AND id = {k}").files == 0
        found = [lab.run(f"SELECT * FROM u WHERE p = 'x' AND id = {k}").files for k in range(3)]
        assert found == [1, 1, 1]


def test_an_index_that_lacks_files_does_not_rest(lab: Lab) -> None:
    """The index skips nothing because it needs a REFRESH; scans notice the REFRESH at once."""
    with lab.database("idle_stale"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 20, 1, 2)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("INSERT OVERWRITE t SELECT id FROM range(0, 200, 1, 10)")
        before = status(lab, "index_not_used", "idle")
        for k in range(12):
            assert lab.run(f"SELECT * FROM t WHERE id = {k}").files == 10
        assert status(lab, "index_not_used", "idle") == before
        assert lab.explain("SELECT * FROM t WHERE id = 3")[0]["reasons"] == "new-file: 10"
