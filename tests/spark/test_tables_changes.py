"""If tables change after the build, queries lose no row, and REFRESH updates the index."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from spark_session import Lab


def test_appended_files_are_read_until_refresh(lab: Lab) -> None:
    """Until REFRESH indexes new files, queries read them, and EXPLAIN shows the reason new-file."""
    with lab.database("append"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("INSERT INTO t SELECT id FROM range(80, 100, 1, 2)")
        assert lab.check("SELECT * FROM t WHERE id = 85", exactly=2).rows == {"(85,)": 1}
        lab.check("SELECT * FROM t WHERE id = 5", exactly=3)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 5")
        assert (scan["files_total"], scan["files_read"], scan["reasons"]) == (10, 3, "new-file: 2")
        (scan,) = lab.explain("SELECT * FROM t WHERE id >= 0")
        assert (scan["files_total"], scan["files_read"], scan["reasons"]) == (10, 10, "new-file: 2")
        assert lab.facts()["files new"] == "2"
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][:3] == ("id_sieve", 2, 10)
        lab.check("SELECT * FROM t WHERE id = 85", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert lab.explain("SELECT * FROM t WHERE id = 5")[0]["reasons"] is None


def test_refresh_of_an_unchanged_table_makes_no_version(lab: Lab) -> None:
    """If no file has changed, REFRESH creates no version, but REFRESH FULL always creates one."""
    with lab.database("unchanged"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 20, 1, 2)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert lab.sql("REFRESH SIEVE INDEX id_sieve ON t")[0][1] == 1
        assert lab.sql("REFRESH SIEVE INDEX ON t (id) FULL")[0][1] == 2
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


@pytest.mark.long
def test_an_overwritten_table_is_read_until_refresh(lab: Lab) -> None:
    """After INSERT OVERWRITE, queries read all files; REFRESH removes the old files' entries."""
    with lab.database("overwrite"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("INSERT OVERWRITE t SELECT id + 1000 FROM range(0, 40, 1, 4)")
        assert not lab.check("SELECT * FROM t WHERE id = 5", exactly=4).rows
        assert lab.check("SELECT * FROM t WHERE id = 1005", exactly=4).rows == {"(1005,)": 1}
        told = lab.facts()
        assert (told["files indexed"], told["files new"], told["files gone"]) == ("0", "4", "8")
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][:3] == ("id_sieve", 2, 4)
        lab.check("SELECT * FROM t WHERE id = 1005", exactly=1)
        assert lab.facts()["files gone"] == "0"
        lab.sql("TRUNCATE TABLE t")
        assert not lab.check("SELECT * FROM t WHERE id = 1005", exactly=0).rows


