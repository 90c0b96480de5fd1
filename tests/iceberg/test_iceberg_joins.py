"""Queries of Iceberg tables skip files by join keys and by the results of subqueries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from iceberg_tables import AUDITED, bytes_read, create, insert, namespace, sizes
from spark_session import Lab

pytestmark = pytest.mark.iceberg

JOIN = "SELECT /*+ BROADCAST(d) */ t.id, t.v FROM t JOIN d ON t.id = d.id WHERE d.k = 3"


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates the indexed table `t` of 24 files, and the small table `d` of one file."""
    with namespace(lab, "spark_catalog.joins"), lab.settings(AUDITED):
        create(lab, more="PARTITIONED BY (truncate(1, v))", write_distribution__mode="none")
        insert(lab, files=24)
        create(lab, "d", "id BIGINT, k INT")
        lab.sql("INSERT INTO d SELECT /*+ COALESCE(1) */ * FROM "
                "VALUES (42, 3), (43, 3), (77, 4), (NULL, 3), (1000, 3)")  # fmt: skip
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        yield


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_keys_of_a_broadcast_pick_files(lab: Lab, adaptive: str) -> None:
    """Inner and semi joins, even above a union, read only the files that contain join keys."""
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        lab.check(JOIN, exactly=2)
        lab.check("SELECT * FROM t WHERE id IN (SELECT id FROM d WHERE k = 4)", exactly=2)
        lab.check(f"{JOIN} AND t.v = 'v0'", exactly=2)
        lab.check("SELECT /*+ BROADCAST(d) */ u.id FROM (SELECT id FROM t UNION ALL "
                  "SELECT id + 0 FROM t WHERE id > 100) u JOIN d ON u.id = d.id WHERE d.k = 4",
                  at_most=26)  # fmt: skip
        # No row of `d` satisfies this condition, so the query reads no file of `t`.
        lab.check("SELECT /*+ BROADCAST(d) */ t.id FROM t JOIN d ON t.id = d.id WHERE d.k = 9",
                  at_most=1)  # fmt: skip
        lab.check("SELECT /*+ BROADCAST(d) */ count(*) FROM t LEFT JOIN d ON t.id = d.id",
                  exactly=25)  # fmt: skip


@pytest.mark.parametrize(("hint", "files"), [("BROADCAST", 4 + 1), ("MERGE", 4 + 2)])
def test_keys_of_a_tuple_pick_files(lab: Lab, hint: str, files: int) -> None:
    """A join on both columns of an indexed tuple reads only files with one of the pairs.

    The values of each single column are in all files. A job that fetches keys reads `d` a second
    time.
    """
    pair = "pmod(xxhash64(id), 40) AS a, pmod(xxhash64(id, 1), 40) AS b, id"
    for name, rows in (("pairs", "range(0, 2000, 1, 20)"), ("few", "range(0, 3, 1, 1)")):
        lab.sql(f"CREATE TABLE {name} USING iceberg AS SELECT {pair} FROM {rows}")
    lab.sql("CREATE SIEVE INDEX ON pairs ((a, b))")
    with lab.setting("spark.sieve.join.pruning", "always"):
        lab.check(
            f"SELECT /*+ {hint}(d) */ t.id FROM pairs t JOIN few d ON t.a = d.a AND t.b = d.b "
            "WHERE d.id < 2",
            exactly=files,
        )


KEYS = {
    "lower(t.v)": ("lower(v)", "STRING", "lower(concat('V', {}))"),
    "t.id * 2": ("id * 2", "BIGINT", "{} * 2"),
    "t.small": ("small", "BIGINT", "cast({} AS BIGINT)"),
    "cast(t.small AS DECIMAL(20, 0))": ("small", "DECIMAL(20, 0)", "cast({} AS DECIMAL(20, 0))"),
    "cast(t.at AS DATE)": ("at", "DATE", "cast(timestamp_seconds({} * 86400) AS DATE)"),
    "t.s.n": ("s.n", "INT", "cast({} AS INT)"),
    "t.at": ("at", "TIMESTAMP", "timestamp_seconds({} * 86400)"),
}
"""For each join: the key of the index, and the type and the SQL of the other side's key."""


