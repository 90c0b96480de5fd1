"""Tests queries that read only ranges of large files: their rows, bytes, tasks and counters.

This module also tests queries that must read whole files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from spark_session import Lab, scans

FILES, GROUPS, ROWS = 4, 12, 500
"""Files per table, row groups per file, and rows per row group."""
SMALL = {"spark.sieve.range.bytes": "10000"}
"""With this setting, an index divides even the small files of these tests into ranges."""
READ = {
    "spark.sql.files.openCostInBytes": "0",
    # With filter pushdown, Spark would also skip row groups by Parquet's own statistics.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sieve.strict": "true",
}
LONG = pytest.mark.long
PARQUET = pytest.mark.parametrize(
    "table",
    ["parquet", pytest.param("orc", marks=LONG), pytest.param("csv", marks=LONG)],
    indirect=True,
)
"""Marks tests of code that all formats share. `make test` runs marked tests only with Parquet."""
KEYS = random.Random(22).sample(range(10_000_000), FILES * GROUPS * ROWS)


def write(folder: Path, format_name: str) -> None:
    """Writes files with several row groups each; keys are unique and in random order."""
    folder.mkdir()
    for k in range(FILES):
        keys = KEYS[k * GROUPS * ROWS : (k + 1) * GROUPS * ROWS]
        table = pa.table({"k": keys, "n": range(len(keys)), "pad": [f"{key:030}" for key in keys]})
        path = folder / f"part-{k}.{format_name}"
        if format_name == "parquet":
            pq.write_table(table, path, row_group_size=ROWS)
        elif format_name == "orc":
            po.write_table(table, path, stripe_size=1, batch_size=ROWS)
        else:
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            path.write_text("".join(f"{key},{n},{pad}\n" for key, n, pad in rows))


@pytest.fixture(scope="module", autouse=True, params=["parquet", "orc", "csv"])
def table(
    lab: Lab, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Creates a table of a few large files, with an index that stores keys by range."""
    folder = tmp_path_factory.mktemp("large") / "t"
    write(folder, request.param)
    with lab.database("ranges"):
        lab.sql(
            f"CREATE TABLE t (k BIGINT, n BIGINT, pad STRING) USING {request.param} "
            f"LOCATION '{folder}'"
        )
        with lab.settings(SMALL):
            lab.sql("CREATE SIEVE INDEX ON t (k) OPTIONS (granularity = 'range', shape = 'map')")
        with lab.settings(READ):
            yield str(request.param)


def scan_of(frame: DataFrame) -> Any:
    """The only scan of an executed query."""
    (scan,) = scans(frame._jdf.queryExecution().executedPlan())
    return scan


def scanned(lab: Lab, query: str) -> tuple[int, int]:
    """The number of rows that a query's only scan outputs, and the number of its tasks."""
    frame = lab.spark.sql(query)
    frame.collect()
    scan = scan_of(frame)
    return scan.metrics().apply("numOutputRows").value(), scan.inputRDD().getNumPartitions()


def largest_task(lab: Lab, query: str) -> int:
    """The number of file bytes that the largest task of a query's scan reads."""
    frame = lab.spark.sql(query)
    frame.collect()
    tasks = scan_of(frame).inputRDD().getPartitions()
    return max(sum(int(file.length()) for file in task.files()) for task in tasks)


def status(lab: Lab) -> dict[str, int]:
    """The values of this driver's counters."""
    return {counter: value for counter, _, value in lab.sql("SELECT * FROM sieve_status()")}


