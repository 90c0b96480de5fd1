"""If index files are damaged, missing or foreign, or properties are wrong, queries lose no row.

The errors of failed statements name a remedy.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import wait_until
from spark_session import INTERPRETED, Lab

from sieve.metadata.manifest import FORMAT

CUT = {"spark.sieve.range.bytes": "100", "parquet.block.row.count.limit": "3"}
"""Settings with which Sieve divides files of ten rows into ranges."""
CREATE = "CREATE SIEVE INDEX ON t (id) OPTIONS (granularity = 'range')"
FILES = 4
QUERY = "SELECT * FROM t WHERE id = 5"
ROWS = {"(5,)": 1}


@pytest.fixture
def small(lab: Lab) -> Iterator[Lab]:
    """A new table of four files, with an index. The index divides each file into several ranges.

    No scan has read the table yet.
    """
    with lab.settings(CUT | INTERPRETED), lab.database("damage"):
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, {FILES})")
        lab.sql(CREATE)
        assert "ranges read for a key that occurs" in lab.facts()
        yield lab


def root_of(lab: Lab) -> Path:
    """The root folder of the indexes of the current database."""
    ((database,),) = lab.sql("SELECT current_database()")
    facts = dict(row[:2] for row in lab.sql(f"DESCRIBE DATABASE {database}"))
    return Path(facts["Location"].removeprefix("file:")) / ".sieve"


def registration(lab: Lab, table: str = "t") -> tuple[str, str]:
    """The key and the value of the property that registers the table's only index."""
    ((key, value),) = (
        row for row in lab.sql(f"SHOW TBLPROPERTIES {table}") if row[0].startswith("sieve.index.")
    )
    return key, value


def fresh(lab: Lab) -> Lab:
    """A new session with the same current database."""
    ((database,),) = lab.sql("SELECT current_database()")
    session = Lab(lab.spark.newSession())
    session.sql(f"USE {database}")
    return session


def read_in_full(lab: Lab, reason: str, *, strict_fails: bool, table: str = "t") -> None:
    """Checks that a query reads all files for the given reason, and returns the right rows.

    If ``strict_fails`` is true, the query must fail under `spark.sieve.strict`.
    """
    query = QUERY.replace("FROM t", f"FROM {table}")
    with lab.setting("spark.sieve.strict", "false"):
        answer = lab.run(query)
        assert (answer.rows, answer.files) == (ROWS, FILES)
        assert lab.explain(query)[0]["reasons"] == f"{reason}: {FILES}"
    with lab.setting("spark.sieve.strict", "true"):
        if strict_fails:
            with pytest.raises(Exception, match=f"SIEVE_STRICT.*{reason}"):
                lab.run(query)
        else:
            assert lab.run(query) == answer


def cut(path: Path) -> None:
    """Removes the last third of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])


def flip(path: Path) -> None:
    """Flips one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def zeroed(path: Path) -> None:
    """Replaces a file's content by zeros of the same length."""
    path.write_bytes(bytes(path.stat().st_size))


def swap(path: Path) -> None:
    """Replaces a file by the corresponding file of another index."""
    kind = path.relative_to(path.parents[2 if path.parent.parent.name == "runs" else 1])
    other = next(
        p
        for folder in path.parents[len(kind.parts)].iterdir()
        for p in folder.rglob(f"{kind.parts[0]}/**/*{path.suffix}")
        if p != path and folder.name not in path.parts
    )
    shutil.copyfile(other, path)


def remove(path: Path) -> None:
    """Deletes a file."""
    path.unlink()


WHERE = {
    "manifest": "versions/1.json",
    "locations": "locations/*.parquet",
    "run": "runs/*/*.parquet",
}
LONG = pytest.mark.long
DAMAGE = [
    pytest.param("manifest", cut, marks=LONG),
    ("manifest", flip),
    pytest.param("manifest", swap, marks=LONG),
    pytest.param("manifest", remove, marks=LONG),
    pytest.param("locations", cut, marks=LONG),
    pytest.param("locations", swap, marks=LONG),
    pytest.param("locations", remove, marks=LONG),
    pytest.param("run", flip, marks=LONG),
    pytest.param("run", zeroed, marks=LONG),
    ("run", swap),
    pytest.param("run", remove, marks=LONG),
]


