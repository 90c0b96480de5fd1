"""CHECK SIEVE INDEX accepts a sound index, and reports keys that a forged index has lost."""

from __future__ import annotations

import re
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forged_version import folder, forge
from spark_session import Lab

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing import block_tasks, hash_map_tasks, segment_tasks
from sieve.indexing.packed_intervals import pack
from sieve.metadata.file_list import FileState, Locations
from sieve.metadata.records import RunId, RunRef
from sieve.segments.intervals.cut_gaps import Intervals
from sieve.segments.intervals.plan_segments import plan
from sieve.segments.query_model import QueryModel
from tests.built_index import Row, write_run

SHAPES = ("intervals", "map", "sieve")
FILES, ROWS = 4, 100
COLUMNS = """id, concat('https://example.org/', id * 7919 % 100000) AS word,
  CASE id % 10 WHEN 1 THEN NULL WHEN 2 THEN double('NaN') ELSE id / 7 END AS f"""
OTHERS = """cast(id AS decimal(30,2)) AS wide, timestamp_micros(id * 1000001) AS at,
  cast(NULL AS int) AS none, named_struct('x y', id) AS s"""


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[Lab]:
    """A table of four files; each file has a hundred keys that no other file contains."""
    with lab.database("checked"):
        create(lab, "parquet", COLUMNS)
        yield lab


@pytest.fixture
def t(table: Lab) -> Iterator[Lab]:
    """The table of the fixture `table`, whose indexes are dropped after each test."""
    table.sql("USE checked")
    yield table
    for row in table.sql("SHOW SIEVE INDEXES ON t"):
        table.sql(f"DROP SIEVE INDEX {row[2]} ON t")


def create(lab: Lab, kind: str, columns: str) -> None:
    """Creates the table."""
    rows = f"range(0, {FILES * ROWS}, 1, {FILES})"
    lab.sql(f"CREATE TABLE t USING {kind} AS SELECT {columns} FROM {rows}")


def append(lab: Lab, first: int) -> None:
    """Appends one file to the table."""
    lab.sql(f"INSERT INTO t SELECT {COLUMNS} FROM range({first}, {first + ROWS}, 1, 1)")


def check(lab: Lab, rest: str = "ON t") -> Counter[tuple[str, str]]:
    """How many files CHECK reports for each index and status."""
    return Counter((index, status) for index, _, status, _ in files(lab, rest))


def files(lab: Lab, rest: str = "ON t") -> list[tuple[Any, ...]]:
    """The rows of CHECK's result that describe single files."""
    rows = lab.sql(f"CHECK SIEVE INDEX EXTENDED {rest}")
    return [row for row in rows if row[1] is not None]


def sound_counts(*columns: str, files: int = FILES) -> Counter[tuple[str, str]]:
    """The counts that CHECK reports if all given indexes are sound."""
    return Counter({(f"{column}_sieve", "ok"): files for column in columns})


def test_every_key_of_every_shape_is_found(t: Lab) -> None:
    """For each shape, CHECK finds every key of strings, and of doubles with NULL and NaN."""
    named = {"intervals": "word, f", "map": "word, f", "sieve": "word, f"}
    for shape, columns in named.items():
        t.sql(f"CREATE SIEVE INDEX ON t ({columns}) OPTIONS (shape = '{shape}')")
        rows = files(t, "ON TABLE t SAMPLE 100 PERCENT")
        assert Counter((row[0], row[2]) for row in rows) == sound_counts(*columns.split(", ")), (
            shape
        )
        assert all(row[3] is None for row in rows)
        assert [row[1] for row in rows] == [f"file:{path}" for path in t.files()] * (
            len(rows) // FILES
        )
        for column in columns.split(", "):
            t.sql(f"DROP SIEVE INDEX ON t ({column})")