@pytest.mark.sampled(3)
def test_a_point_query_reads_one_range(lab: Lab) -> None:
    """A query for one key reads one row group in one task, and EXPLAIN shows the bytes read."""
    for key in KEYS[:: len(KEYS) // 7]:
        query = f"SELECT * FROM t WHERE k = {key}"
        lab.check(query, exactly=1)
        (told,) = lab.explain(query)
        assert (told["files_total"], told["files_read"], told["ranges_read"]) == (FILES, 1, 1)
        assert told["ranges_total"] >= FILES * 5
        assert told["bytes_read"] < 2 * told["bytes_total"] / told["ranges_total"]
        assert told["reasons"] is None
        rows, tasks = scanned(lab, query)
        assert rows < 2.5 * FILES * GROUPS * ROWS / told["ranges_total"]
        assert tasks == 1
    lab.check("SELECT * FROM t WHERE k = -1", exactly=0)


@PARQUET
@pytest.mark.parametrize(("adaptive", "most"), [("true", "20000"), ("false", "1g")])
def test_many_ranges(lab: Lab, adaptive: str, most: str) -> None:
    """A scan of many ranges in several files has no more tasks than the same scan without Sieve."""
    keys = ", ".join(map(str, random.Random(most).sample(KEYS, 9)))
    query = f"SELECT k, n, pad FROM t WHERE k IN ({keys})"
    with lab.settings(
        {"spark.sql.adaptive.enabled": adaptive, "spark.sql.files.maxPartitionBytes": most}
    ):
        lab.check(query, at_most=FILES)
        lab.check(f"SELECT count(*) FROM ({query}) a JOIN ({query}) b ON a.n = b.n")
        (told,) = lab.explain(query)
        assert told["ranges_read"] <= 9
        rows, tasks = scanned(lab, query)
        assert rows < 11 * 2.5 * FILES * GROUPS * ROWS / told["ranges_total"]
        with lab.setting("spark.sieve.enabled", "false"):
            assert tasks <= scanned(lab, query)[1]


@PARQUET
def test_tasks_have_work(lab: Lab) -> None:
    """A task reads ranges of up to 8 MB in total, or of up to Spark's own maximum.

    Without Sieve, Spark would start one task per core for the ranges.
    """
    query = f"SELECT * FROM t WHERE k IN ({', '.join(map(str, KEYS[:: len(KEYS) // 8]))})"
    with lab.setting("spark.sql.files.minPartitionNum", "8"):
        lab.check(query)
        assert scanned(lab, query)[1] == 1
        with lab.setting("spark.sql.files.maxPartitionBytes", "1k"):
            lab.check(query)
            assert 4 <= scanned(lab, query)[1] <= 8


def test_tasks_are_as_small_as_those_of_spark(lab: Lab, table: str, tmp_path: Path) -> None:
    """If an index skips one row group of many, no task is much larger than Spark's largest task."""
    if table != "parquet":
        pytest.skip("the tasks of all formats are made alike")
    (tmp_path / "v").mkdir()
    draw = random.Random(8)
    for k in range(8):
        groups = [k * 16 + group for group in range(16) for _ in range(500)]
        rows = pa.table({"k": groups, "pad": [f"{draw.getrandbits(300):090x}" for _ in groups]})
        pq.write_table(
            rows, tmp_path / "v" / f"{k}.parquet", row_group_size=500, use_dictionary=False
        )
    settings = {
        "spark.sql.files.minPartitionNum": "64",
        "spark.sql.files.openCostInBytes": "4k",
        "spark.sql.files.maxPartitionBytes": "64k",
    }
    lab.sql(f"CREATE TABLE v (k BIGINT, pad STRING) USING parquet LOCATION '{tmp_path / 'v'}'")
    with lab.settings(SMALL):
        lab.sql("CREATE SIEVE INDEX ON v (k) OPTIONS (granularity = 'range')")
    with lab.settings(settings):
        query = "SELECT * FROM v WHERE k <> 5"
        lab.check(query, exactly=8)
        assert [told["ranges_read"] for told in lab.explain(query)] == [8 * 16 - 1]
        with lab.setting("spark.sieve.enabled", "false"):
            spark = largest_task(lab, query)
        assert largest_task(lab, query) < 1.2 * spark
    lab.sql("DROP TABLE v")


def test_metadata_columns_are_those_of_the_whole_file(lab: Lab, table: str) -> None:
    """Row positions, file sizes and file names are the same for range reads as for whole files."""
    own = ", _metadata.row_index" if table == "parquet" else ""
    shown = f"_metadata.file_path, _metadata.file_size, _metadata.file_modification_time{own}"
    query = f"SELECT k, {shown}, input_file_name() FROM t WHERE k IN ({KEYS[5]}, {KEYS[-1]})"
    lab.check(query, exactly=2)
    assert [told["ranges_read"] for told in lab.explain(query)] == [2]


@pytest.mark.parametrize("table", ["orc"], indirect=True)
def test_ranges_are_read_with_the_options_of_the_table(lab: Lab, table: str) -> None:
    """A table's options also apply when a reader reads ranges of the table's files.

    The option `orc.force.positional.evolution` makes the reader find columns by position; the files
    have other column names.
    """
    option = "'orc.force.positional.evolution' = 'true'"
    lab.sql(
        f"CREATE TABLE named (a BIGINT, b BIGINT, pad STRING) USING {table} OPTIONS ({option}) "
        f"LOCATION '{lab.files()[0].parent}'"
    )
    with lab.settings(SMALL):
        lab.sql("CREATE SIEVE INDEX ON named (a) OPTIONS (granularity = 'range')")
    query = f"SELECT b, pad FROM named WHERE a = {KEYS[5]}"
    assert lab.check(query, exactly=1).rows.total() == 1
    assert [told["ranges_read"] for told in lab.explain(query)] == [1]
    lab.sql("DROP TABLE named")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "shown",
    [
        "SELECT k, _metadata.file_block_start FROM t WHERE k = {}",
        "SELECT k FROM t WHERE k = {} AND _metadata.file_block_length > 0",
        "SELECT k, input_file_block_start() FROM t WHERE k = {}",
        "SELECT max(k) FROM (SELECT input_file_block_length() b, k FROM t WHERE k = {}) GROUP BY b",
    ],
)
def test_queries_that_show_splits_read_whole_files(lab: Lab, shown: str) -> None:
    """Queries that show the positions of splits read whole files; EXPLAIN names this reason."""
    query = shown.format(KEYS[77])
    lab.check(query, exactly=1)
    (told,) = lab.explain(query)
    assert (told["files_read"], told["reasons"]) == (1, "whole-file: 1")
    assert told["ranges_read"] == told["ranges_total"] / FILES
    with lab.setting("spark.sieve.require", "true"):
        lab.sql(query)


