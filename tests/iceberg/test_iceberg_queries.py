"""Queries of Iceberg tables return the right rows, and skip files that cannot contain them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from py4j.protocol import Py4JJavaError
from spark_session import Lab

pytestmark = pytest.mark.iceberg


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks every skipped file."""
    with namespace(lab, "spark_catalog.queries"), lab.settings(AUDITED):
        yield


def snapshot(lab: Lab) -> int:
    """The id of the current snapshot of `t`."""
    ((found,),) = lab.sql(
        "SELECT snapshot_id FROM spark_catalog.queries.t.refs WHERE name = 'main'"
    )
    return int(found)


def test_constants_pick_files(lab: Lab) -> None:
    """Queries for a value, a list or a range read only the files that can contain the values."""
    create(lab)
    insert(lab, files=24)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE id IN (3, 97)", exactly=2)
    lab.check("SELECT * FROM t WHERE id BETWEEN 18 AND 33", exactly=3)
    lab.check("SELECT * FROM t WHERE id = 1000", exactly=0)
    lab.check("SELECT count(*) FROM t WHERE v = 'v3'", exactly=24)
    lab.check("SELECT _pos, _spec_id, id FROM t WHERE id = 42", exactly=1)
    lab.check("SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.id = 42 AND b.v = 'v0'",
              exactly=2)  # fmt: skip
    (scan,) = lab.explain("SELECT * FROM t WHERE id = 42")
    assert (scan["indexes"], scan["files_total"], scan["files_read"]) == ("id_sieve@1", 24, 1)
    kept = lab.sql("SELECT kept, count(*) FROM sieve_files('t', 'id = 42') GROUP BY kept")
    assert sorted(kept) == [(False, 23), (True, 1)]


def test_skipped_files_are_not_opened(lab: Lab) -> None:
    """A query opens no skipped file. For the one remaining file, Spark runs only one task."""
    create(lab, read_split_open__file__cost=1 << 27)
    insert(lab, files=8)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    files = lab.sql("SELECT DISTINCT _file FROM t WHERE id <> 42 AND id NOT BETWEEN 40 AND 49")
    paths = [Path(path.removeprefix("file:")) for (path,) in files]
    assert len(paths) == 7
    with lab.setting("spark.sieve.audit.sample", "0"):
        for path in paths:
            path.rename(f"{path}.away")
        try:
            frame = lab.spark.sql("SELECT id FROM t WHERE id = 42")
            assert frame.collect() == [(42,)]
            assert frame.rdd.getNumPartitions() == 1
            with (
                lab.setting("spark.sieve.enabled", "false"),
                pytest.raises(Py4JJavaError, match="NotFoundException"),
            ):
                lab.sql("SELECT id FROM t WHERE id = 42")
        finally:
            for path in paths:
                Path(f"{path}.away").rename(path)


def test_new_files_are_read_until_a_refresh(lab: Lab) -> None:
    """After an INSERT or a compaction, queries read the new files until REFRESH indexes them."""
    create(lab)
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("INSERT INTO t VALUES (42, 'new')")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=2)
    assert lab.facts()["files new"] == "1"
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
    assert row[1:3] == (2, 11)
    lab.check("SELECT * FROM t WHERE id = 43", exactly=1)
    lab.sql("CALL spark_catalog.system.rewrite_data_files(table => 'queries.t')")
    lab.check("SELECT * FROM t WHERE id = -1", exactly=1)
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
    assert row[1:3] == (3, 1)
    lab.check("SELECT * FROM t WHERE id = -1", exactly=0)
    assert lab.sql("CHECK SIEVE INDEX ON t")[0][2] == "ok"