@pytest.mark.parametrize(("kind", "how"), DAMAGE)
def test_damaged_index_is_reported_and_repaired(
    small: Lab, kind: str, how: Callable[[Path], None]
) -> None:
    """Queries read all files and report why, until a damaged index file is repaired."""
    if how is swap:
        small.sql("CREATE TABLE u USING parquet AS SELECT id + 9 AS id FROM range(0, 40, 1, 4)")
        small.sql("CREATE SIEVE INDEX ON u (id)")
    uuid = json.loads(registration(small)[1])["uuid"]
    (path,) = (root_of(small) / uuid).glob(WHERE[kind])
    how(path)
    reason = "index-gone" if how is remove else "index-corrupt"
    read_in_full(small, reason, strict_fails=True)
    if kind == "manifest":
        state = "gone" if how is remove else "failed"
        assert small.sql("SHOW SIEVE INDEXES ON t")[0][6] == state
        assert "problem" in dict(small.sql("DESCRIBE SIEVE INDEX id_sieve ON t"))
        with pytest.raises(Exception, match=r"SIEVE_INDEX_NOT_USABLE.*DROP SIEVE INDEX"):
            small.sql("REFRESH SIEVE INDEX ON t")
        assert small.sql("DROP SIEVE INDEX id_sieve ON t") == [("id_sieve",)]
        # Only a manifest shows to which table an index folder belongs, so DROP keeps a folder
        # without a manifest. A later VACUUM SIEVE INDEXES deletes the folder.
        assert (root_of(small) / uuid).exists() == (how is remove)
        if how is swap:
            small.check("SELECT * FROM u WHERE id = 10", exactly=1)
        small.check(QUERY, exactly=FILES)
        small.sql(CREATE)
    else:
        small.sql("REFRESH SIEVE INDEX ON t FULL")
    small.check(QUERY, exactly=1)