@pytest.mark.long
def test_a_share_of_the_files_is_drawn(t: Lab) -> None:
    """CHECK rounds the number of sampled files up, so even a tiny sample has one file."""
    t.sql("CREATE SIEVE INDEX ON t (id)")
    t.sql("ALTER SIEVE INDEX id_sieve ON t DISABLE")
    assert check(t, "id_sieve ON t SAMPLE 26 PERCENT") == sound_counts("id", files=2)
    drawn = {files(t, "ON t SAMPLE 0.001 PERCENT")[0][1] for _ in range(12)}
    # With a probability of one in four million, all twelve samples select the same of the four
    # files.
    assert 1 < len(drawn) <= FILES


def test_every_type_is_found(lab: Lab) -> None:
    """CHECK finds the keys of types with inexact codes or with Spark's hashes.

    CHECK also accepts columns without keys.
    """
    with lab.database("types"):
        create(lab, "parquet", OTHERS)
        lab.sql("CREATE SIEVE INDEX ON t (at, none, s.`x y`)")
        lab.sql("CREATE SIEVE INDEX wide_sieve ON t (wide) OPTIONS (shape = 'map')")
        assert check(lab) == sound_counts("wide", "at", "none", "s_x y")


def test_text_files_are_checked(lab: Lab) -> None:
    """CHECK accepts an index of a CSV table, although CSV files lack row counts."""
    with lab.database("texts"):
        create(lab, "csv", COLUMNS)
        lab.sql("CREATE SIEVE INDEX ON t (word) OPTIONS (shape = 'map')")
        lab.sql("CREATE SIEVE INDEX ON t (f)")
        assert check(lab) == sound_counts("word", "f")


@pytest.mark.long
def test_files_that_queries_always_read_are_not_checked(lab: Lab) -> None:
    """After a refresh, the index has two runs; CHECK ignores new, changed and deleted files."""
    with lab.database("checked_files"):
        create(lab, "parquet", COLUMNS)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        append(lab, 400)
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.facts()["runs"] == "2"
        assert check(lab) == sound_counts("id", files=5)
        changed, gone, other = lab.files()[:3]
        shutil.copyfile(other, changed)
        (changed.parent / f".{changed.name}.crc").unlink()
        gone.unlink()
        append(lab, 500)
        rows = files(lab, "id_sieve ON t")
        told = {Path(file).name: (status, detail) for _, file, status, detail in rows}
        assert told.pop(changed.name) == ("stale", "changed since the index was built")
        assert told.pop(gone.name) == ("gone", "no file of the table")
        new = "new since the index was built"
        assert Counter(told.values()) == {("ok", None): 3, ("stale", new): 1}
        first, *others = lab.sql("CHECK SIEVE INDEX ON t")
        assert first == ("id_sieve", None, "ok", "files: 3 ok, 2 stale, 1 gone")
        assert others == [row for row in rows if row[2] != "ok"]
        with lab.setting("spark.sql.parquet.enableVectorizedReader", "false"):
            assert check(lab, "id_sieve ON t") == {("id_sieve", "stale"): 5}


def test_an_index_that_cannot_be_checked_fails_the_statement(t: Lab) -> None:
    """If the index or its files do not exist, CHECK fails."""
    t.sql("CREATE SIEVE INDEX ON t (id)")
    with pytest.raises(Exception, match=r"SIEVE_UNKNOWN_INDEX.*did you mean id_sieve"):
        check(t, "ids_sieve ON t")
    shutil.rmtree(folder(t, "id_sieve"))
    with pytest.raises(Exception, match="SIEVE_INDEX_NOT_USABLE"):
        check(t)


def error_of_check(lab: Lab, rest: str = "ON t") -> str:
    """The error message of a CHECK that must fail."""
    with pytest.raises(Exception, match="SIEVE_FALSE_NEGATIVE") as refusal:
        check(lab, rest)
    return str(refusal.value)


