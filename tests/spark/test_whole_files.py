"""Scans that cannot read ranges of files: rows are the same, and EXPLAIN SIEVE gives the reason."""

from __future__ import annotations

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
