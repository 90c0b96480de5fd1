"""REFRESH reads only new files.

After many refreshes, an index skips as many files as a newly built one.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from spark_session import Lab

ROWS = 100


def append(lab: Lab, first: int, files: int = 1) -> None:
    """Appends files with a hundred keys each; the first key is given."""
    last = first + files * ROWS
    lab.sql(f"INSERT INTO t SELECT {COLUMNS} FROM range({first}, {last}, 1, {files})")


COLUMNS = "id, CONCAT('key-', LPAD(id * 7919 % 100000, 6, '0')) AS word"


def create(lab: Lab, files: int) -> None:
    """Creates a table of numbers and strings, with an index on each column."""
    last = files * ROWS
    lab.sql(f"CREATE TABLE t USING parquet AS SELECT {COLUMNS} FROM range(0, {last}, 1, {files})")
    lab.sql("CREATE SIEVE INDEX ON t (id, word)")


@contextmanager
def reading(lab: Lab) -> Iterator[list[int]]:
    """Yields a list. After the block, the list contains the number of records that its tasks read.

    Only stages that start in the block count. A total over all stages could shrink, because Spark
    forgets old stages.
    """
    before = max((stage.stageId() for stage in stages(lab)), default=-1)
    told: list[int] = []
    yield told
    told.append(sum(s.inputRecords() for s in stages(lab) if s.stageId() > before))


def stages(lab: Lab) -> list[Any]:
    """Spark's records of finished stages, after listeners have received all events."""
    context = lab.spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    none = lab.spark._jvm.java.util.ArrayList()
    kept = store.stageList(none, False, False, getattr(store, "stageList$default$4")(), none)
    return [kept.apply(k) for k in range(kept.size())]


def refreshed(lab: Lab) -> None:
    """Refreshes the index, and asserts that the index then has exactly the table's files."""
    lab.sql("REFRESH TABLE t")
    lab.sql("REFRESH SIEVE INDEX ON t")
    told = lab.facts()
    assert (told["files new"], told["files changed"], told["files gone"]) == ("0", "0", "0")


