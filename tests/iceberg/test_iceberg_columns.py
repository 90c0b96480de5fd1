"""An index identifies its column by field id, even if the column's name and position change."""

from __future__ import annotations

from collections.abc import Iterator

import iceberg_jars
import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from spark_session import Lab

pytestmark = pytest.mark.iceberg


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks every skipped file."""
    with namespace(lab, "spark_catalog.columns"), lab.settings(AUDITED):
        create(lab, columns="id BIGINT, v STRING, s STRUCT<a: INT, b: INT>")
        insert(lab, "id, 'x' v, named_struct('a', cast(id AS INT), 'b', cast(100 - id AS INT)) s")
        yield


def test_a_rename_keeps_the_index(lab: Lab) -> None:
    """Renamed columns, moved columns, and renamed fields of a struct keep their indexes."""
    lab.sql("CREATE SIEVE INDEX ON t (id, s.a)")
    lab.sql("ALTER TABLE t RENAME COLUMN id TO number")
    lab.sql("ALTER TABLE t RENAME COLUMN s.a TO first")
    lab.sql("ALTER TABLE t ALTER COLUMN v FIRST")
    lab.check("SELECT * FROM t WHERE number = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE s.first = 42", exactly=1)
    lab.check("SELECT v FROM t WHERE s.first = 42 AND s.b = 58", exactly=1)
    shown = {row[2]: (row[3], row[6]) for row in lab.sql("SHOW SIEVE INDEXES ON t")}
    assert shown == {"id_sieve": ("number", "ready"), "s_a_sieve": ("s.first", "ready")}
    lab.sql("INSERT INTO t VALUES ('x', 42, NULL)")
    (row, _) = lab.sql("REFRESH SIEVE INDEX ON t")
    assert row[:3] == ("id_sieve", 2, 11)
    lab.check("SELECT * FROM t WHERE number = 42", exactly=2)
    assert lab.sql("DROP SIEVE INDEX IF EXISTS ON t (id)") == []
    assert lab.sql("DROP SIEVE INDEX ON t (number)") == [("id_sieve",)]
    assert lab.sql("DROP SIEVE INDEX IF EXISTS ON t (s.first)") == [("s_a_sieve",)]
    assert lab.sql("SHOW SIEVE INDEXES ON t") == []


def test_a_new_column_of_the_old_name_is_another_column(lab: Lab) -> None:
    """If two columns swap names, each column keeps its own index. A new column has no index."""
    lab.sql("CREATE SIEVE INDEX ON t (s.a)")
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        lab.sql(f"ALTER TABLE t RENAME COLUMN s.{old} TO {new}")
    lab.check("SELECT * FROM t WHERE s.b = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE s.a = 42", exactly=10)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("ALTER TABLE t DROP COLUMN id")
    lab.sql("ALTER TABLE t ADD COLUMN id BIGINT")
    lab.sql("INSERT INTO t VALUES ('x', NULL, 42)")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=11).rows.total() == 1
    assert lab.check("SELECT * FROM t WHERE id IS NULL", exactly=11).rows.total() == 100
    states = {row[2]: row[6] for row in lab.sql("SHOW SIEVE INDEXES ON t")}
    assert states["id_sieve"] == "column dropped"


def test_a_promoted_column_is_read_until_a_refresh(lab: Lab) -> None:
    """After an INT column becomes BIGINT, scans read all files until REFRESH rebuilds the index."""
    lab.sql("CREATE SIEVE INDEX ON t (s.a)")
    lab.sql("ALTER TABLE t ALTER COLUMN s.a TYPE BIGINT")
    lab.check("SELECT * FROM t WHERE s.a = 42", exactly=10)
    (scan,) = lab.explain("SELECT * FROM t WHERE s.a = 42")
    assert scan["reasons"] == "reader-changed: 10"
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE s.a = 42", exactly=1)
    lab.check(f"SELECT * FROM t WHERE s.a = {2**40}", exactly=0)


def test_an_earlier_schema(lab: Lab) -> None:
    """A query of an earlier snapshot uses the column names of this snapshot."""
    ((first,),) = lab.sql("SELECT max(snapshot_id) FROM spark_catalog.columns.t.snapshots")
    lab.sql("CREATE SIEVE INDEX ON t (id, s.a)")
    lab.sql("ALTER TABLE t RENAME COLUMN id TO number")
    # Iceberg 1.11 gives a condition on an earlier snapshot the type of the new column `id`.
    kind = "BIGINT" if iceberg_jars.FOLDER.name.startswith("1.11") else "STRING"
    lab.sql(f"ALTER TABLE t ADD COLUMN id {kind}")
    lab.sql("INSERT INTO t VALUES (200, 'x', NULL, '7')")
    lab.check(f"SELECT * FROM t VERSION AS OF {first} WHERE id = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE number = 42", exactly=2)


def test_partitions_change(lab: Lab) -> None:
    """With each partition spec, Iceberg first skips partitions, and the index then skips files."""
    create(lab, "p", "id BIGINT, d DATE, k INT", "PARTITIONED BY (months(d))")
    some = "id, date_add(date'2024-01-01', cast(id % 60 AS INT)) d, cast(id % 4 AS INT) k"
    insert(lab, some, "p", files=12)
    lab.sql("ALTER TABLE p ADD PARTITION FIELD bucket(2, k)")
    insert(lab, some, "p", files=4, start=200)
    lab.sql("CREATE SIEVE INDEX ON p (id)")
    month = "d >= date'2024-02-01' AND d < date'2024-03-01'"
    (scan,) = lab.explain(f"SELECT * FROM p WHERE id = 42 AND {month}")
    with lab.setting("spark.sieve.enabled", "false"):
        left = lab.run(f"SELECT * FROM p WHERE {month}").files
    assert (scan["files_total"], scan["files_read"]) == (left, 1)
    lab.check(f"SELECT * FROM p WHERE id = 42 AND {month}", exactly=1)
    lab.check("SELECT * FROM p WHERE id = 210", exactly=1)
    with lab.setting("spark.sql.sources.v2.bucketing.enabled", "true"):
        lab.check("SELECT a.id FROM p a JOIN p b ON a.k = b.k AND a.d = b.d AND a.id = b.id "
                  "WHERE a.id IN (42, 210)", at_most=10)  # fmt: skip


def test_statements_say_that_a_column_partitions_the_table(lab: Lab) -> None:
    """If a column becomes a partition column, statements say that no query uses its index."""
    create(lab, "p", "id BIGINT, k INT")
    insert(lab, "id, cast(id % 4 AS INT) k", "p")
    lab.sql("CREATE SIEVE INDEX ON p (id, k)")
    lab.check("SELECT * FROM p WHERE k = 9", exactly=0)
    lab.sql("ALTER TABLE p ADD PARTITION FIELD k")
    insert(lab, "id, cast(id % 4 AS INT) k", "p", start=100)
    lab.check("SELECT * FROM p WHERE k = 2")
    states = {row[2]: row[6].partition(":")[0] for row in lab.sql("SHOW SIEVE INDEXES ON p")}
    assert states == {"k_sieve": "column dropped", "id_sieve": "stale"}
    rows = {row[0]: row[6] for row in lab.sql("REFRESH SIEVE INDEX ON p")}
    assert "or now has it as a partition column" in rows["k_sieve"]
    assert dict(lab.sql("DESCRIBE SIEVE INDEX k_sieve ON p"))["problem"] == rows["k_sieve"]


SWAPPED = (
    "ALTER TABLE t RENAME COLUMN a TO z",
    "ALTER TABLE t RENAME COLUMN b TO a",
    "ALTER TABLE t RENAME COLUMN z TO b",
    "ALTER TABLE t ALTER COLUMN b AFTER a",
)
ADDED_AGAIN = ("ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN b STRING")


@pytest.mark.parametrize("predicate", ["id = 42 AND b = 'b42'", "a = 'a42'", "b = 'b42'"])
@pytest.mark.parametrize("changes", [SWAPPED, ADDED_AGAIN], ids=["swapped", "added again"])
@pytest.mark.parametrize("plan", ["optimizedPlan", "executedPlan"])
def test_columns_change_while_a_query_is_planned(
    lab: Lab, plan: str, changes: tuple[str, ...], predicate: str
) -> None:
    """A query reads the columns that the table had when Spark created the query's scan."""
    with (
        namespace(lab, "spark_catalog.planned"),
        lab.settings({"spark.sieve.strict": "false", "spark.sieve.audit.sample": "0"}),
    ):
        create(lab, columns="id BIGINT, a STRING, b STRING")
        insert(lab, "id, concat('a', id) a, concat('b', id) b")
        for column in ("id", "a", "b"):
            lab.sql(f"CREATE SIEVE INDEX ON t ({column})")
        queries = {}
        for enabled in ("false", "true"):
            with lab.setting("spark.sieve.enabled", enabled):
                queries[enabled] = lab.spark.sql(f"SELECT * FROM t WHERE {predicate}")
                getattr(queries[enabled]._jdf.queryExecution(), plan)()
        for change in changes:
            lab.sql(change)
        rows = []
        for enabled, query in queries.items():
            with lab.setting("spark.sieve.enabled", enabled):
                rows.append([tuple(row) for row in query.collect()])
        assert rows[0] == rows[1] == [(42, "a42", "b42")]
