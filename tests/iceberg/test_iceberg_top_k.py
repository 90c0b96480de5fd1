"""Top-k queries, MIN and MAX read only the files that can contain one of the result's rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from iceberg_tables import AUDITED, bytes_read, create, insert, namespace, sizes
from spark_session import Lab

pytestmark = pytest.mark.iceberg

FILES = 10


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks every skipped file."""
    with namespace(lab, "spark_catalog.top"), lab.settings(AUDITED):
        yield


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_first_rows_bound_a_scan(lab: Lab, adaptive: str) -> None:
    """MIN, MAX, and ORDER BY with LIMIT or OFFSET, in both directions, read few files and bytes."""
    create(lab, columns="id BIGINT, x DOUBLE, v STRING")
    insert(lab, "id, if(id = 55, NULL, (id * 37) % 100 + 0.5D) x, concat('v', id % 7) v")
    lab.sql("CREATE SIEVE INDEX ON t (id, x)")
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        lab.check("SELECT * FROM t ORDER BY id LIMIT 10", exactly=1)
        lab.check("SELECT * FROM t ORDER BY id DESC LIMIT 11", exactly=2)
        lab.check("SELECT id AS n FROM t ORDER BY n LIMIT 5 OFFSET 8", exactly=2)
        lab.check("SELECT min(id), max(ID) FROM t", exactly=2)
        lab.check("SELECT max(x) FROM t", exactly=1)
        lab.check("SELECT x, id FROM t ORDER BY x NULLS LAST, id LIMIT 2", exactly=2)
        lab.check("SELECT x, id FROM t ORDER BY x, id LIMIT 1", exactly=1)
        lab.check("SELECT id FROM t WHERE id > 33 ORDER BY id LIMIT 2", exactly=2)
        lab.check("SELECT id FROM t WHERE id > 33 AND v LIKE 'v%' ORDER BY id LIMIT 2", exactly=7)
        lab.check("SELECT id FROM t WHERE id + rand() >= 0 ORDER BY id LIMIT 2", exactly=FILES)
        lab.check("SELECT v, min(id) FROM t GROUP BY v", exactly=FILES)
        lab.check("SELECT id FROM t ORDER BY id LIMIT 101", exactly=FILES)
        lab.check("SELECT (SELECT max(id) FROM t) + 1", exactly=1)
        lab.check("(SELECT id FROM t ORDER BY id LIMIT 3) UNION ALL "
                  "(SELECT id FROM t ORDER BY id LIMIT 30)", exactly=4)  # fmt: skip
        # The scans of the two subqueries have different bounds, so Spark does not share an
        # exchange.
        lab.check("SELECT id FROM (SELECT id FROM t ORDER BY id LIMIT 3) a FULL JOIN "
                  "(SELECT id FROM t ORDER BY id LIMIT 15) b USING (id)", exactly=3)  # fmt: skip
        assert bytes_read(lab, "SELECT * FROM t ORDER BY id LIMIT 10") == sizes(lab, "id < 10")
        with lab.setting("spark.sieve.top.pruning", "off"):
            lab.check("SELECT * FROM t ORDER BY id LIMIT 10", exactly=FILES)
    (scan,) = lab.explain("SELECT * FROM t WHERE id >= 20 ORDER BY id LIMIT 3")
    assert (scan["indexes"], scan["files_read"]) == ("id_sieve@1", 1)
    assert scan["predicate"].endswith("ORDER BY id ASC NULLS FIRST LIMIT 3")


DELETED = [("id BETWEEN 0 AND 8", 2), ("id < 25", 4)]
"""For each predicate of deleted rows, how many files a query for the next three rows reads."""


@pytest.mark.parametrize(("version", "deleted"), [*product([2, 3], DELETED)])
def test_files_with_deleted_rows_count_no_rows(
    lab: Lab, version: int, deleted: tuple[str, int]
) -> None:
    """Files with deleted rows give no bound for top-k queries, MIN and MAX."""
    create(lab, format__version=version, write_delete_mode="merge-on-read")
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    predicate, files = deleted
    lab.sql(f"DELETE FROM t WHERE {predicate}")
    wanted = "SELECT * FROM t ORDER BY id LIMIT 3"
    assert lab.check(wanted, exactly=files).rows.total() == 3
    lab.check("SELECT min(id) FROM t", exactly=files)
    lab.check("SELECT * FROM t ORDER BY id DESC LIMIT 3", exactly=1)
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check(wanted, exactly=files)
    # After this DELETE, each file has deleted rows.
    lab.sql("DELETE FROM t WHERE id % 10 = 9")
    lab.check(wanted, exactly=FILES)
    lab.check("SELECT max(id) FROM t", exactly=FILES)