@pytest.mark.long
def test_drop_table_deletes_only_its_own_damaged_index(small: Lab) -> None:
    """DROP TABLE deletes a damaged index only if a readable file of the index names the table."""
    (own,) = root_of(small).iterdir()
    small.sql("CREATE TABLE u USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
    small.sql("CREATE SIEVE INDEX ON u (id)")
    (other,) = set(root_of(small).iterdir()) - {own}
    small.sql("REFRESH SIEVE INDEX ON u FULL")
    key, value = registration(small, "u")
    small.sql(f"ALTER TABLE t SET TBLPROPERTIES ('sieve.index.copied' = '{value}')")
    flip(own / "versions" / "1.json")
    flip(other / "versions" / "2.json")
    assert small.sql("DROP SIEVE INDEX copied ON t") == [("copied",)]
    assert other.exists()
    small.sql("DROP TABLE t")
    wait_until(lambda: not own.exists(), "it goes with its table")
    small.sql(f"ALTER TABLE u UNSET TBLPROPERTIES ('{key}')")
    (told,) = small.sql(
        f"VACUUM SIEVE INDEXES IN {small.sql('SELECT current_database()')[0][0]} RETAIN 0 HOURS"
    )
    assert told[1:] == ("u", "it is damaged, and its table does not have it", f"file:{other}")
    assert not other.exists()


def test_refresh_replaces_a_list_of_files_that_it_cannot_read(small: Lab) -> None:
    """REFRESH replaces an unreadable list of the table's files, even without the keyword FULL."""
    (path,) = root_of(small).glob("*/locations/*.parquet")
    flip(path)
    assert small.sql("REFRESH SIEVE INDEX ON t")[0][1] == 2
    small.check(QUERY, exactly=1)


def test_later_format_is_neither_used_nor_overwritten(small: Lab) -> None:
    """Sieve neither uses nor overwrites a manifest in the format of a later release.

    The error names this format.
    """
    (path,) = root_of(small).glob("*/versions/1.json")
    record = json.loads(path.read_bytes())
    del record["checksum"]
    body = json.dumps(record | {"format": FORMAT + 1}, separators=(",", ":")).encode()
    checksum = hashlib.sha256(body).hexdigest()
    path.write_bytes(body[:-1] + f',"checksum":"{checksum}"}}'.encode())
    read_in_full(small, "version-too-new", strict_fails=True)
    with pytest.raises(Exception, match=f"format {FORMAT + 1}"):
        small.sql("REFRESH SIEVE INDEX ON t")
    with pytest.raises(Exception, match="SIEVE_INDEX_EXISTS"):
        small.sql(CREATE)
    assert [p.name for p in path.parent.iterdir()] == ["1.json"]


def test_index_can_be_created_again_after_its_root_is_deleted(small: Lab) -> None:
    """After the root folder is deleted, queries read all files, and CREATE makes a new index."""
    shutil.rmtree(root_of(small))
    read_in_full(small, "index-gone", strict_fails=True)
    assert small.sql("SHOW SIEVE INDEXES ON t")[0][6] == "gone"
    small.sql(CREATE)
    small.check(QUERY, exactly=1)


def test_queries_stay_right_if_index_files_vanish(small: Lab) -> None:
    """If index files vanish after the driver has loaded the index, queries return all rows.

    The driver's copy of the index in memory stays valid.
    """
    small.check(QUERY, exactly=1)
    shutil.rmtree(root_of(small))
    small.check(QUERY)
    small.sql("INSERT INTO t SELECT 5 AS id")
    assert small.check(QUERY).rows == {"(5,)": 2}
    assert small.sql("DROP SIEVE INDEX id_sieve ON t") == [("id_sieve",)]
    small.check(QUERY, exactly=FILES + 1)


def test_scan_detects_a_run_file_damaged_after_opening(small: Lab) -> None:
    """If a run file of a loaded index is damaged, scans that need the run file read all files.

    Scans that do not need the damaged run file still skip files.
    """
    elsewhere = "SELECT * FROM t WHERE id = 1000"
    small.check(elsewhere, exactly=0)
    (path,) = root_of(small).glob(f"*/{WHERE['run']}")
    flip(path)
    read_in_full(small, "index-corrupt", strict_fails=True)
    small.check(elsewhere, exactly=0)
    small.sql("REFRESH SIEVE INDEX ON t FULL")
    small.check(QUERY, exactly=1)


def test_cache_without_room_changes_no_rows(small: Lab) -> None:
    """Scans skip files even if the cache has no room; each scan then reads index files again."""
    with small.setting("spark.sieve.cache.bytes", "0"):
        small.check(QUERY, exactly=1)
        small.check(QUERY, exactly=1)
    small.check(QUERY, exactly=1)


UUID = "01234567-89ab-cdef-0123-456789abcdef"
HOSTILE = {
    "no JSON": ("not json", "no-index"),
    "deep JSON": ("[" * 500, "no-index"),
    "huge": ('{"format":1,"x":"' + "x" * 3000 + '"}', "no-index"),
    "newer": (
        json.dumps({"format": 2, "uuid": UUID, "column": ["id"], "root": "ROOT"}),
        "no-index",
    ),
    "climbing": (
        json.dumps({"format": 1, "uuid": "../" + UUID, "column": ["id"], "root": "ROOT"}),
        "no-index",
    ),
    "climbing root": (
        json.dumps({"format": 1, "uuid": UUID, "column": ["id"], "root": "ROOT/../../other"}),
        "no-index",
    ),
    "other scheme": (
        json.dumps({"format": 1, "uuid": UUID, "column": ["id"], "root": "http://127.0.0.1:1/x"}),
        "root-refused",
    ),
    "unknown root": (
        json.dumps({"format": 1, "uuid": UUID, "column": ["id"], "root": "file:/etc"}),
        "root-refused",
    ),
    "wrong uuid": (
        json.dumps({"format": 1, "uuid": UUID, "column": ["id"], "root": "ROOT"}),
        "index-gone",
    ),
}


OFTEN = {"no JSON", "huge", "climbing root", "unknown root", "wrong uuid"}
"""`make test` uses only these entries of `HOSTILE`."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else LONG) for name in HOSTILE]
)
def test_hostile_registration_changes_no_rows(lab: Lab, name: str) -> None:
    """If a registration is hostile, queries return the right rows.

    DROP removes the registration, and CREATE then makes a new index.
    """
    value, reason = HOSTILE[name]
    # Each registration gets its own database, so the driver has not yet read the tables.
    with lab.database(f"hostile_{list(HOSTILE).index(name)}"):
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, {FILES})")
        value = value.replace("ROOT", f"file:{root_of(lab)}")
        lab.sql(f"ALTER TABLE t SET TBLPROPERTIES ('sieve.index.id_sieve' = '{value}')")
        session = fresh(lab)
        read_in_full(session, reason, strict_fails=reason == "index-gone")
        shown = session.sql("SHOW SIEVE INDEXES ON t")
        states = {"no-index": "malformed", "index-gone": "gone"}
        assert [row[6] for row in shown] == [states.get(reason, reason)]
        session.sql("DROP SIEVE INDEX IF EXISTS id_sieve ON t")
        session.sql(CREATE)
        session.check(QUERY, exactly=1)
        assert UUID not in registration(lab)[1]


def test_restored_registration_of_a_dropped_index_is_gone(small: Lab) -> None:
    """If another tool restores a dropped index's registration, SHOW reports the index as gone.

    Queries read all files until CREATE registers a new index.
    """
    key, value = registration(small)
    small.sql("DROP SIEVE INDEX id_sieve ON t")
    small.sql(f"ALTER TABLE t SET TBLPROPERTIES ('{key}' = '{value}')")
    session = fresh(small)
    assert session.sql("SHOW SIEVE INDEXES ON t")[0][6] == "gone"
    session.sql(CREATE)
    session.check(QUERY, exactly=1)
    assert registration(small)[1] != value


def test_removed_registration_changes_no_rows(small: Lab) -> None:
    """If another tool removes an index's registration, new sessions read all files.

    CREATE then makes and registers a new index.
    """
    key, _ = registration(small)
    small.sql(f"ALTER TABLE t UNSET TBLPROPERTIES ('{key}')")
    session = fresh(small)
    session.check(QUERY)
    session.sql("CREATE SIEVE INDEX IF NOT EXISTS ON t (id)")
    session.check(QUERY, exactly=1)
