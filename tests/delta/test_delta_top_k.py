"""Top-k queries, MIN and MAX read few files of Delta tables that cannot have deletion vectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from delta_tables import MAPPED, VECTORS, create, insert
from spark_session import Lab

pytestmark = pytest.mark.delta

SCATTERED = "id * 37 % 100 AS id, concat('v', id % 7) v"
FIRST, LAST = "SELECT id FROM t ORDER BY id LIMIT 3", "SELECT id FROM t ORDER BY id DESC LIMIT 1"


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a database for each test; an audit checks every skipped file."""
    with lab.database("firsts"), lab.setting("spark.sieve.audit.sample", "1.0"):
        yield


@pytest.mark.parametrize("shape", ["auto", "map"])
def test_first_rows_read_few_files(lab: Lab, shape: str) -> None:
    """ORDER BY with LIMIT reads few files, and until REFRESH, also new files.

    MIN of a past table version also returns the right value.
    """
    create(lab, more="", properties=MAPPED)
    insert(lab, SCATTERED)
    lab.sql(f"CREATE SIEVE INDEX ON t (id) OPTIONS (shape = '{shape}')")
    lab.check(FIRST, at_most=3)
    lab.check(LAST, exactly=1)
    lab.check("SELECT v, id FROM t WHERE id > 50 ORDER BY id LIMIT 1", at_most=10)
    lab.sql("INSERT INTO t VALUES (-1, 'new')")
    lab.check(FIRST, at_most=4)
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT min(id) FROM t VERSION AS OF 1")
    lab.check(LAST, exactly=1)


def test_table_with_deletion_vectors_has_no_bound(lab: Lab) -> None:
    """If a table can have deletion vectors, top-k queries, MIN and MAX read all of its files.

    With deletion vectors, Delta adds a filter to each scan, so no key of the index is a bound.
    """
    create(lab, properties=VECTORS)
    insert(lab, SCATTERED)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check(LAST, exactly=10)
    lab.sql("DELETE FROM t WHERE id IN (0, 1, 2, 99)")
    lab.check(FIRST, exactly=10)
    lab.check(LAST, exactly=10)
    lab.check("SELECT min(id) FROM t", exactly=10)
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check(FIRST, exactly=10)
    lab.check("SELECT max(id) FROM t WHERE id < 60", at_most=10)


def test_query_reads_a_file_rewritten_by_delete(lab: Lab) -> None:
    """Without deletion vectors, DELETE rewrites a file, and queries then read the new file."""
    create(lab)
    insert(lab, SCATTERED)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("DELETE FROM t WHERE id IN (0, 99)")
    lab.check(FIRST, at_most=5)
    lab.check(LAST, at_most=3)


def test_bound_of_a_partition_group_counts_only_its_rows(lab: Lab) -> None:
    """MIN and MAX with GROUP BY on a partition column read few files of each partition."""
    create(lab, columns="id BIGINT, p INT", more="PARTITIONED BY (p)")
    lab.sql(
        "INSERT INTO t SELECT /*+ REPARTITION(4, p, q) */ id, p FROM "
        "(SELECT id, CAST(id % 3 AS INT) AS p, id DIV 50 AS q FROM range(200))"
    )
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT p, min(id), max(id) FROM t GROUP BY p", at_most=6)