def test_first_rows_read_files_unknown_to_the_index(lab: Lab) -> None:
    """In selected partitions, top-k queries also read files that the index does not contain yet."""
    create(lab, more="PARTITIONED BY (truncate(1, v))", write_distribution__mode="none")
    insert(lab, "id, if(id < 50, 'a', 'b') v")
    ((first,),) = lab.sql("SELECT snapshot_id FROM spark_catalog.top.t.snapshots")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES (-5, 'a'), (NULL, 'a')")
    assert lab.check("SELECT min(id) FROM t", exactly=2).rows == {"(-5,)": 1}
    lab.check("SELECT id FROM t ORDER BY id LIMIT 2", exactly=2)
    lab.check("SELECT id FROM t WHERE v = 'b' ORDER BY id LIMIT 2", at_most=6)
    lab.check(f"SELECT min(id) FROM t VERSION AS OF {first}", exactly=1)
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT id FROM t ORDER BY id LIMIT 2", exactly=1)
    lab.check("SELECT min(id) FROM t", exactly=1)
    lab.sql("MERGE INTO t USING (SELECT 99L id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET id = 1000")  # fmt: skip
    lab.check("SELECT max(id) FROM t", at_most=2)


@pytest.mark.parametrize("version", [2, 3])
def test_first_rows_of_other_snapshots(lab: Lab, version: int) -> None:
    """A top-k query of a snapshot, branch or tag takes bounds only from that snapshot's files."""
    create(lab, format__version=version, write_delete_mode="merge-on-read")
    insert(lab)
    ((first,),) = lab.sql("SELECT snapshot_id FROM spark_catalog.top.t.snapshots")
    lab.sql("CREATE SIEVE INDEX ON t (id, v)")
    lab.sql("ALTER TABLE t CREATE TAG before")
    lab.sql("ALTER TABLE t CREATE BRANCH other")
    lab.sql("DELETE FROM t WHERE id < 19")
    lab.sql("INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES (-1, 'new'), (NULL, 'new')")
    lab.sql("DELETE FROM spark_catalog.top.t.branch_other WHERE id IN (0, 1, 99)")
    lab.sql("INSERT INTO spark_catalog.top.t.branch_other SELECT -7, 'branch'")

    def check(limit: int, now: int, other: int, tag: int) -> None:
        files = {
            "": now,
            ".branch_other": other,
            " VERSION AS OF 'other'": other,
            " VERSION AS OF 'before'": tag,
            f" VERSION AS OF {first}": tag,
        }
        for of, many in files.items():
            state = f"spark_catalog.top.t{of}"
            lab.check(f"SELECT * FROM {state} ORDER BY id NULLS LAST LIMIT {limit}", exactly=many)
            lab.check(f"SELECT min(id), max(id) FROM {state} WHERE v LIKE 'v%' OR v = 'new'")

    # Two files of the table and two files of the branch have deleted rows.
    check(limit=2, now=4, other=3, tag=1)
    lab.sql("REFRESH SIEVE INDEX ON t")
    # Queries of the branch use an index version from the time of the branch's snapshot. This index
    # version contains none of the new files.
    check(limit=1, now=1, other=3, tag=1)
    lab.check(f"SELECT max(id) FROM t VERSION AS OF {first}", exactly=1)
    lab.check("SELECT max(id) FROM t VERSION AS OF 'other'", exactly=3)
    lab.check(
        f"SELECT id FROM t VERSION AS OF {first} WHERE id > 42 ORDER BY id LIMIT 2", exactly=2
    )
    (scan,) = lab.explain(f"SELECT id FROM t VERSION AS OF {first} ORDER BY id LIMIT 3")
    assert (scan["files_total"], scan["files_read"], scan["reasons"]) == (10, 1, None)