def test_a_file_replaced_in_place_is_read(lab: Lab) -> None:
    """After REFRESH TABLE, queries read a file with changed bytes (reason: changed-file)."""
    with lab.database("replaced"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE TABLE other USING parquet AS SELECT id FROM range(500, 600, 1, 1)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        target = lab.files()[3]
        (target.parent / f".{target.name}.crc").unlink()
        shutil.copyfile(lab.files("other")[0], target)
        lab.sql("REFRESH TABLE t")
        assert lab.check("SELECT * FROM t WHERE id = 555", exactly=1).rows == {"(555,)": 1}
        lab.check("SELECT * FROM t WHERE id = 5", exactly=2)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 555")
        assert scan["reasons"] == "changed-file: 1"
        assert lab.facts()["files changed"] == "1"
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 555", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


def test_a_file_of_another_length_and_the_old_time_is_read(lab: Lab) -> None:
    """A file of another length counts as changed, even if the modification time is the same."""
    with lab.database("put_back"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE TABLE other USING parquet AS SELECT id FROM range(500, 600, 1, 1)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        target = lab.files()[3]
        before = target.stat()
        (target.parent / f".{target.name}.crc").unlink()
        shutil.copyfile(lab.files("other")[0], target)
        os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert target.stat().st_mtime_ns == before.st_mtime_ns
        assert target.stat().st_size != before.st_size
        lab.sql("REFRESH TABLE t")
        assert lab.check("SELECT * FROM t WHERE id = 555", exactly=1).rows == {"(555,)": 1}
        lab.check("SELECT * FROM t WHERE id = 5", exactly=2)
        assert lab.explain("SELECT * FROM t WHERE id = 555")[0]["reasons"] == "changed-file: 1"


def test_a_touched_file_is_read(lab: Lab) -> None:
    """If a file's modification time changes, the file counts as changed."""
    with lab.database("touched"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        os.utime(lab.files()[0], (1_000_000_000, 1_000_000_000))
        lab.sql("REFRESH TABLE t")
        lab.check("SELECT * FROM t WHERE id = 35", exactly=2)


def test_a_deleted_file_is_forgotten_by_refresh(lab: Lab) -> None:
    """After REFRESH TABLE, a query omits the rows of a deleted file, and does not fail."""
    with lab.database("deleted"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.files()[2].unlink()
        lab.sql("REFRESH TABLE t")
        lab.check("SELECT * FROM t WHERE id = 25", exactly=0)
        lab.check("SELECT * FROM t WHERE id = 35", exactly=1)
        assert lab.facts()["files gone"] == "1"
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][:3] == ("id_sieve", 2, 3)
        assert lab.facts()["files gone"] == "0"


@pytest.mark.long
def test_added_column_keeps_other_indexes_in_use(lab: Lab) -> None:
    """After ADD COLUMN, queries use the index as before, and REFRESH reads only new files."""
    with lab.database("columns"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("ALTER TABLE t ADD COLUMN extra INT")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert lab.facts()["reader"] == "unchanged"
        lab.sql("INSERT INTO t SELECT id, CAST(id AS INT) FROM range(40, 60, 1, 2)")
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.facts()["reader"] == "unchanged"
        lab.sql("CREATE SIEVE INDEX ON t (extra)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        lab.check("SELECT * FROM t WHERE extra = 45", exactly=1)
        lab.check("SELECT * FROM t WHERE extra IS NULL", exactly=4)
        lab.check("SELECT * FROM t WHERE extra <=> NULL AND id = 45", exactly=0)


def test_a_column_added_with_a_default_reads_as_the_default(lab: Lab) -> None:
    """In files older than a column, the index and queries read the column's default value."""
    with lab.database("defaults"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("ALTER TABLE t ADD COLUMN kind INT DEFAULT 7")
        lab.sql("INSERT INTO t SELECT id, 8 FROM range(40, 60, 1, 2)")
        lab.sql("CREATE SIEVE INDEX ON t (kind)")
        assert len(lab.check("SELECT * FROM t WHERE kind = 7", exactly=4).rows) == 40
        lab.check("SELECT * FROM t WHERE kind = 8", exactly=2)
        lab.check("SELECT * FROM t WHERE kind IS NULL", exactly=0)
        # A new default applies only to new rows; in older files, queries still read the former
        # default.
        lab.sql("ALTER TABLE t ALTER COLUMN kind SET DEFAULT 9")
        assert len(lab.check("SELECT * FROM t WHERE kind = 7").rows) == 40
        lab.check("SELECT * FROM t WHERE kind = 9")


def test_struct_with_a_default_is_read_whole(lab: Lab) -> None:
    """A read of one field can miss a struct's default value, so builds read whole structs."""
    with lab.database("struct_defaults"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql(
            "ALTER TABLE t ADD COLUMN s STRUCT<a: INT, b: INT> DEFAULT named_struct('a', 7, 'b', 8)"
        )
        lab.sql("INSERT INTO t SELECT id, named_struct('a', 9, 'b', 9) FROM range(40, 50, 1, 1)")
        lab.sql("CREATE SIEVE INDEX ON t (id, s.a)")
        for columns in ("*", "s.a", "id", "s.b", "s"):
            for condition in ("s.a = 7", "s.a = 9", "s.a IS NULL", "s.a <> 7", "id = 3"):
                lab.check(f"SELECT {columns} FROM t WHERE {condition}")


def test_struct_fields_added_later(lab: Lab) -> None:
    """A field of a struct can be indexed; in files without the field, its value is NULL."""
    with lab.database("structs"):
        lab.sql(
            "CREATE TABLE t USING parquet AS "
            "SELECT id, named_struct('a', id, 'deep', "
            "named_struct('b', CONCAT('v', LPAD(id, 4, '0')))) AS s "
            "FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (s.a, s.deep.b) OPTIONS (error = 1)")
        lab.check("SELECT s FROM t WHERE s.a = 15", exactly=1)
        lab.check("SELECT id FROM t WHERE s.deep.b = 'v0015' AND id > 0", exactly=1)
        lab.check("SELECT id FROM t WHERE s.a = 15 OR s.deep.b = 'v0035'", exactly=2)
        lab.check("SELECT count(*) FROM t WHERE s.a IS NULL", exactly=0)
        assert [row[2:4] for row in lab.sql("SHOW SIEVE INDEXES ON t")] == [
            ("s_a_sieve", "s.a"), ("s_deep_b_sieve", "s.deep.b"),
        ]  # fmt: skip


def test_null_structs_have_null_fields(lab: Lab) -> None:
    """If a row's struct is NULL, an index on a field of the struct counts the row as NULL."""
    with lab.database("null_structs"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, "
            "IF(id BETWEEN 10 AND 12, NULL, named_struct('a', IF(id = 25, NULL, id))) AS s "
            "FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (s.a)")
        lab.check("SELECT id FROM t WHERE s.a IS NULL", exactly=2)
        lab.check("SELECT id FROM t WHERE s IS NULL")
        lab.check("SELECT id FROM t WHERE NOT (s.a <=> 35)", exactly=4)
        lab.check("SELECT id FROM t WHERE s.a <=> 35", exactly=1)


def test_file_with_a_future_time_is_always_read(lab: Lab) -> None:
    """CREATE omits a file whose modification time is in the future, as it could hide changes."""
    with lab.database("unsettled"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        tomorrow = time.time() + 86_400
        os.utime(lab.files()[3], (tomorrow, tomorrow))
        lab.sql("REFRESH TABLE t")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=2)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 5")
        assert scan["reasons"] == "unsettled-file: 1"
        assert lab.facts()["files new"] == "1"
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1] == 1
        os.utime(lab.files()[3], (1_000_000_000, 1_000_000_000))
        lab.sql("REFRESH TABLE t")
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1] == 2
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
