"""If a build could miss rows of a file, either the build fails or the index omits the file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as sf
from spark_session import INTERPRETED, Lab, together

from sieve.indexing import column_profile
from sieve.indexing.build_run import build_run
from sieve.indexing.tiling import whole_files
from sieve.metadata.index_options import IndexOptions
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sieve.tables.table import LOCATION

FILES = 4
LONG = pytest.mark.long
QUERY = "SELECT * FROM t WHERE id = 5"


def location(lab: Lab, table: str) -> Path:
    """The folder of a table's files."""
    facts = {row[0]: row[1] for row in lab.sql(f"DESCRIBE EXTENDED {table}")}
    return Path(facts["Location"].removeprefix("file:"))


def data_files(lab: Lab, table: str, kind: str) -> list[Path]:
    """A table's data files, ordered by name."""
    return sorted(location(lab, table).glob(f"*.{kind}"))


def indexes_below(lab: Lab, table: str) -> list[Path]:
    """The paths of all entries in the root folder of the table's database."""
    root = location(lab, table).parent / ".sieve"
    return list(root.iterdir()) if root.exists() else []


def cut(path: Path) -> None:
    """Removes the second half of a file, with the footer of a Parquet or ORC file."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def scramble(path: Path) -> None:
    """Overwrites the middle of a file with zeros, but keeps the start and the end."""
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (cut, "parquet"),
        pytest.param(cut, "orc", marks=LONG),
        pytest.param(scramble, "parquet", marks=LONG),
        (scramble, "orc"),
    ],
)
def test_corrupt_file_fails_the_build_despite_session_setting(
    lab: Lab, kind: str, damage: Callable[[Path], None]
) -> None:
    """If a file is corrupt, a build fails, even if the session's settings ignore corrupt files.

    The error names the corrupt file, and no index is left.
    """
    with lab.database("corrupt"):
        lab.sql(
            f"CREATE TABLE t USING {kind} AS SELECT id, concat('some text ', id) s "
            f"FROM range(0, 40, 1, {FILES})"
        )
        victim = data_files(lab, "t", kind)[0]
        whole = victim.read_bytes()
        with lab.setting("spark.sql.files.ignoreCorruptFiles", "true"):
            damage(victim)
            lab.sql("REFRESH TABLE t")
            with pytest.raises(Exception, match=victim.name):
                lab.sql("CREATE SIEVE INDEX ON t (id)")
            assert indexes_below(lab, "t") == []
            assert lab.sql("SHOW SIEVE INDEXES ON t") == []
            victim.write_bytes(whole)
            lab.sql("REFRESH TABLE t")
            lab.sql("CREATE SIEVE INDEX ON t (id)")
            assert lab.check(QUERY, exactly=1).rows == {"(5, 'some text 5')": 1}


def test_corrupt_file_fails_the_build_despite_table_option(lab: Lab) -> None:
    """If a file is corrupt, a build fails, even if the table has the option ignoreCorruptFiles."""
    with lab.database("corrupt_option"):
        lab.sql(
            "CREATE TABLE t USING parquet OPTIONS (ignoreCorruptFiles 'true', "
            f"IGNOREMISSINGFILES 'true') AS SELECT id FROM range(0, 40, 1, {FILES})"
        )
        victim = data_files(lab, "t", "parquet")[0]
        cut(victim)
        lab.sql("REFRESH TABLE t")
        assert len(lab.sql("SELECT * FROM t")) == 30
        with pytest.raises(Exception, match=victim.name):
            lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert indexes_below(lab, "t") == []


@pytest.mark.parametrize("kind", ["csv", pytest.param("json", marks=LONG)])
def test_truncated_gzip_file_fails_the_build(lab: Lab, kind: str) -> None:
    """If a gzip file is truncated, a build fails, instead of reading the file as a shorter file."""
    with lab.database("torn"):
        lab.sql(
            f"CREATE TABLE t USING {kind} OPTIONS (compression 'gzip') AS "
            f"SELECT id, uuid() s FROM range(0, 4000, 1, {FILES})"
        )
        victim = data_files(lab, "t", "gz")[0]
        cut(victim)
        lab.sql("REFRESH TABLE t")
        with (
            lab.setting("spark.sql.files.ignoreCorruptFiles", "true"),
            pytest.raises(Exception, match=victim.name.partition(".")[0]),
        ):
            lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert indexes_below(lab, "t") == []


def test_missing_file_fails_the_build(lab: Lab) -> None:
    """A build omits a missing file; when the file is back, queries lose no row."""
    with lab.database("missing"):
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, {FILES})")
        with lab.setting("spark.sql.files.ignoreMissingFiles", "true"):
            assert len(lab.sql("SELECT * FROM t")) == 40
            victim = data_files(lab, "t", "parquet")[0]
            kept = victim.read_bytes()
            victim.unlink()
            (row,) = lab.sql("CREATE SIEVE INDEX ON t (id)")
            assert row[2] == FILES - 1
            victim.write_bytes(kept)
            lab.sql("REFRESH TABLE t")
            lab.check(QUERY)
            assert len(lab.sql("SELECT * FROM t")) == 40


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind", ["parquet", pytest.param("orc", marks=LONG), "csv", pytest.param("json", marks=LONG)]
)
def test_a_file_without_rows_is_always_read(lab: Lab, kind: str) -> None:
    """Queries always read a file that seems empty, because the build may have missed rows in it."""
    with lab.database("rowless"):
        lab.sql(f"CREATE TABLE t (id BIGINT) USING {kind}")
        lab.sql(f"INSERT INTO t SELECT id FROM range(0, 40, 1, {FILES})")
        folder = location(lab, "t")
        lab.sql(f"CREATE TABLE nothing (id BIGINT) USING {kind}")
        lab.spark.range(0, 10, 1, 2).where("id < 0").write.mode("append").format(kind).save(
            str(location(lab, "nothing"))
        )
        # Spark does not even open a file of zero bytes.
        rowless = [path for path in data_files(lab, "nothing", kind) if path.stat().st_size]
        for path in rowless:
            shutil.copyfile(path, folder / f"empty-{path.name}")
        if kind in ("csv", "json"):
            rowless.append(folder / f"blank.{kind}")
            rowless[-1].write_bytes(b"\n\n\n")
        lab.sql("REFRESH TABLE t")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check(QUERY, exactly=1 + len(rowless))


@pytest.mark.parametrize("shape", ["auto", "sieve"])
@pytest.mark.parametrize("seen", ["fewer", "more"])
def test_file_with_differing_row_counts_is_unproven(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: str, shape: str
) -> None:
    """A build trusts a file if reads with and without the column find the same number of rows."""
    honest = column_profile._row_counts

    def counts(*args: Any) -> np.ndarray[Any, Any]:
        found = honest(*args)
        found[1] += 1 if seen == "fewer" else -1
        return found

    monkeypatch.setattr(column_profile, "_row_counts", counts)
    monkeypatch.setattr(lab.spark.sparkContext, "pythonExec", sys.executable)
    file = (sf.col("id") / 10).cast("int")
    frame = lab.spark.range(0, 40, 1, 1).withColumn(LOCATION, file)
    store = LocalStore()
    store.mkdirs(f"file:{tmp_path}/runs")
    store.mkdirs(f"file:{tmp_path}/intents")
    built = build_run(
        frame,
        Column(("id",), "bigint"),
        whole_files([1] * FILES),
        IndexOptions(shape=shape),
        store,
        f"file:{tmp_path}",
        whole=frame,
        counting=frame,
        describe_job=lambda _: None,
    )
    assert built.rows.tolist() == [10, -1, 10, 10]
    assert built.run is not None
    assert built.run.rows == 30


MALFORMED = {
    "csv": "5,x,1\n6\n7,y\nbad,z,2\n8,w,notanumber\n,v,3\n9,u,4,extra\n",
    "json": '{"a":5,"b":"x","c":1}\n{"a":6}\n{"a":7,"b":{"not":"text"},"c":[1]}\n{"a":"bad"}\n'
    '{"a":8,"b":"w","c":"no"}\n{broken\n{"a":null,"b":"v","c":3}\n{"b":"q","a":9,"c":1.5}\n[]\n',
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("PERMISSIVE", "csv"),
        pytest.param("PERMISSIVE", "json", marks=LONG),
        pytest.param("DROPMALFORMED", "csv", marks=LONG),
        ("DROPMALFORMED", "json"),
    ],
)
@pytest.mark.parametrize("corrupt", ["", pytest.param(", broken STRING", marks=LONG)])
def test_malformed_text_gives_the_same_rows_in_every_projection(
    lab: Lab, tmp_path: Path, kind: str, mode: str, corrupt: str
) -> None:
    """Values of malformed text depend on the projection, but queries with an index lose no row."""
    for number in range(FILES):
        shifted = MALFORMED[kind]
        for digit in "56789":
            shifted = shifted.replace(digit, str(int(digit) + 10 * number))
        (tmp_path / f"{number}.{kind}").write_text(shifted)
    with lab.database("malformed"), lab.settings(INTERPRETED):
        lab.sql(
            f"CREATE TABLE t (a INT, b STRING, c INT{corrupt}) USING {kind} OPTIONS "
            f"(mode '{mode}', columnNameOfCorruptRecord 'broken') LOCATION '{tmp_path}'"
        )
        lab.sql("CREATE SIEVE INDEX ON t (a, c)")
        projections = ("a", "a, b", "*", "count(*)")
        everywhere = [f"a = {value}" for value in (6, 7, 8, 19)] + ["a IS NULL", "NOT (a <=> 5)"]
        others = ("a IS NOT NULL AND c IS NOT NULL", "c = 1 OR a = 15")
        queries = [
            f"SELECT {some} FROM t WHERE {test}" for some in projections for test in everywhere
        ]
        lab.check(together(queries), exactly=FILES * len(queries))
        lab.check(
            together(f"SELECT {p} FROM t WHERE {test}" for p in projections for test in others)
        )


def test_csv_with_stray_quotes_is_refused(lab: Lab, tmp_path: Path) -> None:
    """CREATE refuses CSV if the value of `a` depends on whether a query also reads `b`.

    If `a` depends on the columns that a query reads, an index on `a` could lose rows.
    """
    (tmp_path / "1.csv").write_text('"\\ x,x,,,"""1 \n#a\n"')
    with lab.database("quotes"):
        lab.sql(
            "CREATE TABLE t (a STRING, b INT, c STRING) USING csv OPTIONS (mode 'DROPMALFORMED', "
            "unescapedQuoteHandling 'BACK_TO_DELIMITER', ignoreLeadingWhiteSpace 'true') "
            f"LOCATION '{tmp_path}'"
        )
        with pytest.raises(Exception, match="unescapedQuoteHandling"):
            lab.sql("CREATE SIEVE INDEX ON t (a)")
        assert indexes_below(lab, "t") == []
