"""Sieve judges the cost of join keys by the size of the slices that the index selects."""

from __future__ import annotations

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

JOIN = "SELECT a.id, b.word FROM t a JOIN t b ON a.amount = b.amount WHERE a.id {}"


def _sizes(lab: Lab, query: str) -> tuple[int, int]:
    """The size in bytes of the smallest scan of `t`: first Spark's estimate, then the index's."""
    plan = lab.spark.sql(query)._jdf.queryExecution().optimizedPlan()
    own = lab.spark._jvm.org.apache.spark.sql.sieve.plan.BytesLeft(lab.spark._jsparkSession, plan)
    leaves = plan.collectLeaves()
    scans = [leaves.apply(k) for k in range(leaves.size())]
    return (
        min(int(str(scan.stats().sizeInBytes())) for scan in scans),
        min(int(str(own.apply(scan))) for scan in scans),
    )


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("parts", [False, True])
def test_size_of_a_table_is_that_of_the_selected_slice(lab: Lab, kind: str, parts: bool) -> None:
    """If the index selects one slice, the size of the scan is the size of this slice in bytes.

    Neither the number of partitions nor the log files of other slices change this size.
    """
    with lab.database("hudi_sizes"):
        tables.create(lab, kind, parts=parts)
        tables.fill_sorted(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("UPDATE t SET word = 'new' WHERE id = 350")
        lab.sql("REFRESH SIEVE INDEX ON t")
        whole, left = _sizes(lab, JOIN.format("= 5"))
        assert left < whole / 4
        assert _sizes(lab, JOIN.format(">= 0")) == (whole, whole)
        # Few bytes can contain many rows, so Sieve does not make Spark broadcast this small scan.
        with lab.setting("spark.sql.autoBroadcastJoinThreshold", str(whole // 10)):
            plan = lab.spark.sql(JOIN.format("= 5"))._jdf.queryExecution().sparkPlan()
            assert "BroadcastHashJoin" not in plan.toString()
            lab.check(JOIN.format("= 5"), at_most=9)
        if parts:
            # The scan reads one of the two slices in this partition; the whole table has eight
            # slices.
            of_partition = JOIN.format("BETWEEN 300 AND 320 AND a.PART = 3")
            assert _sizes(lab, of_partition)[1] < whole / 6
            lab.check(of_partition, at_most=9)


def test_listed_partitions_do_not_reduce_the_size(lab: Lab) -> None:
    """The computed size of a scan is large enough, even if Hudi has listed only some partitions.

    The rows that the index selects are in two partitions.
    """
    with lab.database("hudi_sizes_listed"):
        tables.create(lab, "cow", parts=True)
        tables.fill_sorted(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        either = "((a.part = 2 AND a.amount > 0) OR (a.part = 3 AND a.amount > 1)) AND a.id"
        queries = [
            JOIN.replace("a.id {}", f"{either} BETWEEN 200 AND 399"),
            JOIN.format("BETWEEN 200 AND 399"),
        ]
        whole, _ = _sizes(lab, JOIN.format("= 5"))
        for query in queries:
            for before in ("SELECT * FROM t WHERE part = 3", "SELECT 1"):
                lab.sql("REFRESH TABLE t")
                lab.sql(before)
                own, left = _sizes(lab, query)
                # Hudi's size estimate for a table covers only the partitions that Hudi has listed
                # so far.
                assert min(own, whole / 3) <= left <= own
                lab.check(query, at_most=12)
