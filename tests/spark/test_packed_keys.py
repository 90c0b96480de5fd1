"""Tests joins with more than 10,000 keys.

The scan looks up every key in the index, not ranges of keys.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Answer, Lab

FILES, ROWS = 12, 10_000
ALWAYS = {"spark.sieve.join.pruning": "always", "spark.sieve.strict": "true"}
FETCHED = ALWAYS | {"spark.sql.autoBroadcastJoinThreshold": "-1"}
BROADCAST = ALWAYS | {"spark.sql.autoBroadcastJoinThreshold": "1g"}
TOO_MANY = "SELECT value FROM sieve_status() WHERE reason = 'keys-too-many'"


@pytest.fixture(scope="module")
def many(lab: Lab) -> Iterator[Lab]:
    """A table of random keys in 12 files, and tables with the keys of two and of five files.

    The tables with keys also have a row of NULLs. The table `new` has keys of two files and keys
    that are in no file.
    """
    with lab.database("packed"):
        key = "pmod(xxhash64(id), 1000000000000000)"
        rows = (
            f"SELECT {key} AS k, CAST((id * 1103515245 + 12345) % 2147483648 AS INT) AS i, "
            f"timestamp_micros({key}) AS t, sha1(string(id)) AS s, unhex(sha1(string(id))) AS b, "
            f"CAST({key} AS DECIMAL(30, 2)) AS d, id % 700 AS g, "
            f"id DIV 700 AS h, id DIV {ROWS} AS part, id"
        )
        lab.sql(f"CREATE TABLE f USING parquet AS {rows} FROM range(0, {FILES * ROWS}, 1, {FILES})")
        # For each unique key of the table, a map finds exactly one file.
        for columns in ("k, i, t, s, b, d", "(g, h)"):
            lab.sql(f"CREATE SIEVE INDEX ON f ({columns}) OPTIONS (shape = 'map')")
        for name, parts in (("two", "3, 7"), ("five", "1, 4, 8, 9, 11")):
            lab.sql(
                f"CREATE TABLE {name} USING parquet AS SELECT /*+ COALESCE(1) */ * FROM "
                f"(SELECT * FROM f WHERE part IN ({parts}) UNION ALL SELECT "
                "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL)"
            )
        lab.sql(
            "CREATE TABLE new USING parquet AS SELECT /*+ COALESCE(1) */ * FROM "
            f"(SELECT * FROM two UNION ALL {rows} FROM range(-5000, 0))"
        )
        yield lab


def counted(lab: Lab, on: str, keys: str, files: int) -> Answer:
    """Checks a join of `f` with a table of keys, and the number of files read of both tables."""
    query = (
        f"SELECT count(*), sum(f.id) FROM f JOIN {keys} d ON {on} WHERE d.part IS NOT NULL "
        "AND d.part + 1 > 0"
    )
    ((before,),) = lab.sql(TOO_MANY)
    answer = lab.check(query, exactly=files)
    assert lab.sql(TOO_MANY) == [(before,)]
    return answer


PAIR = "f.g = d.g AND f.h = d.h"
OFTEN = {
    ("broadcast", "f.k = d.k"), ("broadcast", "f.s = d.s"), ("broadcast", PAIR),
    ("fetched", "f.i = d.i"), ("fetched", "f.b = d.b"), ("fetched", PAIR),
}  # fmt: skip
"""`make test` runs these joins. Other joins in this module differ only in the type of the key."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mode", "on"),
    [
        pytest.param(mode, on, marks=() if (mode, on) in OFTEN else pytest.mark.long)
        for mode in ("broadcast", "fetched")
        for on in ("f.k = d.k", "f.i = d.i", "f.t = d.t", "f.s = d.s", "f.b = d.b", PAIR)
    ],
)
def test_join_with_many_keys_reads_the_files_of_the_keys(many: Lab, mode: str, on: str) -> None:
    """A join with 20,000 keys reads only the files that contain a key, for each type of key."""
    conf = FETCHED if mode == "fetched" else BROADCAST
    # A job that fetches the keys reads the file of keys a second time.
    keys = 2 if mode == "fetched" else 1
    with many.settings(conf):
        counted(many, on, "two", keys + 2)


def test_keys_that_are_too_large_for_the_driver_do_not_fail_the_query(many: Lab) -> None:
    """If the keys exceed `spark.driver.maxResultSize`, Spark aborts the job that reads the keys."""
    failed = "SELECT value FROM sieve_status() WHERE reason = 'keys-failed'"
    query = "SELECT count(*), sum(f.id) FROM f JOIN two d ON f.k = d.k WHERE d.part + 1 > 0"
    conf = many.spark.sparkContext._jsc.sc().conf()
    with many.setting("spark.sieve.enabled", "false"):
        expected = many.run(query).rows
    ((before,),) = many.sql(failed)
    with many.settings(FETCHED):
        conf.set("spark.driver.maxResultSize", "100k")
        try:
            assert many.run(query).rows == expected
        finally:
            conf.remove("spark.driver.maxResultSize")
    assert many.sql(failed) == [(before + 1,)]


