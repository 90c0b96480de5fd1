"""The join planner uses the size that an index leaves of a Hudi table."""

from __future__ import annotations

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

JOIN = "SELECT a.id, b.word FROM t a JOIN t b ON a.amount = b.amount WHERE a.id {}"


def _joins(lab: Lab, query: str) -> tuple[set[str], int]:
    """The kind of join in the plan before execution, and the estimated size of `t`."""
    execution = lab.spark.sql(query)._jdf.queryExecution()
    plan = execution.sparkPlan().toString()
    leaves = execution.optimizedPlan().collectLeaves()
    sizes = [int(str(leaves.apply(k).stats().sizeInBytes())) for k in range(leaves.size())]
    return {kind for kind in ("BroadcastHashJoin", "SortMergeJoin") if kind in plan}, min(sizes)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("parts", [False, True])
def test_a_table_of_which_one_slice_is_read_is_broadcast(lab: Lab, kind: str, parts: bool) -> None:
    """The size of the remaining slice decides about a broadcast, even beside log files."""
    with lab.database("hudi_sizes"):
        tables.create(lab, kind, parts=parts)
        tables.fill_sorted(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("UPDATE t SET word = 'new' WHERE id = 350")
        lab.sql("REFRESH SIEVE INDEX ON t")
        with lab.setting("spark.sieve.enabled", "false"):
            _, whole = _joins(lab, JOIN.format("= 5"))
        # Spark estimates a table's size by the widths of the requested columns, divided by all
        # columns.
        with lab.setting("spark.sql.autoBroadcastJoinThreshold", str(whole // 10)):
            kinds, left = _joins(lab, JOIN.format("= 5"))
            assert (kinds, left < whole / 4) == ({"BroadcastHashJoin"}, True)
            assert _joins(lab, JOIN.format(">= 0"))[0] == {"SortMergeJoin"}
            with lab.setting("spark.sieve.join.pruning", "off"):
                assert _joins(lab, JOIN.format("= 5")) == ({"SortMergeJoin"}, whole)
            lab.check(JOIN.format("= 5"), at_most=9)
            if parts:
                # The queried partition has two of the eight slices, and one of the two is read.
                of_partition = JOIN.format("BETWEEN 300 AND 320 AND a.PART = 3")
                kinds, left = _joins(lab, of_partition)
                assert (kinds, left < whole / 6) == ({"BroadcastHashJoin"}, True)
                lab.check(of_partition, at_most=9)


def test_partitions_that_hudi_has_listed_before_make_no_size_smaller(lab: Lab) -> None:
    """One query lists two of four partitions, and another query lists one.

    The slices that the index leaves are in two partitions.
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
        with lab.setting("spark.sieve.enabled", "false"):
            _, whole = _joins(lab, JOIN.format("= 5"))
        with lab.setting("spark.sql.autoBroadcastJoinThreshold", "1KB"):
            for query in queries:
                for before in ("SELECT * FROM t WHERE part = 3", "SELECT 1"):
                    sizes = []
                    for enabled in ("false", "true"):
                        lab.sql("REFRESH TABLE t")
                        lab.sql(before)
                        with lab.setting("spark.sieve.enabled", enabled):
                            sizes.append(_joins(lab, query)[1])
                    own, left = sizes
                    # Hudi itself estimates a table by the partitions that it has listed so far.
                    assert min(own, whole / 3) <= left <= own
                    lab.check(query, at_most=12)