def listed(column: str, value: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Makes a forgery that changes one column of the index's list of locations."""

    def change(locations: Locations, run: RunRef, _: Path) -> tuple[Locations, RunRef]:
        return replace(locations, **{column: value(getattr(locations, column))}), run

    return change


def test_swapped_files_are_found(t: Lab) -> None:
    """If an index confuses two files, CHECK names the lost keys, and names no other index."""
    t.sql("CREATE SIEVE INDEX ON t (id, word) OPTIONS (shape = 'map')")
    forge(t, "word_sieve", listed("slots", lambda slots: slots[::-1].copy()))
    words = error_of_check(t)
    assert "index id_sieve" not in words
    for path in t.files():
        assert f"of file:{path}" in words
    key = words.partition("loses key ")[2].partition(" ")[0]
    query = f"SELECT id FROM t WHERE word = '{key}'"
    assert not t.run(query).rows
    with t.setting("spark.sieve.enabled", "false"):
        assert sum(t.run(query).rows.values()) == 1
    t.sql("REFRESH SIEVE INDEX word_sieve ON t FULL")
    assert check(t) == sound_counts("id", "word")


@pytest.mark.long
def test_counts_that_are_too_low_are_found(t: Lab) -> None:
    """CHECK finds wrong counts of rows, NULLs and NaNs, because queries rely on these counts."""
    t.sql("CREATE SIEVE INDEX ON t (f)")
    for column, value, words in (
        ("slots", lambda slots: slots * 0 - 1, r"loses key .* \(80 rows of such keys\)"),
        ("nulls", lambda nulls: nulls * 0, r"loses NULL \(10 rows in the file, 0 in the index\)"),
        ("nans", lambda nans: nans * 0, r"loses NaN \(10 rows in the file, 0 in the index\)"),
        ("rows", lambda rows: rows - 1, r"loses rows \(100 rows in the file, 99 in the index\)"),
        ("nulls", lambda nulls: nulls + 80, r"loses every key \(90 NULL and 10 NaN of 100 rows"),
    ):
        forge(t, "f_sieve", listed(column, value))
        told = error_of_check(t, "f_sieve ON t SAMPLE 1 PERCENT")
        assert re.search(words, told), told
        assert "REFRESH SIEVE INDEX f_sieve ON checked.t FULL" in told


def test_files_that_prove_nothing_are_not_checked(t: Lab) -> None:
    """CHECK reports a file as stale if the build could not rely on the file's age or content."""
    t.sql("CREATE SIEVE INDEX ON t (id)")
    for state, words in (
        (FileState.RACY, "too young to be relied on"),
        (FileState.UNPROVEN, "proved nothing"),
    ):
        forge(t, "id_sieve", listed("states", lambda states, state=state: states * 0 + state))
        first, *rows = t.sql("CHECK SIEVE INDEX ON t SAMPLE 50 PERCENT")
        assert first == ("id_sieve", None, "stale", f"files: {FILES} stale")
        assert [row[2] for row in rows] == ["stale"] * FILES
        assert all(row[3].startswith(words) for row in rows)


def rewritten(shape: str, spared: Callable[[int, int], bool]) -> Any:
    """Makes a forgery: a new run of the given shape, with only the ``spared`` keys."""

    def change(locations: Locations, run: RunRef, place: Path) -> tuple[Locations, RunRef]:
        pairs = sorted(
            (key, int(slot))
            for path, slot in zip(locations.paths, locations.slots, strict=True)
            for key in pq.read_table(path.removeprefix("file:"))["id"].to_pylist()
        )
        left = [pair for pair in pairs if spared(*pair)]
        written = _rows("intervals", pairs) if shape == "map" else []
        files = [written + _rows(shape, left)]
        name = RunId(secrets.token_hex(16))
        made = write_run(place, files, Encoder("bigint"), run.locations, name)
        return locations, made

    return change


def _rows(shape: str, pairs: list[tuple[int, int]]) -> list[Row]:
    """The segments of the given keys, as executors write segments."""
    codes, places = np.array(pairs, np.int64).T
    ones = np.ones(len(codes), np.int64)
    if shape == "map":
        batch = hash_map_tasks.packed(hash_codes(codes), places.astype(np.int32), 1)
        return _made(hash_map_tasks.write_maps(FILES, 8), batch)
    if shape == "sieve":
        columns = [pa.array(codes), pa.array(places, pa.int32()), pa.array(ones)]
        step = block_tasks.segment_pairs(4, 1 << 40)
    else:
        pieces = pack(Intervals(codes, codes, places.astype(np.int32), ones, ones))
        columns = [pa.array([0], pa.int32()), pa.array([pieces], pa.binary())]
        planner = partial(plan, query_model=QueryModel.of_sample(codes))
        step = segment_tasks.write_stretches(planner, 1e-6)
    batch = pa.RecordBatch.from_arrays(columns, names=[str(k) for k in range(len(columns))])
    return _made(step, batch)


def _made(step: Callable[[Any], Any], batch: pa.RecordBatch) -> list[Row]:
    made = pa.Table.from_batches(step(iter([batch])))
    return [tuple(row.values()) for row in made.to_pylist()]


def test_keys_that_a_run_lacks_are_found(t: Lab) -> None:
    """CHECK fails if a run has lost all entries of one location, or one key of a hash map.

    CHECK accepts a run with all keys.
    """
    t.sql("CREATE SIEVE INDEX ON t (id)")
    for shape in SHAPES:
        forge(t, "id_sieve", rewritten(shape, lambda *_: True))
        assert check(t) == sound_counts("id")
        of_map = shape == "map"
        lacks = (lambda key, _: key == 142) if of_map else (lambda _, place: place == 1)
        forge(t, "id_sieve", rewritten(shape, lambda *pair, lacks=lacks: not lacks(*pair)))
        words = error_of_check(t, "id_sieve ON t")
        assert words.count("loses key") == 1
        assert f"({1 if of_map else ROWS} rows of such keys)" in words
        if of_map:
            assert "loses key 142 (" in words
            assert not t.run("SELECT word FROM t WHERE id = 142").rows


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: replace(b, least=b.least + 1), "not between the least and the greatest key"),
        (lambda b: replace(b, greatest=b.greatest - 1), "not between the least and the greatest"),
        (lambda b: replace(b, least=b.least - 1), "no row has the least or the greatest key"),
        (lambda b: replace(b, greatest=b.greatest + 1), "no row has the least or the greatest"),
    ],
)
def test_bounds_of_keys_are_checked(t: Lab, change: Callable[..., Any], message: str) -> None:
    """If the stored least or greatest key of a file is too low or too high, CHECK fails."""
    t.sql("CREATE SIEVE INDEX ON t (id)")
    forge(t, "id_sieve", listed("bounds", change))
    assert message in error_of_check(t)


@pytest.mark.long
def test_an_index_without_bounds_is_usable(lab: Lab) -> None:
    """Queries and CHECK accept an index of an earlier release, which stored no bounds.

    If an index lacks bounds, REFRESH adds the bounds of the files that it reads.
    """
    with lab.database("unbounded"):
        create(lab, "parquet", COLUMNS)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        forge(lab, "id_sieve", listed("bounds", lambda _: None))
        assert check(lab) == {("id_sieve", "ok"): FILES}
        first, last = "SELECT id FROM t ORDER BY id LIMIT 3", "SELECT max(id) FROM t"
        lab.check(first, exactly=1)
        lab.check(last, exactly=1)
        lab.sql("INSERT INTO t SELECT id + 1000, word, f FROM t WHERE id BETWEEN 10 AND 12")
        (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
        assert row[2] > FILES
        assert set(check(lab)) == {("id_sieve", "ok")}
        lab.check(first, exactly=1)
        lab.check(last, exactly=1)
        lab.check("SELECT id FROM t WHERE id BETWEEN 1011 AND 1020", at_most=2)
