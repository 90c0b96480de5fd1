"""What Spark's own pages call the jobs of a statement."""

from __future__ import annotations

from typing import Any

from lab import Lab

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, 'k' || id AS s FROM range({first}, {last})"


def labels_of(lab: Lab, text: str) -> set[str | None]:
    """Descriptions of the jobs that a statement runs, and of their stages."""
    store = lab.spark._jsc.sc().statusStore()
    known = _jobs(lab)
    lab.sql(text)
    found = set()
    for number in _jobs(lab) - known:
        job = store.job(number)
        found.add(_described(job))
        for k in range(job.stageIds().size()):
            stage = store.lastStageAttempt(job.stageIds().apply(k))
            # A stage whose output was there already does not run.
            if stage.status().name() != "SKIPPED":
                found.add(_described(stage))
    return found


def _jobs(lab: Lab) -> set[int]:
    context = lab.spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    listed = context.statusStore().jobsList(None)
    return {listed.apply(k).jobId() for k in range(listed.size())}


def _described(what: Any) -> str | None:
    label = what.description()
    return str(label.get()) if label.isDefined() else None


def test_the_jobs_of_a_statement_carry_it(lab: Lab) -> None:
    """Every job and stage of CREATE and REFRESH says which statement it works for, and the step.

    What the user calls his own jobs stays as it was.
    """
    context = lab.spark.sparkContext
    with lab.database("labels"):
        lab.sql(f"CREATE TABLE t USING parquet AS {ROWS.format(first=0, last=1000)}")
        context.setJobDescription("a report")
        try:
            labels = labels_of(lab, "CREATE SIEVE   INDEX\n  ON t (id, s)")
            steps = ("counting", "sampling", "reading", "writing")
            assert labels == {f"CREATE SIEVE INDEX ON t (id, s) ({step})" for step in steps}
            lab.sql(f"INSERT INTO t {ROWS.format(first=1000, last=1100)}")
            labels = labels_of(lab, "REFRESH SIEVE INDEX ON t")
            assert labels == {f"REFRESH SIEVE INDEX ON t ({step})" for step in steps}
            assert labels_of(lab, "SELECT max(id) FROM t WHERE s > 'k2'") == {"a report"}
        finally:
            context.setJobDescription(None)
