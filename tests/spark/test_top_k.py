"""ORDER BY with LIMIT, MIN and MAX read only the files that can contain a row of the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from spark_session import Answer, Lab, files_read, scans

FILES = 40
PARTITIONED = 12


@pytest.fixture(scope="module")
def top(lab: Lab) -> Iterator[Lab]:
    """Tables of a hundred rows per file. Keys ascend or are scattered; some are NULL or NaN."""
    with lab.database("top"):
        columns = (
            "id AS k, CAST(id AS STRING) AS s, (id * 7919) % 4000 AS r, id DIV 250 AS tied, "
            "CASE WHEN id % 1000 = 7 THEN NULL WHEN id IN (1500, 1501) THEN DOUBLE('NaN') "
            "WHEN id = 2100 THEN -0.0D WHEN id = 2300 THEN 0.0D ELSE id - 2000.5D END AS d, "
            "IF(id < 3900, NULL, id) AS rare, CAST(id AS DECIMAL(38, 2)) * 1000000 AS m, "
            "NAMED_STRUCT('n', id) AS st, "
            "id % 2 = 0 AS even, id % 7 AS v"
        )
        lab.sql(
            f"CREATE TABLE fact USING parquet AS SELECT {columns} FROM range(0, 4000, 1, {FILES})"
        )
        lab.sql(f"CREATE TABLE orcs USING orc AS SELECT {columns} FROM range(0, 4000, 1, {FILES})")
        lab.sql("CREATE TABLE texts USING csv AS SELECT id AS k, 1 AS v FROM range(0, 400, 1, 4)")
        lab.sql(
            "CREATE TABLE parts USING parquet PARTITIONED BY (p, q) AS SELECT id AS k, "
            "IF(id DIV 300 = 1, NULL, -id) AS n, id DIV 300 AS p, id DIV 600 AS q "
            f"FROM range(0, 1200, 1, {PARTITIONED})"
        )
        lab.sql("CREATE SIEVE INDEX ON fact (k, s, r, tied, d, rare, m, st.n)")
        lab.sql("CREATE SIEVE INDEX ON orcs (k)")
        lab.sql("CREATE SIEVE INDEX ON texts (k)")
        lab.sql("CREATE SIEVE INDEX ON parts (k, n)")
        yield lab


_LONG = ", ".join(map(str, range(0, 1200, 100)))
"""A list of values in different files. The list is so long that Spark makes it a set."""
MODES: list[dict[str, str]] = [{}, {"spark.sql.adaptive.enabled": "false"}]
PRUNED = {
    "ascending": ("SELECT k, v FROM fact ORDER BY k LIMIT 10", 1),
    "descending": ("SELECT k, v FROM fact ORDER BY k DESC LIMIT 10", 1),
    "more than a file has": ("SELECT k FROM fact ORDER BY k LIMIT 101", 2),
    "exactly a file": ("SELECT k FROM fact ORDER BY k LIMIT 100", 1),
    "ORC": ("SELECT k FROM orcs ORDER BY k DESC LIMIT 10", 1),
    "scattered": ("SELECT r FROM fact ORDER BY r LIMIT 5", 5),
    "scattered, descending": ("SELECT r FROM fact ORDER BY r DESC LIMIT 5", 5),
    "ties": ("SELECT tied, k FROM fact ORDER BY tied, k LIMIT 5", 3),
    "ties, descending": ("SELECT tied, k FROM fact ORDER BY tied DESC, k LIMIT 5", 3),
    "all columns": ("SELECT * FROM fact ORDER BY k LIMIT 3", 1),
    "text": ("SELECT s FROM fact ORDER BY s LIMIT 3", 1),
    "text, descending": ("SELECT s FROM fact ORDER BY s DESC LIMIT 3", 1),
    "long decimals": ("SELECT m FROM fact ORDER BY m DESC LIMIT 3", 1),
    "a field": ("SELECT st FROM fact ORDER BY st.n LIMIT 3", 1),
    "another case": ("SELECT K FROM FACT ORDER BY K LIMIT 3", 1),
    "partitions in another case": ("SELECT P, MIN(K) FROM parts GROUP BY P", 4),
    "an alias": ("SELECT k + 1 AS x, k AS y FROM fact ORDER BY y LIMIT 3", 1),
    "a view": ("SELECT y FROM (SELECT k AS y, v FROM fact) ORDER BY y DESC LIMIT 3", 1),
    "NULLs first": ("SELECT d, k FROM fact ORDER BY d, k LIMIT 3", 4),
    "NULLs and keys": ("SELECT d, k FROM fact ORDER BY d, k LIMIT 6", 4),
    "NULLs last": ("SELECT d FROM fact ORDER BY d NULLS LAST LIMIT 3", 1),
    "NaN": ("SELECT d, k FROM fact ORDER BY d DESC, k LIMIT 2", 1),
    "NaN and keys": ("SELECT d, k FROM fact ORDER BY d DESC, k LIMIT 4", 2),
    "NaN behind NULLs": ("SELECT d, k FROM fact ORDER BY d DESC NULLS FIRST, k LIMIT 6", 5),
    "only NULLs in most": ("SELECT rare FROM fact ORDER BY rare NULLS LAST LIMIT 3", 1),
    "more than keys": ("SELECT rare FROM fact ORDER BY rare DESC LIMIT 101", 40),
    "IS NOT NULL": ("SELECT d FROM fact WHERE d IS NOT NULL ORDER BY d LIMIT 3", 1),
    "the next page": ("SELECT k FROM fact WHERE k > 1234 ORDER BY k LIMIT 10", 2),
    "the next page, turned around": ("SELECT k FROM fact WHERE 1234 < k ORDER BY k LIMIT 10", 2),
    "the next page by a field": ("SELECT st FROM fact WHERE st.n > 1234 ORDER BY st.n LIMIT 3", 2),
    "the page before": ("SELECT k FROM fact WHERE k <= 1234 ORDER BY k DESC LIMIT 10", 2),
    "a filter beside": ("SELECT k FROM fact WHERE r >= 0 AND tied < 12 ORDER BY k LIMIT 9", 1),
    "a filter of lists": ("SELECT k FROM fact WHERE NOT k IN (5, 7) ORDER BY k LIMIT 9", 2),
    "a list with NULL": ("SELECT k FROM fact WHERE r IN (5, 7, NULL) ORDER BY k LIMIT 1", 2),
    "a long list with NULL": (
        f"SELECT k FROM fact WHERE r IN ({_LONG}, NULL) ORDER BY k LIMIT 3",
        12,
    ),
    "a choice with NULL": (
        "SELECT k FROM fact WHERE rare > 0 OR tied >= 14 ORDER BY k LIMIT 3",
        5,
    ),
    "NULLs that a choice excludes": (
        "SELECT rare FROM fact WHERE rare > 0 OR tied > 99 ORDER BY rare NULLS FIRST LIMIT 3",
        1,
    ),
    "NULLs that a choice excludes, descending": (
        "SELECT rare FROM fact WHERE rare < 9 OR rare > 399 ORDER BY rare DESC NULLS FIRST LIMIT 2",
        1,
    ),
    "OFFSET": ("SELECT k FROM fact ORDER BY k LIMIT 10 OFFSET 95", 2),
    "a limit, then OFFSET": (
        "SELECT k FROM (SELECT k FROM fact ORDER BY k LIMIT 100) OFFSET 95",
        1,
    ),
    "limits": ("SELECT k FROM (SELECT k FROM fact ORDER BY k LIMIT 400) LIMIT 10", 1),
    "in a join": (
        "SELECT count(*) FROM (SELECT k FROM fact ORDER BY k LIMIT 10) a JOIN texts USING (k)",
        1 + 4,
    ),
    "in a CTE": ("WITH c AS (SELECT k FROM fact ORDER BY k LIMIT 9) SELECT sum(k) FROM c", 1),
    "min": ("SELECT min(k) FROM fact", 1),
    "max": ("SELECT max(k) + 1 FROM fact", 1),
    "both ends": ("SELECT min(k), max(k) FROM fact", 2),
    "two columns": ("SELECT min(k), max(s) FROM fact", 2),
    "min of NULLs": ("SELECT min(rare) FROM fact", 1),
    "max of NaN": ("SELECT max(d), min(d) FROM fact", 2),
    "min of some": ("SELECT min(k) FROM fact WHERE k >= 550", 2),
    "HAVING": ("SELECT max(k) FROM fact HAVING min(k) < 5", 2),
    "a scalar subquery": ("SELECT k FROM texts WHERE k = (SELECT min(k) FROM fact)", 1 + 1),
    "by partitions": ("SELECT p, min(k), max(k) FROM parts GROUP BY p", 8),
    "by partitions with NULLs": ("SELECT p, max(n) FROM parts GROUP BY p", 3 + 3),
    "by coarser partitions": ("SELECT q, max(k) FROM parts GROUP BY q", 2),
    "in partitions": ("SELECT k FROM parts WHERE p IN (1, 2) ORDER BY k LIMIT 5", 1),
    "min in partitions": ("SELECT min(k) FROM parts WHERE p > 1", 1),
}
UNPRUNED = {
    "another column": ("SELECT v, k FROM fact ORDER BY v, k LIMIT 3", 40),
    "a function": ("SELECT k FROM fact ORDER BY -k LIMIT 3", 40),
    "a residual filter": ("SELECT k FROM fact WHERE v = 3 ORDER BY k LIMIT 3", 40),
    "a filter of a function": ("SELECT k FROM fact WHERE k % 7 = 3 ORDER BY k LIMIT 3", 40),
    "a filter of a column and its partition": (
        "SELECT k FROM parts WHERE k + p > 700 ORDER BY k LIMIT 3",
        12,
    ),
    "min of a column and its partition": ("SELECT min(k) FROM parts WHERE k + p > 700", 12),
    "max of a column and its partition": ("SELECT max(k) FROM parts WHERE k < 600 - p", 12),
    "a filter of a subquery": (
        "SELECT k FROM fact WHERE v = (SELECT max(v) FROM texts) ORDER BY k LIMIT 3",
        40 + 4,
    ),
    "no order": ("SELECT count(*) FROM (SELECT k FROM fact LIMIT 3)", None),
    "a sort of a part": (
        "SELECT k FROM (SELECT k FROM fact LIMIT 4000) ORDER BY k LIMIT 3",
        40,
    ),
    "a sample": (
        "SELECT k FROM fact TABLESAMPLE (99 PERCENT) REPEATABLE (1) ORDER BY k LIMIT 3",
        40,
    ),
    "a generator": (
        "SELECT k, x FROM fact LATERAL VIEW explode(array(1)) AS x ORDER BY k LIMIT 3",
        40,
    ),
    "a window": (
        "SELECT k, sum(v) OVER (ORDER BY v, k) FROM fact ORDER BY k LIMIT 3",
        40,
    ),
    "distinct": ("SELECT DISTINCT v FROM fact ORDER BY v LIMIT 3", 40),
    "a join": ("SELECT fact.k FROM fact JOIN texts USING (k) ORDER BY fact.k LIMIT 3", None),
    "a union": ("(SELECT k FROM fact UNION ALL SELECT k FROM orcs) ORDER BY k LIMIT 3", 80),
    "all rows": ("SELECT count(*) FROM (SELECT k FROM fact ORDER BY k LIMIT ALL)", 40),
    "as many as there are": ("SELECT k FROM fact ORDER BY k LIMIT 4001", 40),
    "count beside": ("SELECT min(k), count(*) FROM fact", 40),
    "another column's max": ("SELECT min(k), max(v) FROM fact", 40),
    "FILTER": ("SELECT min(k) FILTER (WHERE v = 3) FROM fact", 40),
    "a function's min": ("SELECT min(-k) FROM fact", 40),
    "by a column": ("SELECT v, min(k) FROM fact GROUP BY v", 40),
    "by a partition and a column": ("SELECT p, n, min(k) FROM parts GROUP BY p, n", 12),
    "by a function": ("SELECT p % 2, min(k) FROM parts GROUP BY p % 2", 12),
    "HAVING count": ("SELECT min(k) FROM fact HAVING count(*) > 3", 40),
    "min of an unindexed": ("SELECT min(v) FROM fact", 40),
    "CSV": ("SELECT k FROM texts ORDER BY k LIMIT 3", 4),
    "max of CSV": ("SELECT max(k) FROM texts", 4),
    "a filter that holds nowhere": ("SELECT min(k) FROM fact WHERE even", 40),
}  # fmt: skip


OFTEN = {
    "ascending", "more than a file has", "scattered", "a field", "NULLs last", "NaN behind NULLs",
    "the next page", "a list with NULL", "a choice with NULL", "NULLs that a choice excludes",
    "a limit, then OFFSET", "max", "min of NULLs", "HAVING", "by partitions",
    "a residual filter", "a filter of a column and its partition", "no order", "a generator",
    "a union", "as many as there are", "FILTER", "by a partition and a column",
    "a filter that holds nowhere",
}  # fmt: skip
"""The queries that `make test` runs.

