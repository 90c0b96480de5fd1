"""If the front end is killed or slow, queries return all rows, and statements report the fault."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from processes import alive, front_ends, stop, wait_until
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from spark_session import Lab, files_read

POINT = "SELECT * FROM fault.t WHERE id = 123"
ROWS = [(123, 4, "k123")]
DAY_S = 24 * 3600


@pytest.fixture
def other_thread() -> Iterator[Callable[..., Future[Any]]]:
    """Yields a function that runs another function in a second thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def the_front_end(jvm: int) -> int:
    """Returns the process id of the driver's only front end."""
    (pid,) = front_ends(jvm)
    return pid


def kill(jvm: int) -> None:
    """Kills the driver's front end."""
    pid = the_front_end(jvm)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), "the front end is dead")


def folders(root: Path) -> set[str]:
    """The names of the index folders below the root."""
    return {path.name for path in root.iterdir()}


def indexes(lab: Lab) -> list[str]:
    """The names of the table's indexes."""
    return [row[2] for row in lab.sql("SHOW SIEVE INDEXES ON fault.t")]


@pytest.mark.usefixtures("table")
def test_a_query_after_a_kill_keeps_its_rows(lab: Lab, jvm: int) -> None:
    """If the front end is dead, a scan returns all rows.

    After the next statement restarts the front end, scans skip files again.
    """
    kill(jvm)
    assert lab.sql(POINT) == ROWS
    for pid in front_ends(jvm):
        os.kill(pid, signal.SIGKILL)
    assert lab.sql(POINT) == ROWS
    assert indexes(lab) == ["id_sieve"]
    lab.check(POINT, exactly=1)


@pytest.mark.long
def test_statements_after_a_kill_work(lab: Lab, jvm: int, table: str) -> None:
    """CREATE, ALTER and DROP each work if the front end was killed before the statement."""
    for statement, then in (
        (f"CREATE SIEVE INDEX ON {table} (r)", ["id_sieve", "r_sieve"]),
        (f"ALTER SIEVE INDEX r_sieve ON {table} DISABLE", ["id_sieve", "r_sieve"]),
        (f"DROP SIEVE INDEX r_sieve ON {table}", ["id_sieve"]),
    ):
        kill(jvm)
        lab.sql(statement)
        kill(jvm)
        assert indexes(lab) == then
    lab.check(POINT, exactly=1)


def test_create_fails_if_the_front_end_is_killed(
    lab: Lab, jvm: int, table: str, root: Path, other_thread: Callable[..., Future[Any]]
) -> None:
    """If the front end is killed during CREATE, CREATE fails and registers nothing.

    A second CREATE then succeeds.
    """
    before = folders(root)
    create = other_thread(lab.sql, f"CREATE SIEVE INDEX ON {table} (s)")
    wait_until(lambda: list(root.glob("*/intent.json")) and folders(root) > before, "it has begun")
    kill(jvm)
    with pytest.raises(PySparkException, match=r"SIEVE_FRONT_END_DOWN.*stopped") as failure:
        create.result()
    assert "Nothing was changed: run the statement again" in str(failure.value)
    assert failure.value.getSqlState() == "08006"
    assert indexes(lab) == ["id_sieve"]
    tracker = lab.spark.sparkContext.statusTracker()
    wait_until(lambda: not tracker.getActiveJobsIds(), "its jobs are cancelled")
    ((_, version, files, *_),) = lab.sql(f"CREATE SIEVE INDEX ON {table} (s)")
    assert (version, files) == (1, 10)
    lab.check("SELECT * FROM fault.t WHERE s = 'k77'", at_most=2)


@pytest.mark.long
def test_drop_reports_unknown_outcome_if_front_end_is_killed(
    lab: Lab, jvm: int, table: str, root: Path, other_thread: Callable[..., Future[Any]]
) -> None:
    """If the front end dies after DROP's first visible change, the error says "unknown outcome"."""
    (index,) = folders(root)
    tombstone = root / index / "versions" / "2.json"
    front_end = the_front_end(jvm)
    drop = other_thread(lab.sql, f"DROP SIEVE INDEX id_sieve ON {table}")
    while not tombstone.exists():
        pass
    os.kill(front_end, signal.SIGKILL)
    with pytest.raises(PySparkException, match="SIEVE_STATEMENT_UNKNOWN_OUTCOME") as failure:
        drop.result()
    assert "Run the statement again" in str(failure.value)
    assert failure.value.getSqlState() == "08007"
    lab.sql(f"DROP SIEVE INDEX IF EXISTS id_sieve ON {table}")
    assert indexes(lab) == []


