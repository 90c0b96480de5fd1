"""A user alters a table while Sieve refreshes the table's indexes."""

from __future__ import annotations

import sys
import threading

import pytest
from spark_session import Lab

ROUNDS, MANY = 4, 1000
ALL = 20
"""One in this number of refreshes is a REFRESH FULL."""


def play(lab: Lab, rounds: int) -> None:
    """Refreshes an index in one session while another session adds columns, properties and rows.

    At the end, asserts that every change of the table is still there.
    """
    with lab.database("beside"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        registration = lab.sql("SHOW TBLPROPERTIES t ('sieve.index.id_sieve')")
        other = Lab(lab.spark.newSession())
        other.sql("USE beside")
        failures: list[Exception] = []
        # The user is at most three rounds ahead of the refreshes, so each refresh meets new
        # changes.
        ahead = threading.Semaphore(3)

        def users() -> None:
            try:
                for number in range(rounds):
                    ahead.acquire()
                    if number < 50:
                        other.sql(f"ALTER TABLE t ADD COLUMNS (c{number} INT COMMENT 'mine')")
                    other.sql(f"ALTER TABLE t SET TBLPROPERTIES ('mine.{number}' = '{number}')")
                    other.sql(f"INSERT INTO t (id) VALUES ({1000 + number})")
            except Exception as error:  # noqa: BLE001 - told by the other thread
                failures.append(error)

        # The thread is a daemon, because after a failed refresh the thread would wait forever.
        user = threading.Thread(target=users, daemon=True)
        user.start()
        refreshes = 0
        while user.is_alive() or (refreshes < rounds and not failures):
            effort = "" if refreshes % ALL else "FULL"
            lab.sql(f"REFRESH SIEVE INDEX ON t {effort}")
            refreshes += 1
            ahead.release()
        user.join()
        assert failures == []
        lab.sql("REFRESH TABLE t")
        properties = dict(lab.sql("SHOW TBLPROPERTIES t"))
        assert [properties[f"mine.{n}"] for n in range(rounds)] == [str(n) for n in range(rounds)]
        assert lab.sql("SHOW TBLPROPERTIES t ('sieve.index.id_sieve')") == registration
        columns = [row[0] for row in lab.sql("DESCRIBE t")]
        assert columns == ["id", *(f"c{number}" for number in range(min(rounds, 50)))]
        lab.sql("REFRESH SIEVE INDEX ON t")
        for number in (0, rounds // 2, rounds - 1):
            assert lab.check(f"SELECT id FROM t WHERE id = {1000 + number}", exactly=1).rows
        assert lab.sql("SELECT count(*) FROM t") == [(40 + rounds,)]
    sys.stdout.write(f"{refreshes} refreshes beside {3 * rounds} statements, nothing lost\n")


def test_concurrent_changes_of_user_and_sieve_are_kept(lab: Lab) -> None:
    """In a few rounds of concurrent ALTER and REFRESH, neither statement undoes a change."""
    play(lab, ROUNDS)


@pytest.mark.soak
def test_nothing_is_lost_in_many_rounds(lab: Lab) -> None:
    """In a thousand rounds of concurrent ALTER and REFRESH, neither statement undoes a change."""
    play(lab, MANY)
