"""If a failure occurs while a scan waits for join keys, queries return what Spark alone returns."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from processes import alive, front_ends, stop, wait_until
from pyspark.errors import PySparkException
from spark_session import Lab

FETCHED = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sieve.join.pruning": "always"}
MODES = {"broadcast": {}, "fetched": FETCHED}
LONG = pytest.mark.long
JOIN = "SELECT id, d.a FROM fault.t JOIN fault.d ON t.id = d.k WHERE d.a = 3"
FILES = {"broadcast": 2 + 1, "fetched": 2 + 2}
"""How many files a join reads. A job that fetches keys reads the dimension a second time."""
ROWS = [(123, 3), (703, 3)]


@pytest.fixture
def dimension(lab: Lab, table: str) -> str:
    """Creates the dimension table `d`, whose keys are 3, 23, 43 and so on, up to 983.

    `d` is a Parquet table, because Sieve fetches join keys only from tables that consist of files.
    """
    lab.sql(
        "CREATE TABLE d USING parquet AS "
        "SELECT /*+ COALESCE(1) */ id * 20 + 3 AS k, IF(id IN (6, 35), 3, 4) AS a FROM range(50)"
    )
    return table


def _rows(lab: Lab) -> list[tuple[int, int]]:
    return sorted(lab.sql(JOIN))


@pytest.mark.usefixtures("dimension")
@pytest.mark.parametrize("mode", ["fetched", pytest.param("broadcast", marks=LONG)])
def test_no_row_is_lost_if_the_front_end_dies_awaiting_keys(lab: Lab, jvm: int, mode: str) -> None:
    """If the front end is killed, the scan that waits for join keys reads all files.

    After a restart of the front end, the join skips files again.
    """
    with lab.settings(MODES[mode]):
        lab.check(JOIN, exactly=FILES[mode])
        (pid,) = front_ends(jvm)
        with lab.setting("spark.sieve.prune.timeout", "1h"), ThreadPoolExecutor(1) as pool:
            stop(pid)
            try:
                query = pool.submit(_rows, lab)
                with pytest.raises(TimeoutError):
                    query.result(timeout=3)
            finally:
                os.kill(pid, signal.SIGKILL)
            assert query.result() == ROWS
        wait_until(lambda: not alive(pid), "the front end is dead")
        lab.sql("SHOW SIEVE INDEXES ON fault.t")
        lab.check(JOIN, exactly=FILES[mode])


@pytest.mark.usefixtures("dimension")
@pytest.mark.parametrize("mode", ["broadcast", pytest.param("fetched", marks=LONG)])
def test_scan_does_not_wait_for_late_keys(lab: Lab, jvm: int, mode: str) -> None:
    """If the front end does not answer within the prune time-out, the join returns all rows."""
    with lab.settings(MODES[mode]):
        lab.check(JOIN, exactly=FILES[mode])
        (pid,) = front_ends(jvm)
        with lab.setting("spark.sieve.prune.timeout", "100ms"):
            stop(pid)
            try:
                assert _rows(lab) == ROWS
            finally:
                os.kill(pid, signal.SIGCONT)
        lab.check(JOIN, exactly=FILES[mode])


@pytest.mark.usefixtures("dimension")
@pytest.mark.parametrize(
    ("mode", "adaptive"),
    [
        pytest.param("broadcast", "true", marks=LONG),
        ("fetched", "true"),
        pytest.param("fetched", "false", marks=LONG),
    ],
)
def test_failing_build_side_raises_the_error_of_spark(lab: Lab, mode: str, adaptive: str) -> None:
    """If the join's build side fails, the query's error condition is the same as without Sieve."""
    query = f"{JOIN} AND 1 div (d.k - 123) < 5"
    conditions = []
    for enabled in ("false", "true"):
        conf = {"spark.sieve.enabled": enabled, "spark.sql.ansi.enabled": "true"}
        conf |= {"spark.sql.adaptive.enabled": adaptive}
        # With Spark's constraint propagation, both sides of the join would fail, and the error
        # would differ.
        conf |= {"spark.sql.constraintPropagation.enabled": "false"}
        with lab.settings(MODES[mode] | conf), pytest.raises(PySparkException) as failure:
            lab.sql(query)
        assert "DIVIDE_BY_ZERO" in str(failure.value)
        conditions.append(failure.value.getCondition())
    assert conditions[1] == conditions[0]
    with lab.settings(MODES[mode]):
        lab.check(JOIN, exactly=FILES[mode])


@pytest.mark.usefixtures("dimension")
@pytest.mark.parametrize(
    ("below", "adaptive"),
    [
        pytest.param(925, "true", id="a range-true"),
        pytest.param(925, "false", id="a range-false", marks=LONG),
        pytest.param(900, "true", id="whole files-true", marks=LONG),
        pytest.param(900, "false", id="whole files-false"),
    ],
)
def test_failed_key_job_does_not_fail_the_query(lab: Lab, below: int, adaptive: str) -> None:
    """If the job for join keys fails at a row, queries that do not read this row succeed.

    The test covers scans of file ranges with Sieve's reader, and scans of whole files with Spark's
    reader.
    """
    query = (
        "SELECT /*+ BROADCAST(t) */ k, id FROM fault.d "
        f"LEFT JOIN fault.t ON id = k AND id < {below} "
        "WHERE 1 div (a - 3) < 5 AND coalesce(id, 0) >= 0 LIMIT 1"
    )
    failed = "SELECT value FROM sieve_status() WHERE reason = 'keys-failed'"
    conf = {"spark.sieve.join.pruning": "always", "spark.sql.ansi.enabled": "true"}
    with lab.settings(conf | {"spark.sql.adaptive.enabled": adaptive}):
        with lab.setting("spark.sieve.enabled", "false"):
            expected = lab.run(query).rows
        ((before,),) = lab.sql(failed)
        answer = lab.run(query)
        assert (answer.rows, answer.files) == (expected, 1 + 1 + -(-below // 100))
        assert lab.sql(failed) == [(before + 1,)]
        planned = lab.spark.sql(query)
        planned._jdf.queryExecution().executedPlan()
        with lab.setting("spark.sieve.join.pruning", "off"):
            assert Counter(repr(tuple(row)) for row in planned.collect()) == expected
        with (
            lab.setting("spark.sieve.require", "true"),
            pytest.raises(Exception, match=r"SIEVE_REQUIRED.*keys-failed"),
        ):
            lab.sql(query)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("adaptive", "jobs"), [("true", 2), ("false", 1)])
def test_cancelled_query_ends_while_keys_are_read(lab: Lab, adaptive: str, jobs: int) -> None:
    """If a query is cancelled while a job reads its join keys, the query ends.

    In an adaptive query, the job that reads the keys and a job of the join run at the same time.
    Spark cancels only jobs that have started, so the test waits until both jobs have started.
    """
    context, group = lab.spark.sparkContext, f"cancelled {adaptive}"
    running = context.statusTracker().getJobIdsForGroup

    def query() -> None:
        context.setJobGroup(group, "reads keys")
        lab.sql("SELECT * FROM fault.t JOIN range(100000000000) d ON t.id = d.id")

    conf = FETCHED | {"spark.sql.adaptive.enabled": adaptive}
    with lab.settings(conf), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(query)
        try:
            wait_until(lambda: len(running(group)) >= jobs, "the jobs run")
            context.cancelJobGroup(group)
            with pytest.raises(Exception, match="cancelled"):
                asked.result(timeout=60)
        finally:
            context.cancelAllJobs()
    wait_until(lambda: not context.statusTracker().getActiveJobsIds(), "all jobs have stopped")


def test_no_row_is_lost_if_the_front_end_dies_after_planning(
    lab: Lab, jvm: int, table: str
) -> None:
    """If the front end dies after the planner has sent a request, the query returns all rows.

    After a restart of the front end, the next query skips files as before.
    """
    query = (
        f"SELECT a.s FROM {table} a JOIN {table} b ON a.r = b.r WHERE a.id = 123 AND b.s > 'k99'"
    )
    with lab.setting("spark.sieve.enabled", "false"):
        expected = lab.run(query).rows
    lab.check(query, exactly=1 + 10)
    frame = lab.spark.sql(query)
    frame._jdf.queryExecution().sparkPlan()
    (pid,) = front_ends(jvm)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), "the front end is dead")
    assert Counter(repr(tuple(row)) for row in frame.collect()) == expected
    lab.sql("SHOW SIEVE INDEXES ON fault.t")
    lab.check(query, exactly=1 + 10)
