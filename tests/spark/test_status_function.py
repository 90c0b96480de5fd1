from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab

Status = dict[tuple[str, str | None], int]


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[str]:
    """Ten files in the order of ``k``, with an index on ``k``."""
    with lab.database("counted"):
        lab.spark.range(0, 200, 1, 10).selectExpr("id AS k", "id % 7 AS r").write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (k)")
        yield "t"


def _status(lab: Lab) -> Status:
    rows = lab.sql("SELECT * FROM sieve_status()")
    found = {(counter, reason): value for counter, reason, value in rows}
    assert len(found) == len(rows)
    return found


def _grown(before: Status, after: Status) -> dict[str, int]:
    """The increase of each counter, except times and memory, which vary between runs.

    The first scan with an unsupported function adds a counter for this function.
    """
    assert {counter for counter, _ in after.keys() - before.keys()} <= {"unsupported_function"}
    return {
        reason or counter: after[counter, reason] - before.get((counter, reason), 0)
        for counter, reason in after
        if after[counter, reason] != before.get((counter, reason), 0)
        and not counter.startswith(("prune_ms", "cache_"))
    }


def test_a_pruned_scan_is_counted(lab: Lab, table: str) -> None:
    """If a scan reads one of ten files, counters add one scan, one call and nine skipped files."""
    (told,) = lab.explain(f"SELECT * FROM {table} WHERE k = 26")
    before = _status(lab)
    assert lab.run(f"SELECT * FROM {table} WHERE k = 26").files == 1
    assert _grown(before, _status(lab)) == {
        "scans": 1,
        "scans_pruned": 1,
        "files_listed": 10,
        "files_skipped": 9,
        "ranges_listed": 10,
        "ranges_skipped": 9,
        "bytes_skipped": told["bytes_total"] - told["bytes_read"],
        "prune_calls": 1,
    }


def test_reasons_are_counted_by_scan(lab: Lab, table: str) -> None:
    """Each scan adds one to its reason's counter: no index, changed reader, or new file."""
    before = _status(lab)
    lab.run(f"SELECT * FROM {table}")
    lab.run(f"SELECT * FROM {table} WHERE r = 3")
    lab.run(f"SELECT * FROM {table} WHERE coalesce(k, 0) % 2 = 1")
    with lab.setting("spark.sql.parquet.enableVectorizedReader", "false"):
        lab.run(f"SELECT * FROM {table} WHERE k = 25")
    lab.sql("CREATE TABLE more USING parquet AS SELECT * FROM t")
    lab.sql("CREATE SIEVE INDEX ON more (k)")
    lab.sql("INSERT INTO more SELECT 1, 1")
    mid = _status(lab)
    assert lab.run("SELECT * FROM more WHERE k = -1").files == 1
    files = mid["files_listed", None] - before["files_listed", None]
    assert _grown(before, mid) == {
        "scans": 5,
        "files_listed": files,
        "ranges_listed": files,
        "no-predicate": 3,
        "unsupported-predicate": 1,
        "%": 1,
        "reader-changed": 1,
        "prune_calls": 3,
        "statements": 1,
    }
    assert files == 50
    new = _grown(mid, _status(lab))
    assert (new["scans_pruned"], new["new-file"]) == (1, 1)


def test_status_counts_audits_explains_and_cached_bytes(lab: Lab, table: str) -> None:
    """`sieve_status` counts audited files and the bytes of caches.

    `sieve_status` counts an EXPLAIN only as a statement.
    """
    lab.run(f"SELECT * FROM {table} WHERE k = 25")
    before = _status(lab)
    with lab.setting("spark.sieve.audit.sample", "1.0"):
        lab.run(f"SELECT * FROM {table} WHERE k = 25")
    lab.explain(f"SELECT * FROM {table} WHERE k = 25")
    with lab.setting("spark.sieve.cache.bytes", "123MB"):
        lab.run(f"SELECT * FROM {table} WHERE r = 1")
        after = _status(lab)
    appended = _grown(before, after)
    assert (appended["scans_audited"], appended["files_audited"]) == (1, 9)
    assert (appended["statements"], appended["scans"], appended["prune_calls"]) == (1, 2, 3)
    assert 0 < after["cache_bytes", None] <= after["cache_bytes_bound", None] == 123 << 20
    assert after["front_end_starts", None] >= 1
    assert 0 < after["prune_ms_greatest", None] <= after["prune_ms", None]


def test_sieve_status_refuses_an_argument(lab: Lab) -> None:
    """A call with an argument fails, and the error names the argument."""
    with pytest.raises(Exception, match=r"SIEVE_INVALID_ARGUMENT.*sieve_status\(\) takes 0"):
        lab.sql("SELECT * FROM sieve_status('t')")