def test_audit_evaluates_packed_keys(many: Lab) -> None:
    """The audit evaluates the keys on the rows of skipped files, and finds no match."""
    count = "SELECT value FROM sieve_status() WHERE counter = 'files_audited'"
    ((before,),) = many.sql(count)
    with many.settings(BROADCAST | {"spark.sieve.audit.sample": "1"}):
        counted(many, "f.s = d.s", "two", 1 + 2)
    assert many.sql(count) == [(before + FILES - 2,)]


def test_only_a_complete_checkpoint_supplies_keys(many: Lab) -> None:
    """A checkpoint supplies keys of a shuffled join once Spark has stored all its rows.

    Until Spark has stored all rows, it could compute them again, and could get different rows.
    """
    frame = many.spark.sql("SELECT s FROM two WHERE part IS NOT NULL")
    with many.settings(FETCHED | {"spark.sieve.strict": "false"}):
        for eager, files in ((True, 2), (False, FILES)):
            frame.localCheckpoint(eager=eager).createOrReplaceTempView("stored")
            answer = many.run("SELECT count(*) FROM f JOIN stored d ON f.s = d.s")
            assert (answer.rows, answer.files) == ({"(20000,)": 1}, files)


def test_keys_of_a_wider_type(many: Lab) -> None:
    """BIGINT keys that exceed the INT type of the indexed column match no row."""
    wider = "(SELECT CAST(i AS BIGINT) + IF(id % 2 = 0, 0, 1L << 32) AS i, part FROM two)"
    with many.settings(BROADCAST):
        counted(many, "f.i = d.i", wider, 1 + 2)


@pytest.mark.parametrize("on", ["f.k = d.k", "f.s = d.s"])
def test_long_request_arrives_in_pieces(many: Lab, on: str) -> None:
    """A request with 50,000 keys is longer than the maximum length of one piece."""
    with many.settings(BROADCAST):
        counted(many, on, "five", 1 + 5)


def test_keys_of_a_type_without_packed_keys_become_ranges(many: Lab) -> None:
    """Decimals have no packed keys, so the scan looks up key ranges, which match all files."""
    ((before,),) = many.sql(TOO_MANY)
    query = "SELECT count(*), sum(f.id) FROM f JOIN two d ON f.d = d.d WHERE d.part + 1 > 0"
    with many.settings(BROADCAST):
        many.check(query, exactly=FILES + 1)
    assert many.sql(TOO_MANY) == [(before + 1,)]


def test_many_keys_of_a_table_of_unknown_size_become_ranges(many: Lab) -> None:
    """If Spark does not know a partitioned table's size, the scan looks up ranges of keys."""
    many.sql("CREATE TABLE parts USING parquet PARTITIONED BY (p) AS SELECT k, id, 1 AS p FROM two")
    many.sql("CREATE SIEVE INDEX ON parts (k)")
    ((before,),) = many.sql(TOO_MANY)
    with many.settings({"spark.sql.autoBroadcastJoinThreshold": "1g"}):
        many.check(
            "SELECT count(*) FROM parts JOIN (SELECT k FROM two WHERE part + 1 > 0) d "
            "ON parts.k = d.k"
        )
    assert many.sql(TOO_MANY) == [(before + 1,)]


def test_more_keys_than_the_table_is_worth_become_ranges(many: Lab) -> None:
    """If a table has less than 4096 bytes for each key, the scan looks up ranges of keys."""
    ((before,),) = many.sql(TOO_MANY)
    query = "SELECT count(*), sum(f.id) FROM f JOIN two d ON f.k = d.k WHERE d.part + 1 > 0"
    with many.settings({"spark.sql.autoBroadcastJoinThreshold": "1g"}):
        many.check(query, exactly=FILES + 1)
    assert many.sql(TOO_MANY) == [(before + 1,)]


@pytest.mark.parametrize("on", ["f.k = d.k", "f.s = d.s"])
def test_outer_join_returns_keys_without_a_match(many: Lab, on: str) -> None:
    """An outer join with many keys also returns the keys without a match.

    For an absent key, an index can return a wrong file by chance, so the scan may read all files.
    """
    with many.settings(FETCHED):
        for keys, files in (("two", 2 + 2), ("new", 2 + FILES)):
            many.check(
                f"SELECT count(*), count(f.id), sum(d.id) FROM {keys} d LEFT JOIN f ON {on}",
                at_most=files,
            )