@pytest.mark.long
def test_bytes_read_have_the_footer_of_each_stretch(lab: Lab, table: str) -> None:
    """Adjacent ranges cost one footer in total. Each separate range costs a further footer.

    Ranges of text files cost no footer.
    """

    def ranges_and_bytes_read(*numbers: int) -> tuple[int, int]:
        keys = ", ".join(str(KEYS[number]) for number in numbers)
        query = f"SELECT * FROM t WHERE k IN ({keys})"
        lab.check(query, exactly=1)
        (of,) = lab.explain(query)
        return of["ranges_read"], of["bytes_read"]

    # For each row group, the first line computes how many bytes a query for a key of this row group
    # reads. The next lines find at which row groups the second and the third range begin.
    singles = [ranges_and_bytes_read(k * ROWS)[1] for k in range(GROUPS)]
    second = next(k for k in range(1, GROUPS) if ranges_and_bytes_read(0, k * ROWS)[0] == 2)
    third = next(
        k for k in range(second, GROUPS) if ranges_and_bytes_read(second * ROWS, k * ROWS)[0] == 2
    )
    with_neighbour, with_other = (
        ranges_and_bytes_read(0, second * ROWS),
        ranges_and_bytes_read(0, third * ROWS),
    )
    path = lab.sql("SELECT file FROM sieve_files('t', 'k = 0') ORDER BY file")[0][0]
    local = path.removeprefix("file:")
    if table == "parquet":
        footer = pq.read_metadata(local).serialized_size + 8
    elif table == "orc":
        file = po.ORCFile(local)
        parts = (
            file.stripe_statistics_length,
            file.file_footer_length,
            file.file_postscript_length,
        )
        footer = sum(parts) + 1
    else:
        footer = 0
    assert with_neighbour == (2, singles[0] + singles[second] - footer)
    assert with_other == (2, singles[0] + singles[third])
    if footer:
        # If each range is read separately, the query reads the file's bytes once, plus a footer for
        # each range but the first.
        borders = [
            k for k in range(1, GROUPS) if ranges_and_bytes_read((k - 1) * ROWS, k * ROWS)[0] == 2
        ]
        size = Path(local).stat().st_size
        assert sum(singles[k] for k in (0, *borders)) == size + len(borders) * footer