def test_sorted_rewrites(lab: Lab) -> None:
    """Iceberg's procedures find Iceberg's parser behind Sieve's, and can parse sort orders."""
    create(lab)
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    for order in ("zorder(id, v)", "v DESC NULLS LAST, id"):
        ((rewritten, *_),) = lab.sql(
            "CALL spark_catalog.system.rewrite_data_files(table => 'queries.t', strategy => 'sort',"
            f" sort_order => '{order}', options => map('rewrite-all', 'true'))"
        )
        assert rewritten > 0
    lab.sql("ALTER TABLE t WRITE ORDERED BY v DESC, id")
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE id = -1", exactly=0)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_deletes_make_no_index_stale(lab: Lab, version: int, mode: str) -> None:
    """Queries return no deleted rows, and skip files with position deletes or deletion vectors."""
    create(lab, format__version=version, write_delete_mode=mode, write_update_mode=mode,
           write_merge_mode=mode)  # fmt: skip
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("DELETE FROM t WHERE id % 5 = 2")
    # A copy-on-write DELETE replaces all files by one new file, which the index does not contain.
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 0
    assert lab.check("SELECT * FROM t WHERE id IN (3, 7, 96)").rows.total() == 2
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE id IN (3, 7, 96)", at_most=2)
    lab.sql("UPDATE t SET v = 'x' WHERE id = 43")
    lab.sql("MERGE INTO t USING (SELECT 44 id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert lab.check("SELECT * FROM t WHERE id IN (43, 44)").rows.total() == 1
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE id IN (43, 44)", at_most=2)
    assert lab.sql("CHECK SIEVE INDEX ON t")[0][2] == "ok"
    assert lab.check("SELECT count(*), sum(id) FROM t").rows


def test_one_version_serves_every_snapshot(lab: Lab) -> None:
    """Queries of snapshots, branches and tags use the index, even after a rollback."""
    create(lab)
    insert(lab)
    first = snapshot(lab)
    lab.sql("ALTER TABLE t CREATE TAG begin")
    insert(lab, start=100)
    lab.sql("ALTER TABLE t CREATE BRANCH side")
    lab.sql("INSERT INTO spark_catalog.queries.t.branch_side VALUES (7, 'side')")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    for of in (
        f"t VERSION AS OF {first}",
        "t VERSION AS OF 'begin'",
        "spark_catalog.queries.t.tag_begin",
    ):
        lab.check(f"SELECT * FROM {of} WHERE id = 42", exactly=1)
        lab.check(f"SELECT * FROM {of} WHERE id = 142", exactly=0)
    for of in ("t VERSION AS OF 'side'", "spark_catalog.queries.t.branch_side"):
        # The index does not contain the branch's new file, so queries of the branch read this file.
        assert lab.check(f"SELECT * FROM {of} WHERE id = 7", exactly=2).rows.total() == 2
    ((at,),) = lab.sql(
        "SELECT cast(committed_at AS STRING) FROM spark_catalog.queries.t.snapshots "
        f"WHERE snapshot_id = {first}"
    )
    lab.check(f"SELECT * FROM t TIMESTAMP AS OF '{at}' WHERE id = 42", exactly=1)
    lab.sql("DELETE FROM t WHERE id < 50")
    lab.sql("REFRESH SIEVE INDEX ON t")
    # The index version from before the refresh still contains the files of the first snapshot.
    lab.check(f"SELECT * FROM t VERSION AS OF {first} WHERE id = 42", exactly=1)
    lab.sql(f"CALL spark_catalog.system.rollback_to_snapshot('queries.t', {first})")
    assert lab.check("SELECT * FROM t WHERE id = 142", at_most=5).rows.total() == 0
    assert lab.check("SELECT * FROM t WHERE id = 42", at_most=6).rows.total() == 1


def test_other_scans_do_not_use_the_index(lab: Lab) -> None:
    """Metadata tables, aggregates from metadata, and incremental reads do not use the index."""
    create(lab)
    insert(lab)
    first = snapshot(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    insert(lab, start=100)
    assert lab.sql("SELECT count(*) FROM t") == [(200,)]
    assert len(lab.sql("SELECT * FROM spark_catalog.queries.t.files WHERE record_count = 10")) == 20
    frame = lab.spark.read.format("iceberg").option("start-snapshot-id", first).load("queries.t")
    assert frame.where("id = 142").count() == 1
    assert frame.where("id = 42").count() == 0


def test_all_types(lab: Lab) -> None:
    """For each type, queries for a value, NaN or NULL read only the file with a match."""
    columns = {
        "b BOOLEAN": ("id = 42", "b"),
        "i INT": ("cast(id AS INT)", "i = 42"),
        "l BIGINT": ("id", "l = 42"),
        "f FLOAT": ("cast(id AS FLOAT)", "f = 42"),
        "d DOUBLE": ("if(id = 42, double('NaN'), id)", "d = double('NaN')"),
        "s DECIMAL(9, 2)": ("cast(id AS DECIMAL(9, 2))", "s = 42.00"),
        "w DECIMAL(30, 2)": ("cast(id AS DECIMAL(30, 2))", "w = 42.00"),
        "e DATE": ("date_add(date'2020-01-01', cast(id AS INT))", "e = date'2020-02-12'"),
        "t TIMESTAMP": ("timestamp_seconds(id)", "t = timestamp_seconds(42)"),
        "n TIMESTAMP_NTZ": ("cast(timestamp_seconds(id) AS TIMESTAMP_NTZ)",
                            "n = timestamp_ntz'1970-01-01 00:00:42'"),
        "x STRING": ("concat('a long text before ', id)", "x = 'a long text before 42'"),
        "y BINARY": ("cast(concat('y', id) AS BINARY)", "y = cast('y42' AS BINARY)"),
    }  # fmt: skip
    create(lab, columns=", ".join(columns))
    lab.sql(
        "INSERT INTO t SELECT /*+ REPARTITION_BY_RANGE(10, l) */ "
        + ", ".join(f"{value} {column.split()[0]}" for column, (value, _) in columns.items())
        + " FROM range(100)"
    )
    lab.sql(f"INSERT INTO t SELECT {', '.join(['NULL'] * len(columns))}")
    lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(name.split()[0] for name in columns)})")
    for column, (_, predicate) in columns.items():
        lab.check(f"SELECT * FROM t WHERE {predicate}", exactly=1)
        lab.check(f"SELECT * FROM t WHERE {column.split()[0]} IS NULL", exactly=1)