@pytest.mark.long
def test_create_deletes_old_leftover_folders(
    lab: Lab, jvm: int, table: str, root: Path, other_thread: Callable[..., Future[Any]]
) -> None:
    """CREATE deletes unregistered index folders of its table that are at least a day old."""
    before = folders(root)
    create = other_thread(lab.sql, f"CREATE SIEVE INDEX ON {table} (s)")
    wait_until(lambda: folders(root) > before, "it has begun")
    (left,) = folders(root) - before
    wait_until((root / left / "intent.json").exists, "it has told what it makes")
    kill(jvm)
    assert create.exception() is not None
    lab.sql(f"CREATE SIEVE INDEX ON {table} (r)")
    assert left in folders(root), "it is too young to be known for dead"
    of_another = root / "01234567-89ab-cdef-0123-456789abcdef"
    of_another.mkdir()
    (of_another / "intent.json").write_text(
        (root / left / "intent.json").read_text().replace('"table": "t"', '"table": "u"')
    )
    for folder in root.iterdir():
        for file in (folder / "intent.json", folder / "registered"):
            if file.exists():
                os.utime(file, (time.time() - DAY_S - 60,) * 2)
    lab.sql(f"DROP SIEVE INDEX r_sieve ON {table}")
    lab.sql(f"CREATE SIEVE INDEX ON {table} (r)")
    assert left not in folders(root)
    assert of_another.exists()
    lab.check(POINT, exactly=1)


@pytest.mark.usefixtures("table")
def test_query_keeps_its_rows_if_the_front_end_dies_meanwhile(
    lab: Lab, jvm: int, other_thread: Callable[..., Future[Any]]
) -> None:
    """If the front end dies while a scan waits for an answer, the scan returns all rows."""
    pid = the_front_end(jvm)
    with lab.setting("spark.sieve.prune.timeout", "1h"):
        stop(pid)
        try:
            query = other_thread(lab.sql, POINT)
            with pytest.raises(TimeoutError):
                query.result(timeout=2)
        finally:
            os.kill(pid, signal.SIGKILL)
        assert query.result() == ROWS
    assert indexes(lab) == ["id_sieve"]
    lab.check(POINT, exactly=1)


@pytest.mark.usefixtures("table")
def test_scan_does_not_wait_for_a_late_answer(lab: Lab, jvm: int) -> None:
    """After the prune time-out, a scan reads all files. With `strict`, the query fails."""
    lab.check(POINT, exactly=1)
    timeouts = "SELECT value FROM sieve_status() WHERE reason = 'timeout'"
    ((before,),) = lab.sql(timeouts)
    pid = the_front_end(jvm)
    stop(pid)
    try:
        with lab.setting("spark.sieve.prune.timeout", "1ms"):
            answer = lab.run(POINT)
            assert (sum(answer.rows.values()), answer.files) == (1, 10)
            with (
                lab.setting("spark.sieve.strict", "true"),
                pytest.raises(PySparkException, match=r"SIEVE_STRICT.*timeout"),
            ):
                lab.sql(POINT)
    finally:
        os.kill(pid, signal.SIGCONT)
    lab.check(POINT, exactly=1)
    assert lab.sql(timeouts) == [(before + 1,)]


@pytest.mark.usefixtures("table")
def test_scans_stop_waiting_after_three_timeouts(lab: Lab, jvm: int) -> None:
    """After three time-outs in a row, scans no longer wait for the front end.

    As soon as the front end answers again, scans prune files again.
    """
    pid = the_front_end(jvm)
    stop(pid)
    try:
        with lab.setting("spark.sieve.prune.timeout", "1ms"):
            for _ in range(3):
                assert lab.run(POINT).files == 10
        with lab.setting("spark.sieve.prune.timeout", "1h"):
            # With this time-out, a scan would wait for an hour if it sent a request.
            answer = lab.run(POINT)
            assert (sum(answer.rows.values()), answer.files) == (1, 10)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: lab.run(POINT).files == 1, "scans ask again", every=0.1)
    lab.check(POINT, exactly=1)