@PARQUET
def test_ignore_corrupt_files_makes_scans_read_whole_files(lab: Lab) -> None:
    """With ignoreCorruptFiles, Spark skips the rest of a bad split, so scans read whole files."""
    query = f"SELECT k FROM t WHERE k = {KEYS[77]}"
    with lab.setting("spark.sql.files.ignoreCorruptFiles", "true"):
        lab.check(query, exactly=1)
        (told,) = lab.explain(query)
        assert (told["files_read"], told["reasons"]) == (1, "whole-file: 1")


@PARQUET
def test_openings_that_cost_more_than_they_save(lab: Lab) -> None:
    """If `openCostInBytes` of Spark is high, a scan reads a whole file instead of two ranges."""
    query = f"SELECT * FROM t WHERE k IN ({KEYS[3]}, {KEYS[GROUPS * ROWS - 3]})"
    (apart,) = lab.explain(query)
    with lab.setting("spark.sql.files.openCostInBytes", "4m"):
        lab.check(query, exactly=1)
        (whole,) = lab.explain(query)
        (one,) = lab.explain(f"SELECT * FROM t WHERE k = {KEYS[3]}")
    assert (apart["files_read"], apart["ranges_read"], one["ranges_read"]) == (1, 2, 1)
    assert whole["ranges_read"] == whole["ranges_total"] / FILES
    assert apart["bytes_read"] < whole["bytes_read"] / 2
    assert (apart["reasons"], whole["reasons"]) == (None, "whole-file: 1")


def test_functions_and_metrics_show_skipped_ranges(lab: Lab) -> None:
    """`sieve_files` shows each file's skipped ranges; `sieve_status` shows the total of all files.

    Spark's plan shows how many ranges each scan has skipped.
    """
    query = f"SELECT * FROM t WHERE k = {KEYS[40]}"
    (told,) = lab.explain(query)
    rows = lab.sql(
        "SELECT kept, sum(ranges_total), sum(ranges_read), sum(bytes_read) "
        f"FROM sieve_files('t', 'k = {KEYS[40]}') GROUP BY kept ORDER BY kept"
    )
    skipped = told["ranges_total"] - rows[1][1]
    assert rows == [(False, skipped, 0, 0), (True, rows[1][1], 1, told["bytes_read"])]
    before = status(lab)
    frame = lab.spark.sql(query)
    frame.collect()
    after = status(lab)
    grown = {name: after[name] - before[name] for name in after if "_bytes" not in name}
    left = told["bytes_total"] - told["bytes_read"]
    assert grown["ranges_listed"] == told["ranges_total"]
    assert grown["ranges_skipped"] == told["ranges_total"] - 1
    assert (grown["bytes_skipped"], grown["files_skipped"]) == (left, FILES - 1)
    metrics = scan_of(frame).metrics()
    assert metrics.apply("numRangesSkipped").value() == told["ranges_total"] - 1
    assert metrics.apply("bytesSkipped").value() == left


@PARQUET
def test_audits_read_skipped_ranges(lab: Lab) -> None:
    """If a query reads some ranges of a file, an audit also reads the file's skipped ranges."""
    with lab.setting("spark.sieve.audit.sample", "1.0"):
        before = status(lab)
        lab.sql(f"SELECT * FROM t WHERE k = {KEYS[44]}")
        after = status(lab)
    assert after["files_audited"] - before["files_audited"] == FILES


@PARQUET
def test_a_file_that_changed_is_read_whole(lab: Lab, table: str, tmp_path: Path) -> None:
    """A query reads new files and replaced files as a whole."""
    write(tmp_path / "t", table)
    lab.sql("DROP TABLE IF EXISTS u")
    lab.sql(
        f"CREATE TABLE u (k BIGINT, n BIGINT, pad STRING) USING {table} LOCATION '{tmp_path / 't'}'"
    )
    with lab.settings(SMALL):
        lab.sql("CREATE SIEVE INDEX ON u (k) OPTIONS (granularity = 'range')")
    first, *_, last = sorted((tmp_path / "t").iterdir())
    first.write_bytes(last.read_bytes())
    lab.sql("REFRESH TABLE u")
    lab.check(f"SELECT * FROM u WHERE k = {KEYS[-1]}", exactly=2)
    (told,) = lab.explain(f"SELECT * FROM u WHERE k = {KEYS[-1]}")
    assert told["reasons"] == "changed-file: 1"
    lab.sql("DROP TABLE u")