@pytest.mark.parametrize("key", KEYS)
def test_keys_for_an_expression_pick_files(lab: Lab, key: str) -> None:
    """Broadcast keys also skip files if the join compares an expression or a cast."""
    indexed, kind, value = KEYS[key]
    columns = "id BIGINT, v STRING, small INT, at TIMESTAMP, s STRUCT<n: INT>"
    create(lab, "e", columns)
    insert(
        lab,
        "id, concat('V', id) v, cast(id AS INT) small, timestamp_seconds(id * 86400) at, "
        "named_struct('n', cast(id AS INT)) s",
        "e",
        files=24,
    )
    lab.sql(f"CREATE SIEVE INDEX ON e ({indexed})")
    create(lab, "keys", f"k {kind}, n INT")
    some = ", ".join(f"({value.format(n)}, {n})" for n in (42, 43, 1000))
    lab.sql(f"INSERT INTO keys SELECT /*+ COALESCE(1) */ * FROM VALUES {some}, (NULL, 5)")
    join = "SELECT t.id FROM e t {} keys d ON {} = d.k AND d.n > 9"
    for how in ("JOIN", "LEFT SEMI JOIN", "RIGHT JOIN"):
        least = 24 if how == "RIGHT JOIN" else 2
        found = lab.check(join.format(how, key), at_most=least + 1)
        assert found.rows.total() == (4 if how == "RIGHT JOIN" else 2)
    found = lab.check(
        f"SELECT id FROM e t WHERE {key} IN (SELECT k FROM keys WHERE n = 42)", exactly=2
    )
    assert found.rows.total() == 1


