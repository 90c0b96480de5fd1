"""Indexes on expressions, elements, tuples and substrings of Hudi tables follow writes."""

from __future__ import annotations

import pytest
from spark_session import Lab

pytestmark = pytest.mark.hudi

ROW = (
    "CAST({id} AS BIGINT) AS id, concat('User', {id}, '@Example.org') AS email, "
    "array(concat('t', {id}), 'all') AS tags, map('k', concat('v', {id})) AS attrs, "
    "concat('GET /item/', lpad({id}, 5, '0'), ' ok') AS line, CAST({ts} AS BIGINT) AS ts"
)
SORTED = {
    "hoodie.spark.sql.insert.into.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
}


def predicates(key: int) -> list[str]:
    """For each kind of index, a predicate that is true only for the row with the given key."""
    return [
        f"lower(email) = 'user{key}@example.org'",
        f"array_contains(tags, 't{key}')",
        f"exists(tags, t -> t = 't{key}')",
        f"attrs['k'] = 'v{key}'",
        f"id = {key} AND line = 'GET /item/{key:05} ok'",
        f"line LIKE '%item/{key:05}%'",
    ]


def find(lab: Lab, key: int, at_most: int, rows: int = 1) -> None:
    """With the index, each predicate finds the same rows and reads few slices."""
    for predicate in predicates(key):
        found = lab.check(f"SELECT id, ts FROM t WHERE {predicate}", at_most=at_most)
        assert found.rows.total() == rows, predicate


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_each_kind_of_index_follows_writes(lab: Lab, kind: str) -> None:
    """Queries find updated, inserted and deleted rows at once, and skip slices after REFRESH."""
    with lab.database("hudi_kinds"):
        lab.sql(
            "CREATE TABLE t (id BIGINT, email STRING, tags ARRAY<STRING>, attrs MAP<STRING, "
            f"STRING>, line STRING, ts BIGINT) USING hudi TBLPROPERTIES ('type' = '{kind}', "
            "'primaryKey' = 'id', 'preCombineField' = 'ts', 'hoodie.metadata.enable' = 'false', "
            "'hoodie.compact.inline' = 'false')"
        )
        with lab.settings(SORTED):
            row = ROW.format(id="id", ts="1")
            lab.sql(
                f"INSERT INTO t SELECT /*+ REPARTITION_BY_RANGE(8, id) */ {row} FROM range(800)"
            )
        lab.sql("CREATE SIEVE INDEX ON t (lower(email), tags, (attrs['k']), (id, line))")
        lab.sql("CREATE SIEVE INDEX ON t (line) OPTIONS (kind = 'substring')")
        ((instant,),) = lab.sql("SELECT max(_hoodie_commit_time) FROM t")
        for key in (5, 345, 799):
            find(lab, key, 1)
        find(lab, 900, 0, rows=0)
        lab.check("SELECT * FROM t WHERE NOT array_contains(tags, 't345')", exactly=8)
        source = f"SELECT {ROW.format(id=900, ts=2)}"
        lab.sql(f"MERGE INTO t USING ({source}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
        lab.sql(
            "UPDATE t SET email = 'Other@x', tags = array('t345', 'new'), ts = 3 WHERE id = 345"
        )
        lab.sql("DELETE FROM t WHERE id = 5")
        for _ in range(2):
            find(lab, 900, 4)
            find(lab, 5, 4, rows=0)
            for predicate in ("lower(email) = 'other@x'", "array_contains(tags, 'new')"):
                found = lab.check(f"SELECT id FROM t WHERE {predicate}", at_most=4)
                assert list(found.rows) == ["(345,)"]
            find(lab, 120, 4)
            lab.sql("REFRESH SIEVE INDEX ON t")
        find(lab, 120, 1)
        find(lab, 900, 1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
        past = lab.check(
            f"SELECT id FROM t TIMESTAMP AS OF '{instant}' WHERE lower(email) = "
            "'user345@example.org'"
        )
        assert past.rows.total() == 1