The other queries have another value, column or direction than one of these.
"""


def _kinds(queries: Iterable[str]) -> list[Any]:
    return [pytest.param(kind, marks=() if kind in OFTEN else pytest.mark.long) for kind in queries]


_WITHOUT: dict[str, Answer] = {}
"""Caches the answers without the index. Every plan of a query must return the cached answer."""


def _check(lab: Lab, query: str, files: int | None, conf: Mapping[str, str] | None = None) -> None:
    """Asserts the number of files read, and that the audited query returns Spark's own rows."""
    with lab.settings({"spark.sieve.audit.sample": "1.0"} | dict(conf or {})):
        lab.check(query, exactly=files, known=_WITHOUT)


@pytest.mark.parametrize("kind", _kinds(PRUNED))
def test_scan_reads_the_files_of_the_first_rows(top: Lab, kind: str) -> None:
    """A scan reads the files of the result, and at most one more file that bounds the result.

    Similar queries follow each other in the list, and alternate between the two modes.
    """
    _check(top, *PRUNED[kind], MODES[list(PRUNED).index(kind) % 2])


@pytest.mark.parametrize("kind", _kinds(UNPRUNED))
def test_scan_below_other_operators_has_no_bound(top: Lab, kind: str) -> None:
    """A scan reads all files if a filter, sample, generator, join or aggregate precedes LIMIT."""
    _check(top, *UNPRUNED[kind], MODES[len(kind) % 2])


