"""Scans that cannot read ranges of files return the same rows, and EXPLAIN says why."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from spark_session import Lab

RANGES = {
    "spark.sieve.range.bytes": "1000",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sieve.strict": "true",
}


def test_bucketed_scans_read_whole_files(lab: Lab) -> None:
    """If a query reads the bucket column, Spark groups files by bucket and reads whole files."""
    with lab.database("bucketed"), lab.settings(RANGES):
        rows = lab.spark.range(0, 20_000, 1, 1).selectExpr("id AS k", "id % 3 AS n", "uuid() AS u")
        with lab.setting("spark.sql.parquet.compression.codec", "uncompressed"):
            rows.write.option("parquet.block.size", "20000").bucketBy(2, "n").saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (k) OPTIONS (granularity = 'range')")
        for query, reasons in (
            ("SELECT k, u FROM t WHERE k = 777", None),
            ("SELECT * FROM t WHERE k = 777", "whole-file: 1"),
            ("SELECT n, count(*) FROM t WHERE k = 777 GROUP BY n", "whole-file: 1"),
        ):
            lab.check(query, exactly=1)
            (told,) = lab.explain(query)
            assert told["reasons"] == reasons
            assert told["ranges_total"] > 10 * told["files_total"]
            assert (told["ranges_read"] == 1) == (reasons is None)


def test_scan_of_zstd_files_reads_all_files_or_none(lab: Lab, tmp_path: Path) -> None:
    """A scan of zstd files reads all files or no file.

    For a scan of few files, Spark 4.1 makes smaller splits. Spark 4.1 then fails at a zstd file
    that it has split.
    """
    if lab.spark.version < "4.1":
        pytest.skip("this Spark does not read such files")
    draw, files, rows = random.Random(5), 20, 120
    for k in range(files):
        ids = range(1000 * k, 1000 * k + rows)
        lines = [json.dumps({"id": n, "pad": f"{draw.getrandbits(400):x}"}) for n in ids]
        with pa.CompressedOutputStream(str(tmp_path / f"{k}.json.zstd"), "zstd") as file:
            file.write("\n".join(lines).encode())
    settings = {"spark.sql.files.minPartitionNum": "10", "spark.sql.files.openCostInBytes": "0"}
    with lab.database("zstd"), lab.settings(settings):
        lab.sql(f"CREATE TABLE t (id BIGINT, pad STRING) USING json LOCATION '{tmp_path}'")
        with lab.settings(RANGES):
            lab.sql("CREATE SIEVE INDEX ON t (id)")
        for k in (0, files - 1):
            query = f"SELECT * FROM t WHERE id BETWEEN {1000 * k} AND {1000 * k + rows}"
            for ignored in ("false", "true"):
                with lab.setting("spark.sql.files.ignoreCorruptFiles", ignored):
                    assert sum(lab.check(query, exactly=files).rows.values()) == rows
            (told,) = lab.explain(query)
            assert told["reasons"] == f"whole-file: {files}"
        lab.check("SELECT * FROM t WHERE id = -1", exactly=0)


def test_a_separator_that_overlaps_with_itself_is_refused(lab: Lab, tmp_path: Path) -> None:
    """CREATE refuses a separator that overlaps itself, because a line could end in two places."""
    (tmp_path / "a.csv").write_text("s1,1,tyyyys2,2,tyys3,3,tyyy", encoding="utf-8")
    with lab.database("overlapping"):
        lab.sql(
            "CREATE TABLE t (s STRING, n INT, t STRING) USING csv OPTIONS (lineSep 'yy') "
            f"LOCATION '{tmp_path}'"
        )
        with pytest.raises(Exception, match="SIEVE_UNSUPPORTED_TABLE"):
            lab.sql("CREATE SIEVE INDEX ON t (s)")
