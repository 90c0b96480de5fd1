"""In one Thrift server, some sessions run queries while others create and drop indexes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyhive.exc import OperationalError
from thrift_session import thrift_session

if TYPE_CHECKING:
    from conftest import Site

READERS, WRITERS, SECONDS = 32, 4, 5
# If two users change an index at once, the slower statement can raise one of these errors.
_CONFLICTS = re.compile(
    r"SIEVE_(INDEX_EXISTS|UNKNOWN_INDEX|INDEX_NOT_USABLE|INDEX_DROPPED|PUBLISH_CONFLICT|"
    r"REFRESH_CONFLICT|INDEX_GONE|FILE_GONE)"
)


@pytest.mark.long
def test_many_sessions_at_once(site: Site) -> None:
    """No session hangs or gets a wrong row. Only statements with a conflict can fail."""
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE many")
        for name in ("a", "b"):
            cursor.execute(
                f"CREATE TABLE many.{name} USING parquet AS "
                "SELECT id, id * 3 AS v FROM range(0, 800, 1, 8)"
            )
    end = time.monotonic() + SECONDS
    with ThreadPoolExecutor(READERS + WRITERS) as pool:
        readers = [pool.submit(_session, site, _read, number, end) for number in range(READERS)]
        writers = [pool.submit(_session, site, _write, number, end) for number in range(WRITERS)]
        asked = sum((reader.result(timeout=120) for reader in readers), Counter[str]())
        done = sum((writer.result(timeout=120) for writer in writers), Counter[str]())
    assert asked["queries"] >= READERS
    assert done["CREATE"] >= 2
    assert done["DROP"] >= 2


def _session(
    site: Site, work: Callable[[Any, int], Counter[str]], number: int, end: float
) -> Counter[str]:
    """Repeats a session's work until the time ``end``, and at least once."""
    done: Counter[str] = Counter()
    with thrift_session(site.thrift_port, database="many") as connection:
        cursor = connection.cursor()
        while not done or time.monotonic() < end:
            done += work(cursor, number + 1000 * sum(done.values()))
    return done


def _read(cursor: Any, seed: int) -> Counter[str]:
    table, key = "ab"[seed % 2], seed * 7919 % 1000
    cursor.execute(f"SELECT count(*), max(v) FROM {table} WHERE id BETWEEN {key} AND {key + 9}")
    there = range(key, min(key + 10, 800))
    assert cursor.fetchall() == [(len(there), max(there) * 3 if there else None)]
    return Counter(queries=1)


def _write(cursor: Any, seed: int) -> Counter[str]:
    """Creates, refreshes, alters and drops an index, while another writer does the same."""
    table, done = "ab"[seed % 2], Counter[str]()
    for statement in (
        f"CREATE SIEVE INDEX i ON {table} (id)",
        f"REFRESH SIEVE INDEX i ON {table} FULL",
        f"ALTER SIEVE INDEX i ON {table} DISABLE",
        f"ALTER SIEVE INDEX i ON {table} ENABLE",
        f"DROP SIEVE INDEX i ON {table}",
    ):
        try:
            cursor.execute(statement)
            cursor.fetchall()
            done[statement.split()[0]] += 1
        except OperationalError as error:
            if not _CONFLICTS.search(str(error)):
                raise
            done["conflicts"] += 1
    return done
