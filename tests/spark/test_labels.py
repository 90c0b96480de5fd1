"""The labels that Spark's web pages show for the jobs of a statement."""

from __future__ import annotations

from typing import Any

import pytest
from spark_session import Lab

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, 'k' || id AS s FROM range({first}, {last})"


def labels_of(lab: Lab, text: str) -> set[str | None]:
    """The descriptions of a statement's jobs and of their stages."""
    jobs = jobs_of(lab, text)
    return {_described(what) for what in (*jobs, *(s for job in jobs for s in _stages(lab, job)))}


def pools_of(lab: Lab, text: str) -> set[str]:
    """The scheduler pools of the jobs that a statement runs."""
    return {
        str(stage.schedulingPool()) for job in jobs_of(lab, text) for stage in _stages(lab, job)
    }


def jobs_of(lab: Lab, text: str) -> list[Any]:
    """The jobs that a statement starts, as Spark's web pages list them."""
    known = _jobs(lab)
    lab.sql(text)
    store = lab.spark._jsc.sc().statusStore()
    return [store.job(number) for number in sorted(_jobs(lab) - known)]


def _stages(lab: Lab, job: Any) -> list[Any]:
    store = lab.spark._jsc.sc().statusStore()
    numbers = [job.stageIds().apply(k) for k in range(job.stageIds().size())]
    stages = [store.lastStageAttempt(number) for number in numbers]
    # Spark skips a stage whose output already exists.
    return [stage for stage in stages if stage.status().name() != "SKIPPED"]


def _jobs(lab: Lab) -> set[int]:
    context = lab.spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    listed = context.statusStore().jobsList(None)
    return {listed.apply(k).jobId() for k in range(listed.size())}


def _described(what: Any) -> str | None:
    label = what.description()
    return str(label.get()) if label.isDefined() else None


@pytest.mark.long
def test_jobs_name_their_statement_and_step(lab: Lab) -> None:
    """The label of each job and stage of CREATE and REFRESH names the statement and the step.

    After the statement, the session has the user's own job description again.
    """
    context = lab.spark.sparkContext
    with lab.database("labels"):
        # With fewer rows, the build would not need the last two jobs.
        lab.sql(f"CREATE TABLE t USING parquet AS {ROWS.format(first=0, last=40000)}")
        context.setJobDescription("a report")
        try:
            labels = labels_of(lab, "CREATE SIEVE   INDEX\n  ON t (id, s)")
            steps = ("counting 4 files", "sampling 4 files", "reading 4 files", "writing")
            assert labels == {f"CREATE SIEVE INDEX ON t (id, s) ({step})" for step in steps}
            lab.sql(f"INSERT INTO t {ROWS.format(first=40000, last=50000)}")
            labels = labels_of(lab, "REFRESH SIEVE INDEX ON t")
            assert labels == {f"REFRESH SIEVE INDEX ON t ({step})" for step in steps}
            assert labels_of(lab, "SELECT max(id) FROM t WHERE s > 'k2'") == {"a report"}
        finally:
            context.setJobDescription(None)


def test_jobs_of_sieve_run_in_a_separate_pool(lab: Lab) -> None:
    """With a fair scheduler, Sieve's jobs run in a separate pool if the user has set no pool."""
    context = lab.spark.sparkContext
    with lab.database("pools"):
        lab.sql(f"CREATE TABLE t USING parquet AS {ROWS.format(first=0, last=1000)}")
        assert pools_of(lab, "CREATE SIEVE INDEX ON t (id)") == {"sieve"}
        assert pools_of(lab, "SELECT * FROM t WHERE id = 5") == {"default"}
        context.setLocalProperty("spark.scheduler.pool", "reports")
        try:
            assert pools_of(lab, "REFRESH SIEVE INDEX ON t FULL") == {"reports"}
            assert pools_of(lab, "SELECT * FROM t WHERE id = 5") == {"reports"}
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)
