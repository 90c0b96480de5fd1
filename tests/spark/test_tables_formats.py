"""Tables of each format; and managed, external, bucketed and empty tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_session import Lab

ROWS = """
SELECT id, CAST(id AS INT) AS i, CAST(id / 4 AS DECIMAL(10,2)) AS d,
  CONCAT('key-', LPAD(id, 4, '0')) AS s, IF(id % 10 = 5, NULL, id) AS n
FROM range(0, 80, 1, 8)
"""

FORMATS = {
    "parquet": "USING parquet",
    "orc": "USING orc",
    "csv": "USING csv",
    "json": "USING json",
    "hive_parquet": "STORED AS PARQUET",
    "hive_orc": "STORED AS ORC",
}


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=() if form in ("csv", "hive_orc") else pytest.mark.long)
        for form in FORMATS
    ],
)
def test_each_format_is_indexed_and_pruned(lab: Lab, form: str) -> None:
    """In each format, queries for integers, decimals, strings and NULL read few files."""
    with lab.database(f"formats_{form}"):
        lab.sql(f"CREATE TABLE t {FORMATS[form]} AS {ROWS}")
        made = lab.sql("CREATE SIEVE INDEX ON t (d, s, n) OPTIONS (error = 1)")
        assert [row[2] for row in made] == [8] * 3
        lab.check("SELECT * FROM t WHERE d = 8.25", exactly=1)
        lab.check("SELECT id, s FROM t WHERE d BETWEEN 3 AND 5.5", at_most=3)
        lab.check("SELECT id FROM t WHERE s = 'key-0033'", exactly=1)
        lab.check("SELECT id FROM t WHERE s LIKE 'key-003%'", exactly=1)
        lab.check("SELECT id FROM t WHERE n IS NOT NULL AND n < 10", at_most=2)
        lab.check("SELECT id FROM t WHERE d = 3.75 AND n IS NULL", exactly=1)
        lab.check("SELECT id FROM t WHERE n = -1", exactly=0)
        lab.check("SELECT id FROM t WHERE i = 33", exactly=8)


def test_an_external_table_keeps_its_folder_untouched(lab: Lab, tmp_path: Path) -> None:
    """If an external table's folder is read-only, CREATE writes the index to another folder."""
    folder = tmp_path / "data"
    lab.spark.range(0, 80, 1, 8).write.parquet(str(folder))
    before = sorted((p.name, p.stat().st_mtime_ns) for p in folder.iterdir())
    folder.chmod(0o555)
    with lab.database("external"):
        lab.sql(f"CREATE TABLE t USING parquet LOCATION '{folder}'")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 33", exactly=1)
        lab.sql("DROP SIEVE INDEX id_sieve ON t")
    assert sorted((p.name, p.stat().st_mtime_ns) for p in folder.iterdir()) == before


def test_a_table_of_foreign_files_with_options(lab: Lab, tmp_path: Path) -> None:
    """A build reads a CSV table with the table's own header, separator and NULL text."""
    for k in range(6):
        lines = ["k;v", *(f"{k * 10 + n};{'none' if n == 5 else n}" for n in range(10))]
        (tmp_path / f"{k}.csv").write_text("\n".join(lines))
    with lab.database("options"):
        lab.sql(
            f"CREATE TABLE t (k INT, v INT) USING csv "
            f"OPTIONS (header true, sep ';', nullValue 'none') LOCATION '{tmp_path}'"
        )
        lab.sql("CREATE SIEVE INDEX ON t (k)")
        assert lab.check("SELECT * FROM t WHERE k = 15", exactly=1).rows == {"(15, None)": 1}


def test_an_empty_table_can_be_indexed(lab: Lab) -> None:
    """The index of an empty table is ready. Until REFRESH, queries read all rows written later."""
    with lab.database("empty"):
        lab.sql("CREATE TABLE t (id BIGINT, s STRING) USING parquet")
        assert lab.sql("CREATE SIEVE INDEX ON t (id)")[0][:3] == ("id_sieve", 1, 0)
        assert not lab.check("SELECT * FROM t WHERE id = 3").rows
        lab.sql("INSERT INTO t SELECT id, 'x' FROM range(0, 80, 1, 8)")
        assert lab.check("SELECT * FROM t WHERE id = 3", exactly=8).rows == {"(3, 'x')": 1}
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][:3] == ("id_sieve", 2, 8)
        assert lab.check("SELECT * FROM t WHERE id = 3", exactly=1).rows == {"(3, 'x')": 1}


@pytest.mark.long
@pytest.mark.long
def test_files_without_rows_prove_nothing(lab: Lab) -> None:
    """A table of files without rows can be indexed, and scans always read these files."""
    with lab.database("norows"):
        lab.sql("CREATE TABLE t (id BIGINT) USING parquet")
        lab.sql("INSERT INTO t SELECT id FROM range(10) WHERE id < 0")
        assert len(lab.spark.table("t").inputFiles()) == 1
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert not lab.check("SELECT * FROM t WHERE id = 3", exactly=1).rows
        lab.sql("INSERT INTO t SELECT id FROM range(0, 20, 1, 2)")
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.check("SELECT * FROM t WHERE id = 3", exactly=2).rows == {"(3,)": 1}


@pytest.mark.long
def test_bucketed_tables_prune_and_still_join_by_bucket(lab: Lab) -> None:
    """The index skips files of a bucketed table, in a scan and in a join of two bucketed tables."""
    with lab.database("buckets"), lab.setting("spark.sql.autoBroadcastJoinThreshold", "-1"):
        for name in ("a", "b"):
            lab.sql(
                f"CREATE TABLE {name} USING parquet CLUSTERED BY (id) INTO 4 BUCKETS "
                "AS SELECT id, id % 10 AS r, id DIV 20 AS era FROM range(0, 80, 1, 4)"
            )
        lab.sql("CREATE SIEVE INDEX ON a (id, era) OPTIONS (error = 1)")
        lab.check("SELECT * FROM a WHERE id = 33", at_most=2)
        lab.check("SELECT * FROM a WHERE id IN (33, 34)", at_most=4)
        total = len(lab.spark.table("a").inputFiles())
        alone = lab.check("SELECT * FROM a WHERE era = 1").files
        assert alone <= total // 2
        lab.check("SELECT * FROM a JOIN b USING (id) WHERE a.era = 1", at_most=alone + total)
        lab.check("SELECT id, count(*) FROM a WHERE era = 1 GROUP BY id", exactly=alone)
