"""Queries read only the row groups of a data file that can contain a matching row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from iceberg_tables import AUDITED, SMALL_ROW_GROUPS, bytes_read, create, insert, namespace, sizes
from spark_session import RANGES, Lab

pytestmark = pytest.mark.iceberg


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks each skipped range; ranges are small."""
    with namespace(lab, "spark_catalog.ranges"), lab.settings(AUDITED | RANGES):
        yield


def create_with_row_groups(lab: Lab, **properties: str | int) -> None:
    """Creates a table of two files with 200 rows each, in row groups of 20 rows."""
    create(lab, **SMALL_ROW_GROUPS | properties)
    rows = "id, concat('v', id % 7) v"
    lab.sql(f"INSERT INTO t SELECT /*+ REPARTITION_BY_RANGE(2, id) */ {rows} FROM range(400)")


def ranges(lab: Lab, query: str) -> tuple[int, int]:
    """The number of ranges that a query reads, and of all ranges, according to EXPLAIN SIEVE."""
    (scan,) = lab.explain(query)
    return scan["ranges_read"], scan["ranges_total"]


def test_row_groups_are_skipped(lab: Lab) -> None:
    """Queries skip row groups by constants, by join keys, and by ORDER BY with LIMIT.

    `_pos` is still a row's position in its file, even in queries that skip row groups.
    """
    create_with_row_groups(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    for query in ("SELECT * FROM t WHERE id = 142", "SELECT * FROM t WHERE id IN (3, 399)",
                  "SELECT id, _pos FROM t WHERE id BETWEEN 115 AND 265",
                  "SELECT * FROM t ORDER BY id DESC LIMIT 3", "SELECT min(id) FROM t"):  # fmt: skip
        lab.check(query)
        read, total = ranges(lab, query)
        assert total > 8, query
        assert read <= (total // 2 if "BETWEEN" in query else 2), query
        assert bytes_read(lab, query) < sizes(lab, "true") * 0.75, query
    # A query of one range also reads the file's footer. The range and the footer are about half of
    # the file.
    point = bytes_read(lab, "SELECT * FROM t WHERE id = 142")
    assert point < sizes(lab, "id = 142") * 0.6
    lab.check("SELECT * FROM t WHERE id = 142", exactly=1)
    lab.check("SELECT /*+ BROADCAST(d) */ t.* FROM t JOIN VALUES (7L), (395L) AS d(id) "
              "ON t.id = d.id", exactly=2)  # fmt: skip
    size = bytes_read(lab, "SELECT /*+ BROADCAST(d) */ t.* FROM t JOIN VALUES (7L), (395L) "
                      "AS d(id) ON t.id = d.id")  # fmt: skip
    assert size < sizes(lab, "true") * 0.7
    # The rows of this query depend on how Spark splits the file.
    lab.check("SELECT id, input_file_block_start() >= 0 FROM t WHERE id = 142", exactly=1)
    assert lab.sql("CHECK SIEVE INDEX ON t")[0][2] == "ok"


@pytest.mark.parametrize("version", [2, 3])
def test_row_groups_with_deleted_rows(lab: Lab, version: int) -> None:
    """If queries read only some row groups, position deletes still hide the right rows."""
    create_with_row_groups(lab, format__version=version, write_delete_mode="merge-on-read",
                           write_update_mode="merge-on-read")  # fmt: skip
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("DELETE FROM t WHERE id IN (142, 143, 300)")
    assert lab.check("SELECT * FROM t WHERE id IN (141, 142, 143, 144)").rows.total() == 2
    lab.sql("UPDATE t SET v = 'u' WHERE id = 144")
    assert lab.check("SELECT * FROM t WHERE id IN (141, 142, 143, 144)").rows.total() == 2
    lab.check("SELECT * FROM t ORDER BY id LIMIT 3")
    lab.sql("REFRESH SIEVE INDEX ON t")
    for wanted in range(120, 160, 3):
        lab.check(f"SELECT * FROM t WHERE id = {wanted}")
    assert lab.sql("CHECK SIEVE INDEX ON t")[0][2] == "ok"


def test_other_files_are_read_whole(lab: Lab) -> None:
    """Scans read Avro files whole. With granularity = 'file', scans read all files whole."""
    create_with_row_groups(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (granularity = 'file')")
    assert ranges(lab, "SELECT * FROM t WHERE id = 142") == (1, 2)
    lab.sql("DROP SIEVE INDEX id_sieve ON t")
    lab.sql("ALTER TABLE t SET TBLPROPERTIES ('write.format.default' = 'avro')")
    insert(lab, files=2, start=400)
    lab.sql("ALTER TABLE t SET TBLPROPERTIES ('write.format.default' = 'orc')")
    insert(lab, files=2, start=420)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    for wanted in (142, 405, 415, 425, 435):
        lab.check(f"SELECT * FROM t WHERE id = {wanted}", exactly=1)
    assert lab.sql("CHECK SIEVE INDEX ON t")[0][2] == "ok"
