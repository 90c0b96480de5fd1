"""Scans that cannot read ranges of files: rows are the same, and EXPLAIN SIEVE gives the reason."""

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
    """Spark groups files by their buckets where a query reads the columns of these."""
    with lab.database("bucketed"), lab.settings(RANGES):
        rows = lab.spark.range(0, 40_000, 1, 1).selectExpr("id AS k", "id % 3 AS n", "uuid() AS u")
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


@pytest.mark.parametrize("kind", ["separator", "zstd"])
def test_splits_that_rows_depend_on_are_those_of_spark(lab: Lab, tmp_path: Path, kind: str) -> None:
    """Spark makes smaller splits for fewer files, and reads some of their lines twice, or fails."""
    if kind == "zstd" and lab.spark.version < "4.1":
        pytest.skip("this Spark does not read such files")
    draw, files, rows = random.Random(5), 20, 120
    for k in range(files):
        ids = range(1000 * k, 1000 * k + rows)
        # Lines end in blanks, and two blanks part lines.
        blanks = [" " * draw.choice([2, 2, 3, 4, 5]) if kind == "separator" else "\n" for _ in ids]
        lines = [json.dumps({"id": n, "pad": f"{draw.getrandbits(400):x}"}) for n in ids]
        text = "".join(line + end for line, end in zip(lines, blanks, strict=True))
        if kind == "separator":
            (tmp_path / f"{k}.json").write_text(text, encoding="utf-8")
        else:
            with pa.CompressedOutputStream(str(tmp_path / f"{k}.json.zstd"), "zstd") as file:
                file.write(text.encode())
    options = "OPTIONS (lineSep '  ')" if kind == "separator" else ""
    settings = {
        "spark.sql.files.minPartitionNum": "10",
        "spark.sql.files.openCostInBytes": "0",
        "spark.sieve.strict": "true",
    }
    with lab.database("splits"), lab.settings(settings):
        lab.sql(
            f"CREATE TABLE t (id BIGINT, pad STRING) USING json {options} LOCATION '{tmp_path}'"
        )
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        for k in range(files):
            query = f"SELECT * FROM t WHERE id BETWEEN {1000 * k} AND {1000 * k + rows}"
            found = lab.check(query, exactly=1).rows
            assert sum(found.values()) == rows