def test_refresh_reads_only_new_files(lab: Lab) -> None:
    """According to Spark's count of records, REFRESH reads only the new files.

    After REFRESH, the index version has two runs, each with other files.
    """
    with lab.database("delta"):
        create(lab, 20)
        append(lab, 2000)
        with reading(lab) as told:
            assert [row[1:3] for row in lab.sql("REFRESH SIEVE INDEX ON t")] == [(2, 21), (2, 21)]
        # There are two indexes. For each index, a build reads the rows three times (to count,
        # sample and index), and reads the run once.
        assert 2 * ROWS <= told[0] < 8 * ROWS
        assert lab.facts()["runs"] == "2"
        assert lab.facts()["rows"] == "2100"
        lab.check("SELECT * FROM t WHERE id = 2050", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 1050", exactly=1)
        lab.check("SELECT * FROM t WHERE id BETWEEN 1950 AND 2049", exactly=2)
        lab.check(f"SELECT * FROM t WHERE word = 'key-{2050 * 7919 % 100000:06}'", at_most=2)
        lab.check("SELECT * FROM t WHERE word = 'absent'", exactly=0)


def test_refresh_after_a_loss_reads_nothing(lab: Lab) -> None:
    """After files are deleted, REFRESH removes the files from the index, and reads no file."""
    with lab.database("lost"):
        create(lab, 10)
        lab.files()[4].unlink()
        lab.sql("REFRESH TABLE t")
        with reading(lab) as told:
            assert lab.sql("REFRESH SIEVE INDEX id_sieve ON t")[0][1:3] == (2, 9)
        assert told == [0]
        lab.check("SELECT * FROM t WHERE id = 350", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 450", exactly=0)


def test_refresh_rebuilds_a_base_with_mostly_lost_files(lab: Lab) -> None:
    """If most files of the first run are gone, REFRESH reads all files and builds one new run."""
    with lab.database("compaction"):
        create(lab, 2)
        append(lab, 200)
        refreshed(lab)
        assert lab.facts()["runs"] == "2"
        append(lab, 300, files=2)
        refreshed(lab)
        assert lab.facts()["runs"] == "1"
        lab.check("SELECT * FROM t WHERE id = 250 OR id = 50", exactly=2)


def test_index_works_after_a_table_is_filled_again(lab: Lab) -> None:
    """The index of an emptied table has no rows; after new rows, the index works again."""
    with lab.database("emptied"):
        lab.sql("CREATE TABLE t (id BIGINT, word STRING) USING parquet")
        lab.sql("CREATE SIEVE INDEX ON t (id, word)")
        append(lab, 0, files=3)
        refreshed(lab)
        lab.check("SELECT * FROM t WHERE id = 150", exactly=1)
        lab.sql("TRUNCATE TABLE t")
        refreshed(lab)
        assert lab.facts()["rows"] == "0"
        lab.check("SELECT * FROM t WHERE id = 150", exactly=0)
        append(lab, 500)
        refreshed(lab)
        lab.check("SELECT * FROM t WHERE word > 'key-'", exactly=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", [3])
def test_a_long_history_loses_nothing(lab: Lab, seed: int) -> None:
    """After random appends, deletions, overwrites and replacements, queries lose no row."""
    chance = random.Random(seed)
    with lab.database("history"):
        create(lab, 6)
        for step in range(10):
            files = lab.files()
            match chance.choice(["append", "append", "append", "lose", "replace", "overwrite"]):
                case "append":
                    append(lab, chance.randrange(5000), chance.randint(1, 2))
                case "lose":
                    chance.choice(files).unlink()
                case "replace":
                    one, other = chance.choice(files), chance.choice(files)
                    (one.parent / f".{one.name}.crc").unlink(missing_ok=True)
                    bytes_of_other = other.read_bytes()
                    one.write_bytes(bytes_of_other)
                    os.utime(one, (1_000_000_000 + step, 1_000_000_000 + step))
                case "overwrite" if step % 3 == 0:
                    first = chance.randrange(5000)
                    rows = f"range({first}, {first + 300}, 1, 3)"
                    lab.sql(f"INSERT OVERWRITE t SELECT {COLUMNS} FROM {rows}")
            lab.sql("REFRESH TABLE t")
            if chance.random() < 0.6:
                refreshed(lab)
            for _ in range(2):
                key = chance.randrange(5000)
                lab.check(f"SELECT * FROM t WHERE id = {key}")
                lab.check(f"SELECT * FROM t WHERE id BETWEEN {key} AND {key + 120}")
                lab.check(f"SELECT * FROM t WHERE word = 'key-{key * 7919 % 100000:06}'")
                lab.check(f"SELECT id FROM t WHERE word < 'key-{key:06}' AND id > {key}")


def test_an_unreadable_new_file_changes_nothing(lab: Lab) -> None:
    """If REFRESH cannot read a new file, it makes no version, and the error names the file."""
    with lab.database("unreadable"):
        create(lab, 4)
        append(lab, 400)
        broken = max(lab.files(), key=lambda path: path.stat().st_mtime)
        (broken.parent / f".{broken.name}.crc").unlink()
        kept = broken.with_name("kept")
        shutil.copyfile(broken, kept)
        broken.write_bytes(b"PAR1 no more PAR1")
        lab.sql("REFRESH TABLE t")
        with pytest.raises(Exception, match=broken.name):
            lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.facts()["version"] == "1"
        folder = Path(lab.facts()["path"].removeprefix("file:"))
        assert len(list((folder / "runs").iterdir())) == 1
        assert len(list((folder / "locations").glob("*.parquet"))) == 1
        kept.rename(broken)
        refreshed(lab)
        lab.check("SELECT * FROM t WHERE id = 450", exactly=1)