def _read(frame: DataFrame) -> int:
    frame.collect()
    return files_read(frame)


def test_calls_of_a_sorted_frame_skip_files_like_a_limit(
    top: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a sorted data frame, `take`, `head`, `first` and `show` skip files as LIMIT does."""
    frame = top.spark.table("fact").select("k", "v").sort(f.desc("k"))
    count = "SELECT value FROM sieve_status() WHERE counter = 'files_skipped'"

    def skipped() -> int:
        return int(top.sql(count)[0][0])

    for call in (lambda: frame.take(3), lambda: frame.head(3), lambda: [frame.first()]):
        before = skipped()
        assert call()[0].k == 3999
        assert skipped() - before == FILES - 1
    before = skipped()
    frame.show(2)
    assert skipped() - before == FILES - 1
    assert "3999" in capsys.readouterr().out
    assert frame.tail(1)[0].k == 0
    assert len(frame.collect()) == FILES * 100
    assert _read(frame.limit(3).union(frame.limit(3))) == 1 + 1
    # The union needs the limited rows and all sorted rows. The same plan nodes supply the limited
    # and the sorted rows.
    both = frame.limit(3).union(frame)
    assert len(both.collect()) == FILES * 100 + 3
    assert [tuple(row) for row in frame.offset(3995).limit(10).sort("k").collect()] == [
        (k, k % 7) for k in range(5)
    ]


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_scans_with_and_without_a_bound_share_no_exchange(top: Lab, adaptive: str) -> None:
    """Two scans share no exchange if their top-k bounds differ, or if only one has a bound."""
    conf = {"spark.sql.adaptive.enabled": adaptive}
    ends = "SELECT k FROM fact ORDER BY k {} LIMIT 3"
    parts = [ends.format(""), ends.format("DESC"), "SELECT k FROM fact WHERE v = 6"]
    _check(top, " UNION ALL ".join(f"({part})" for part in parts), 1 + 1 + FILES, conf)
    grouped = "SELECT p, {} AS x FROM parts GROUP BY p"
    calls = ["min(k)", "max(k)", "max(n)", "count(*)", "min(k)", "max(k)"]
    files = 4 + 4 + (3 + 3) + PARTITIONED
    _check(top, " UNION ALL ".join(map(grouped.format, calls)), files, conf)
    joined = (
        "SELECT /*+ MERGE(b) */ a.p, a.x, b.x FROM (SELECT p, min(k) AS x FROM parts GROUP BY p) a "
        "JOIN (SELECT p, max(k) AS x FROM parts GROUP BY p) b ON a.p = b.p"
    )
    _check(top, joined, 4 + 4, conf)
    scalars = ", ".join(f"(SELECT {call} FROM fact)" for call in ("min(k)", "max(k)", "max(v)"))
    top.check(f"SELECT {scalars}")


def test_a_query_runs_twice_and_from_a_cache(top: Lab) -> None:
    """If a frame, a cached result or a sorted cached table runs twice, the rows are the same."""
    frame = top.spark.sql("SELECT k FROM fact ORDER BY k DESC LIMIT 3")
    assert _read(frame) == 1
    assert frame.collect() == [(3999,), (3998,), (3997,)]
    cached = frame.cache()
    assert cached.count() == 3
    assert top.spark.sql("SELECT k FROM fact WHERE v = 0").count() == 572
    cached.unpersist()
    top.sql("CACHE TABLE kept AS SELECT * FROM fact WHERE v = 3")
    assert top.sql("SELECT min(k) FROM kept") == [(3,)]
    top.sql("DROP VIEW kept")


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_limit_over_a_whole_sort(top: Lab, adaptive: str) -> None:
    """If a limit is so high that Spark sorts all rows, the query still skips files."""
    conf = {
        "spark.sql.execution.topKSortFallbackThreshold": "2",
        "spark.sql.adaptive.enabled": adaptive,
    }
    _check(top, "SELECT k, v FROM fact ORDER BY k LIMIT 10", 1, conf)
    _check(top, "SELECT k FROM fact WHERE k > 1234 ORDER BY k LIMIT 10 OFFSET 5", 2, conf)


def test_setting_off_reads_all_files(top: Lab) -> None:
    """If spark.sieve.top.pruning is off, ORDER BY with LIMIT, MIN and MAX read all files."""
    conf = {"spark.sieve.top.pruning": "off"}
    _check(top, "SELECT k FROM fact ORDER BY k LIMIT 10", FILES, conf)
    _check(top, "SELECT min(k) FROM fact", FILES, conf)


@pytest.mark.parametrize("key", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_readers_that_ignore_files_prevent_bounds(top: Lab, tmp_path: Path, key: str) -> None:
    """If readers may ignore damaged or missing files, ORDER BY with LIMIT reads all files."""
    query = "SELECT k FROM {} ORDER BY k LIMIT 3"
    _check(top, query.format("fact"), FILES, {f"spark.sql.files.{key}": "true"})
    top.sql(
        f"CREATE TABLE {key} USING parquet OPTIONS ({key} 'true') LOCATION '{tmp_path}/lax' "
        "AS SELECT id AS k FROM range(0, 400, 1, 4)"
    )
    top.sql(f"CREATE SIEVE INDEX ON {key} (k)")
    _check(top, query.format(key), 4)
    # The setting at run time counts, even if Spark listed files before a user changed the setting.
    frame = top.spark.sql(query.format("fact"))
    plan = frame._jdf.queryExecution().executedPlan()
    (scan,) = scans(plan)
    scan.selectedPartitions()
    with top.setting(f"spark.sql.files.{key}", "true"):
        assert frame._jdf.queryExecution().toRdd().count() == 3
        assert scan.inputRDD().getNumPartitions() > 1


@pytest.mark.long
def test_files_changed_after_the_build_are_read(top: Lab) -> None:
    """Scans read new, changed and replaced files, and rows of removed files bound no result."""
    with top.database("behind"):
        top.sql("CREATE TABLE t USING parquet AS SELECT id AS k FROM range(0, 400, 1, 4)")
        top.sql("CREATE SIEVE INDEX ON t (k)")
        queries = {
            "SELECT k FROM t ORDER BY k LIMIT 5": 1,
            "SELECT k FROM t ORDER BY k DESC LIMIT 5": 1,
            "SELECT min(k), max(k) FROM t": 2,
        }

        def check(more: int) -> None:
            for query, files in queries.items():
                top.check(query, at_most=files + more)

        check(0)
        top.sql("INSERT INTO t VALUES (-5), (1000)")
        check(2)
        known = "SELECT min(k), input_file_name() FROM t WHERE k BETWEEN 0 AND 399 GROUP BY 2"

        def first_known() -> Path:
            """The indexed file with the least key. For this key, queries skip all other files."""
            path = Path(min(top.sql(known))[1].removeprefix("file://"))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            return path

        for _ in range(2):
            first_known().unlink()
            top.sql("REFRESH TABLE t")
            check(2)
        path = first_known()
        pq.write_table(pa.table({"k": [5000, 6000]}), path)
        top.sql("REFRESH TABLE t")
        check(3)
        top.sql("REFRESH SIEVE INDEX ON t")
        check(2)
        top.sql("INSERT OVERWRITE t SELECT id AS k FROM range(0, 100, 1, 4)")
        check(4)
    top.sql("USE top")


def test_files_dropped_at_run_time_give_no_bound(top: Lab) -> None:
    """If Spark prunes buckets or partitions at run time, the pruned rows bound no result."""
    top.sql(
        "CREATE TABLE buckets USING parquet CLUSTERED BY (k) INTO 4 BUCKETS AS "
        "SELECT id AS k, id % 5 AS w FROM range(0, 400, 1, 2)"
    )
    top.sql("CREATE SIEVE INDEX ON buckets (k)")
    for query in (
        "SELECT k FROM buckets ORDER BY k LIMIT 3",
        "SELECT k FROM buckets WHERE k IN (17, 200) ORDER BY k LIMIT 3",
        "SELECT w, min(k) FROM buckets GROUP BY w",
    ):
        top.check(query)
    joined = (
        "SELECT parts.k FROM parts JOIN (SELECT 2 AS p, 'x' AS x FROM texts WHERE k = 5) d "
        "ON parts.p = d.p ORDER BY parts.k LIMIT 3"
    )
    top.check(joined)
    top.check("SELECT min(k) FROM parts WHERE p IN (SELECT k FROM texts WHERE k IN (2, 3))")
    # Before the result of a subquery selects partitions, Spark lists the files of all partitions.
    of_result = ("p = (SELECT max(k) FROM texts WHERE k < 3)", "q >= (SELECT min(v) FROM texts)")
    for condition in of_result:
        top.check(f"SELECT k FROM parts WHERE {condition} ORDER BY k LIMIT 3")
        top.check(f"SELECT min(k), max(n) FROM parts WHERE {condition}")
        top.check(f"SELECT q, min(k) FROM parts WHERE {condition} GROUP BY q")


def test_ranges_of_files_are_read(top: Lab, tmp_path: Path) -> None:
    """In large files, ORDER BY with LIMIT reads only the ranges that can contain result rows."""
    keys = [(k * 7919) % 6000 for k in range(6000)]
    for number in range(3):
        rows = sorted(keys[number * 2000 : (number + 1) * 2000])
        folder = tmp_path / "large"
        folder.mkdir(exist_ok=True)
        pq.write_table(
            pa.table({"k": rows, "pad": [f"{k:030}" for k in rows]}),
            folder / f"{number}.parquet",
            row_group_size=500,
        )
    top.sql(f"CREATE TABLE large (k BIGINT, pad STRING) USING parquet LOCATION '{tmp_path}/large'")
    with top.setting("spark.sieve.range.bytes", "1000"):
        top.sql("CREATE SIEVE INDEX ON large (k) OPTIONS (granularity = 'range')")
    conf = {"spark.sql.files.openCostInBytes": "0"}
    for query in (
        "SELECT k, pad FROM large ORDER BY k LIMIT 5",
        "SELECT k, pad FROM large ORDER BY k DESC LIMIT 5",
        "SELECT min(k), max(k) FROM large",
        "SELECT k FROM large WHERE k > 3000 ORDER BY k LIMIT 5",
    ):
        _check(top, query, None, conf)
        with top.settings(conf):
            (row,) = top.explain(query)
        assert row["reasons"] is None
        assert row["bytes_read"] < row["bytes_total"] * 3 / 4


def test_explain_names_the_bound_of_a_scan(top: Lab) -> None:
    """After the filters, EXPLAIN shows the order and the limit, or why the scan reads all files."""

    def explained(query: str) -> tuple[object, object, object]:
        (row,) = top.explain(query)
        return row["predicate"], row["files_read"], row["reasons"]

    assert explained("SELECT v FROM fact ORDER BY k DESC LIMIT 10") == (
        "ORDER BY k DESC NULLS LAST LIMIT 10",
        1,
        None,
    )
    assert explained("SELECT k FROM fact WHERE k > 7 ORDER BY k LIMIT 2 OFFSET 3") == (
        "(k IS NOT NULL) AND (k > 7L) ORDER BY k ASC NULLS FIRST LIMIT 5",
        2,
        None,
    )
    assert explained("SELECT q, min(k), max(k) FROM parts GROUP BY q") == (
        "MIN(k), MAX(k) GROUP BY q",
        4,
        None,
    )
    predicate, files, reasons = explained("SELECT k FROM fact WHERE v = 3 ORDER BY k LIMIT 3")
    assert predicate == "(v IS NOT NULL) AND (v = 3L) ORDER BY k ASC NULLS FIRST LIMIT 3"
    assert (files, reasons) == (FILES, "unbounded: 1")
    (row,) = top.explain("SELECT min(k) FROM fact")
    assert row["indexes"] == "k_sieve@1"


def test_require_accepts_a_query_without_a_bound(top: Lab) -> None:
    """`spark.sieve.require` accepts a query without a filter, even if its LIMIT skips no file."""
    with top.setting("spark.sieve.require", "true"):
        _check(top, "SELECT k FROM fact ORDER BY k LIMIT 4001", FILES)
        _check(top, "SELECT k FROM fact ORDER BY k LIMIT 3", 1)
