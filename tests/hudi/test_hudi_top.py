"""In Hudi tables, only slices without log files bound the results of top-k queries, MIN and MAX."""

from __future__ import annotations

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

FIRST = "SELECT id, word FROM t ORDER BY id LIMIT 5"
LAST = "SELECT id, word FROM t ORDER BY id DESC LIMIT 5"
ENDS = "SELECT min(id), max(id) FROM t"


def indexed(lab: Lab, kind: str) -> None:
    """Makes a slice of a hundred ascending keys in each of four partitions, and two indexes."""
    tables.create(lab, kind, parts=True)
    tables.fill(lab, 0, 400)
    lab.sql("CREATE SIEVE INDEX ON t (id, amount)")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_slices_without_log_files_are_bounded(lab: Lab, kind: str) -> None:
    """ORDER BY with LIMIT reads only the slices of the result, in both directions and with OFFSET.

    With a filter on a column without an index, ORDER BY with LIMIT reads all slices.
    """
    with lab.database("hudi_top"):
        indexed(lab, kind)
        lab.check(FIRST, exactly=1)
        lab.check(LAST, exactly=1)
        lab.check(ENDS, exactly=2)
        lab.check("SELECT id FROM t WHERE id > 150 ORDER BY id LIMIT 5", exactly=2)
        lab.check("SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 98", exactly=2)
        lab.check("SELECT id FROM t WHERE word > 'w3' ORDER BY id LIMIT 5", exactly=4)


def test_groups_of_partitions_have_no_bound(lab: Lab) -> None:
    """MIN and MAX, grouped by partition, read all eight slices, two in each of four partitions.

    In Hudi, a partition column's value can come from the file. So Sieve does not know to which
    group a slice belongs.
    """
    with lab.database("hudi_top_groups"):
        tables.create(lab, "cow", parts=True)
        tables.fill_sorted(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT max(id) FROM t", exactly=1)
        lab.check("SELECT part, max(id) FROM t GROUP BY part", exactly=8)


def test_new_base_file_is_read_until_refresh(lab: Lab) -> None:
    """Until REFRESH, top-k queries of a copy-on-write table also read new slices."""
    with lab.database("hudi_top_cow"):
        indexed(lab, "cow")
        lab.sql("DELETE FROM t WHERE id < 3")
        lab.check(FIRST, exactly=2)
        tables.upsert(lab, "SELECT -1, 0, 'least', 9, 3")
        lab.check(FIRST, exactly=3)
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check(FIRST, exactly=2)
        assert lab.run(ENDS).rows.keys() == {"(-1, 399)"}


def test_rows_hidden_by_log_files_give_no_bound(lab: Lab) -> None:
    """If log files hide most rows of the first slice, ORDER BY with LIMIT reads further slices."""
    with lab.database("hudi_top_deletes"):
        indexed(lab, "mor")
        lab.sql("DELETE FROM t WHERE id < 99")
        lab.check(FIRST, exactly=2)
        lab.check(LAST, exactly=2)
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check(FIRST, exactly=2)
        # The first slice now contains only the key 99, which cannot be among the last five keys.
        lab.check(LAST, exactly=1)
        tables.compact(lab)
        lab.sql("REFRESH TABLE t")
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT id FROM t ORDER BY id LIMIT 1", exactly=1)


def test_slice_refreshed_from_log_files_has_no_bound(lab: Lab) -> None:
    """After a refresh from log files, a slice's row count is too high to bound top-k queries."""
    with lab.database("hudi_top_news"):
        indexed(lab, "mor")
        lab.sql("UPDATE t SET amount = -7 WHERE id = 250")
        lab.sql("UPDATE t SET amount = 5000 WHERE id = 251")
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.check("SELECT min(amount) FROM t", at_most=3).rows.keys() == {"(-7,)"}
        assert lab.check("SELECT max(amount) FROM t", at_most=3).rows.keys() == {"(5000,)"}
        lab.check("SELECT id, amount FROM t ORDER BY amount LIMIT 3")
        lab.check(FIRST, exactly=2)


def test_updates_of_the_lowest_rows_keep_queries_right(lab: Lab) -> None:
    """If updates in log files raise the lowest amounts, queries are right, even before REFRESH."""
    with lab.database("hudi_top_updates"):
        indexed(lab, "mor")
        lab.sql("UPDATE t SET amount = amount + 2000 WHERE part = 1 AND amount < 300")
        for _ in range(2):
            lab.check("SELECT id, amount FROM t WHERE part > 0 ORDER BY amount, id LIMIT 10")
            lab.check("SELECT part, min(amount), max(amount) FROM t GROUP BY part")
            lab.sql("REFRESH SIEVE INDEX ON t")


def test_an_earlier_instant_has_no_bound(lab: Lab) -> None:
    """MIN at an earlier instant reads all slices.

    The index's row counts also include rows of other instants.
    """
    with lab.database("hudi_top_past"):
        indexed(lab, "cow")
        before = lab.sql("SELECT max(_hoodie_commit_time) FROM t")[0][0]
        lab.sql("DELETE FROM t WHERE id < 3")
        lab.sql("REFRESH SIEVE INDEX ON t")
        past = lab.check(f"SELECT min(id) FROM t TIMESTAMP AS OF '{before}'", exactly=4)
        assert past.rows.keys() == {"(0,)"}