def test_explain_names_the_keys(lab: Lab) -> None:
    """EXPLAIN SIEVE names the index and the table that supplies keys; a counter counts the keys."""
    (scan,) = [row for row in lab.explain(JOIN) if row["table"].endswith(".t")]
    assert scan["indexes"] == "id_sieve@1"
    assert "IN (keys of spark_catalog.joins.d at run time)" in scan["predicate"]

    def received() -> int:
        return next(row[2] for row in lab.sql("SELECT * FROM sieve_status()")
                    if row[0] == "keys_received")  # fmt: skip

    before = received()
    lab.sql(JOIN)
    assert received() - before == 3
    with lab.setting("spark.sieve.join.pruning", "off"):
        lab.check(JOIN, exactly=25)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_values_of_a_subquery_pick_files(lab: Lab, adaptive: str) -> None:
    """A scalar subquery's result makes a query skip the same files as an equal constant."""
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        wanted = "(SELECT max(id) FROM d WHERE k = {})"
        lab.check(f"SELECT * FROM t WHERE id = {wanted.format(4)}", exactly=2)
        lab.check(f"SELECT * FROM t WHERE id >= {wanted.format(4)} - 1 AND id < 90", exactly=3)
        # The subquery returns NULL, which equals no row, so the query reads no file of `t`.
        lab.check(f"SELECT * FROM t WHERE id = {wanted.format(9)}", exactly=1)
        lab.check(f"SELECT * FROM t WHERE id = {wanted.format(9)} OR id = 42", exactly=2)
        lab.check("SELECT * FROM t WHERE v = (SELECT concat('v', max(k)) FROM d)", exactly=25)
        with lab.setting("spark.sieve.join.pruning", "off"):
            lab.check(f"SELECT * FROM t WHERE id = {wanted.format(4)}", exactly=25)
    (scan,) = [r for r in lab.explain(f"SELECT * FROM t WHERE id = {wanted.format(4)}")
               if r["table"].endswith(".t")]  # fmt: skip
    assert scan["predicate"].endswith("(id = (subquery at run time))")


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_job_reads_the_keys_of_a_shuffled_join(lab: Lab, adaptive: str) -> None:
    """If Spark broadcasts no side, a job fetches the join keys, if the job is cheap enough."""
    join = "SELECT /*+ MERGE(d) */ t.id, t.v FROM t {} JOIN d ON t.id = d.id AND d.k = {}"
    own = "spark.sql"
    shuffled = {f"{own}.autoBroadcastJoinThreshold": "-1", f"{own}.adaptive.enabled": adaptive}
    with lab.settings(shuffled):
        lab.check(join.format("", 3), exactly=25)
        (scan,) = [r for r in lab.explain(join.format("", 3)) if r["table"].endswith(".t")]
        assert "join-too-costly: 24" in scan["reasons"]
        with lab.setting("spark.sieve.join.pruning", "always"):
            # The job that fetches the keys reads the file of `d` a second time.
            lab.check(join.format("", 3), exactly=3)
            lab.check(join.format("RIGHT", 3))
            lab.check(join.format("LEFT", 3), exactly=25)
            lab.check("SELECT * FROM t WHERE id IN (SELECT id FROM d WHERE k = 4)")
            # This query needs only the rows of `t` that match a row of `d`.
            lab.check("SELECT * FROM d LEFT ANTI JOIN t ON t.id = d.id", exactly=4)
            lab.check("SELECT * FROM d WHERE id IN (SELECT id FROM t) OR k = 4", exactly=4)
            lab.check("SELECT * FROM t LEFT ANTI JOIN d ON t.id = d.id", exactly=25)
            lab.check("SELECT * FROM d WHERE id NOT IN (SELECT id FROM t)")


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_keys_of_several_columns_pick_files(lab: Lab, adaptive: str) -> None:
    """Queries use an index on two columns for constants, lists, and keys of a broadcast or job."""
    create(lab, "p", "a BIGINT, b INT, v STRING")
    insert(lab, "id % 10 a, cast(id DIV 10 AS INT) b, 'v' v", "p", files=24)
    create(lab, "e", "a BIGINT, b INT, k INT")
    lab.sql("INSERT INTO e SELECT /*+ COALESCE(1) */ * FROM "
            "VALUES (2L, 4, 3), (7L, 7, 3), (1L, 9, 4), (NULL, 5, 3), (5L, 99, 3)")  # fmt: skip
    lab.sql("CREATE SIEVE INDEX ON p ((a, b))")
    join = "SELECT /*+ {hint}(e) */ p.a, p.v FROM p JOIN e ON p.a = e.a AND p.b = e.b AND k = 3"
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        lab.check("SELECT * FROM p WHERE a = 2 AND b = 4", exactly=1)
        lab.check("SELECT * FROM p WHERE a = 2 AND b IN (4, 7)", exactly=2)
        lab.check("SELECT * FROM p WHERE (a, b) IN ((2L, 4), (7L, 7))", exactly=2)
        lab.check("SELECT * FROM p WHERE a = 2 AND b = 99", exactly=0)
        lab.check("SELECT * FROM p WHERE a = 2", exactly=24)
        lab.check(join.format(hint="BROADCAST"), exactly=3)
        lab.check("SELECT * FROM p WHERE (a, b) IN (SELECT a, b FROM e WHERE k = 4)", exactly=2)
        size = sizes(lab, "(a, b) IN ((2L, 4), (7L, 7))", "p")
        assert bytes_read(lab, join.format(hint="BROADCAST")) == size
        with lab.settings({"spark.sql.autoBroadcastJoinThreshold": "-1",
                           "spark.sieve.join.pruning": "always"}):  # fmt: skip
            lab.check(join.format(hint="MERGE"), exactly=4)
    (scan,) = [r for r in lab.explain(join.format(hint="BROADCAST")) if r["table"].endswith(".p")]
    assert "(a, b) IN (keys of spark_catalog.joins.e at run time)" in scan["predicate"]