@pytest.mark.long
@pytest.mark.usefixtures("table")
def test_hanging_store_affects_only_its_own_tables(lab: Lab) -> None:
    """If a store hangs, scans of the store's tables read all files.

    Scans of other tables still skip files. A named pipe without a writer stands in for a hanging
    store, because a reader of the pipe blocks.
    """
    query = "SELECT * FROM hanging.u WHERE id = 5"
    with (
        lab.database("hanging"),
        lab.setting("spark.sieve.prune.timeout", "1s"),
        ThreadPoolExecutor(8) as pool,
    ):
        lab.sql("CREATE TABLE u USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON u (id)")
        at = Path(lab.facts(table="u")["path"].removeprefix("file:"))
        (held_up,) = (at / "locations").iterdir()
        held_up.unlink()
        os.mkfifo(held_up)
        try:
            for rows in pool.map(lab.sql, [query] * 8):
                assert rows == [(5,)]
            wait_until(
                lambda: lab.run(POINT).files == 1, "scans of other tables ask again", every=0.1
            )
            for _ in range(4):
                answer = lab.run(query)
                assert (answer.rows, answer.files) == ({"(5,)": 1}, 4)
            # The last four scans of the hanging table did not time out, so the circuit breaker is
            # not open.
            lab.check(POINT, exactly=1)
            with (
                lab.setting("spark.sieve.strict", "true"),
                pytest.raises(PySparkException, match=r"SIEVE_STRICT.*does not answer other scans"),
            ):
                lab.sql(query)
        finally:
            held_up.rename(at / "hung")
            with (at / "hung").open("wb") as writer:
                writer.write(b"what was waited for")


def planned(lab: Lab) -> DataFrame:
    """Plans the query, but does not run it. Then waits a second for the front end's answer."""
    frame = lab.spark.sql(POINT)
    frame._jdf.queryExecution().executedPlan()
    time.sleep(1)
    return frame


@pytest.mark.usefixtures("table")
def test_query_uses_the_answer_from_planning(lab: Lab, jvm: int) -> None:
    """A query uses the answer that it received while planning, even if the front end then stops."""
    lab.check(POINT, exactly=1)
    with lab.setting("spark.sieve.strict", "true"):
        frame = planned(lab)
        pid = the_front_end(jvm)
        stop(pid)
        try:
            assert [tuple(row) for row in frame.collect()] == ROWS
        finally:
            os.kill(pid, signal.SIGCONT)
        assert files_read(frame) == 1


@pytest.mark.usefixtures("table")
def test_answer_under_other_settings_is_not_used(lab: Lab) -> None:
    """A query does not use the answer to a request under different settings."""
    frame = planned(lab)
    with lab.setting("spark.sql.caseSensitive", "true"):
        assert [tuple(row) for row in frame.collect()] == ROWS
        assert files_read(frame) == 10
    lab.check(POINT, exactly=1)


@pytest.mark.parametrize("by", ["group", "tag"])
def test_a_cancelled_create_leaves_nothing(
    lab: Lab, table: str, root: Path, by: str, other_thread: Callable[..., Future[Any]]
) -> None:
    """If the user cancels CREATE's job group or tag, CREATE ends and leaves no files behind."""
    context = lab.spark.sparkContext
    before = folders(root)

    def create() -> None:
        if by == "group":
            context.setJobGroup("a-group", "typed by a user", interruptOnCancel=True)
        else:
            context.addJobTag("a-tag")
        lab.sql(f"CREATE SIEVE INDEX ON {table} (s)")

    running = other_thread(create)
    wait_until(context.statusTracker().getActiveJobsIds, "a job runs")
    while not running.done():
        if by == "group":
            context.cancelJobGroup("a-group")
        else:
            context.cancelJobsWithTag("a-tag")
    with pytest.raises(PySparkException, match="cancelled"):
        running.result()
    assert indexes(lab) == ["id_sieve"]
    assert folders(root) == before
    lab.check(POINT, exactly=1)
