"""ESTIMATE predicts the index that CREATE then builds, and leaves no file behind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row
from spark_session import COMPILED, Lab

FILES = 20
LARGE = 3_000_000
LATE = "CASE WHEN id % 50 = 7 THEN pmod(xxhash64(id), {rows}) ELSE id END AS late"
WIDE = "budget = '4%'"
"""A budget, as a share of the large table's bytes.

A build with this budget weighs only some intervals.
"""


@pytest.fixture(scope="module")
def tables(lab: Lab) -> Iterator[Lab]:
    """Two tables: a small one, and one with partitions."""
    with lab.database("estimates"):
        lab.sql(f"""
            CREATE TABLE small USING parquet AS SELECT {LATE.format(rows=8000)},
              concat('k', (id * 7919) % 8000) AS text, id % 2 = 0 AS flag,
              CASE WHEN id % 9 > 0 THEN cast(id AS double) / 7 END AS f, uuid() AS u
            FROM range(0, 8000, 1, {FILES})""")
        lab.sql(f"""
            CREATE TABLE parts USING parquet PARTITIONED BY (p) AS
            SELECT id AS late, id DIV 200 AS p FROM range(0, 2000, 1, {FILES})""")
        lab.sql("CREATE TABLE empty (late INT) USING parquet")
        yield lab


@pytest.fixture(scope="module")
def large(tables: Lab) -> Lab:
    """Creates a large table, of which ESTIMATE reads only some files."""
    with tables.settings(COMPILED):
        tables.sql(f"""
            CREATE TABLE large USING parquet AS SELECT {LATE.format(rows=LARGE)}
            FROM range(0, {LARGE}, 1, {FILES})""")
    return tables


LONG = pytest.mark.long


def row_of_estimate(lab: Lab, statement: str) -> Row:
    """The last row of an ESTIMATE: the prediction for the statement's own budget or for `auto`."""
    rows: list[Row] = lab.spark.sql(statement).collect()
    return rows[-1]


def number(text: str) -> float:
    """The number at the start of a text."""
    return float(text.split(maxsplit=1)[0])


@pytest.mark.parametrize(
    ("table", "column", "options"),
    [
        pytest.param("small", "late", "shape = 'auto'", marks=LONG),
        pytest.param("small", "late", "shape = 'sieve'", marks=LONG),
        pytest.param("small", "u", "shape = 'auto'", marks=LONG),
        ("small", "u", "shape = 'map'"),
        pytest.param("large", "late", "shape = 'auto'", marks=LONG),
        pytest.param("large", "late", WIDE, marks=LONG),
    ],
)  # fmt: skip
def test_estimate_is_close_to_the_built_index(
    tables: Lab, table: str, column: str, options: str, request: pytest.FixtureRequest
) -> None:
    """ESTIMATE's error is at most a quarter. Errors of up to 4 KB or half a file also pass."""
    if table == "large":
        request.getfixturevalue("large")
    on = f"ON {table} ({column}) OPTIONS ({options})"
    with tables.settings(COMPILED if table == "large" else {}):
        before = row_of_estimate(tables, f"ESTIMATE SIEVE INDEX EXTENDED {on}")
        assert tables.sql(f"SHOW SIEVE INDEXES ON {table}") == []
        tables.sql(f"CREATE SIEVE INDEX {on}")
    try:
        after = dict(tables.sql(f"DESCRIBE SIEVE INDEX EXTENDED {column}_sieve ON {table}"))
    finally:
        tables.sql(f"DROP SIEVE INDEX ON {table} ({column})")
    assert before.column == column
    assert before.bytes == pytest.approx(number(after["bytes"]), rel=0.25, abs=4096)
    share = number(after["bytes as share of column"].rstrip("%"))
    assert before.percent == pytest.approx(share, rel=0.25, abs=100 * 4096 / (8 * 8000))
    assert str(before.files) == after["files"]
    kinds = {
        "a key that occurs": before.files_present,
        "a key that does not occur": before.files_absent,
        "a range of 0.05% of the domain": before.files_range,
    }
    reads = {kind: n for kind, n in kinds.items() if f"files read for {kind}" in after}
    # If the table contains nearly every key, the probes may contain no absent key.
    assert len(reads) >= 2
    for kind, files in reads.items():
        found = number(after[f"files read for {kind}"])
        assert files == pytest.approx(found, rel=0.25, abs=0.5)


@pytest.mark.long
def test_the_frontier_of_several_columns(tables: Lab) -> None:
    """ESTIMATE returns a row for each column and budget.

    A larger budget never makes a query read more files, and every index stays within its budget.
    """
    rows = tables.spark.sql("ESTIMATE SIEVE INDEX EXTENDED ON small (late, u)").collect()
    budgets = ["0.3%", "1%", "3%", "6%", "30%", "auto"]
    assert [(row.column, row.budget) for row in rows] == [
        (column, budget) for column in ("late", "u") for budget in budgets
    ]
    for row in rows:
        assert row.files == FILES
        assert row.shape
        assert row.bytes_present == pytest.approx(
            row.files_present * _bytes_of_a_file(tables), 0.01
        )
        assert row.files_predicate is None
    for column in ("late", "u"):
        found = [row for row in rows if row.column == column]
        for fewer, more in pairwise(found[:-1]):
            assert more.files_present <= fewer.files_present + 0.1
    assert found[-1].files_present < 1.1
    # If a budget is a small share of a column's bytes, the column still gets at least 64 KB.
    assert max(row.bytes for row in rows) < (96 << 10) + 36 * 8000


def _bytes_of_a_file(tables: Lab) -> float:
    (scan,) = tables.explain("SELECT * FROM small WHERE late = 4321")
    return float(scan["bytes_total"]) / FILES


PREDICATES = (
    "late = 4321", "late = -1", "late BETWEEN 990 AND 1010", "late IN (5, 7000) OR late < 3",
    "late > 100 AND f IS NULL", "late IS NULL", "NOT (late >= 20)", "f > 1 ; ;",
)  # fmt: skip


@pytest.fixture(scope="module")
def predicates(tables: Lab) -> dict[str, tuple[Row, list[dict[str, Any]]]]:
    """For each predicate, how many files ESTIMATE predicts, and how many EXPLAIN then shows."""
    estimate = "ESTIMATE SIEVE INDEX EXTENDED ON small (late) WHERE"
    before = {
        predicate: row_of_estimate(tables, f"{estimate} {predicate}") for predicate in PREDICATES
    }
    tables.sql("CREATE SIEVE INDEX ON small (late)")
    try:
        return {
            predicate: (row, tables.explain(f"SELECT * FROM small WHERE {predicate.rstrip('; ')}"))
            for predicate, row in before.items()
        }
    finally:
        tables.sql("DROP SIEVE INDEX ON small (late)")


@pytest.mark.long
@pytest.mark.parametrize("predicate", PREDICATES)
def test_predicate_reads_the_estimated_number_of_files(
    predicates: dict[str, tuple[Row, list[dict[str, Any]]]], predicate: str
) -> None:
    """For a predicate, ESTIMATE predicts how many files EXPLAIN shows once the index exists."""
    before, (scan,) = predicates[predicate]
    assert abs(before.files_predicate - scan["files_read"]) <= 1
    assert before.bytes_predicate <= scan["bytes_total"]
    assert ("no part" in (before.advice or "")) == (predicate == "f > 1 ; ;")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("key", "options", "predicate"),
    [
        ("upper(text)", "", "upper(text) = 'K4321'"),
        ("(flag, late)", "", "flag AND late = 4320"),
        ("text", "OPTIONS (kind = 'substring')", "text LIKE '%k4321%'"),
        ("array(late, late + 1)", "", "array_contains(array(late, late + 1), 4321)"),
    ],
)
def test_a_predicate_on_an_expression(tables: Lab, key: str, options: str, predicate: str) -> None:
    """For a predicate on an expression, ESTIMATE predicts the file count that EXPLAIN shows."""
    before = row_of_estimate(
        tables, f"ESTIMATE SIEVE INDEX EXTENDED ON small ({key}) {options} WHERE {predicate}"
    )
    tables.sql(f"CREATE SIEVE INDEX tried ON small ({key}) {options}")
    try:
        (scan,) = tables.explain(f"SELECT * FROM small WHERE {predicate}")
    finally:
        tables.sql("DROP SIEVE INDEX tried ON small")
    assert "no part" not in (before.advice or "")
    assert scan["files_read"] < FILES
    assert abs(before.files_predicate - scan["files_read"]) <= 1


@pytest.mark.long
@pytest.mark.usefixtures("large")
def test_a_predicate_on_a_part_of_a_large_table(tables: Lab) -> None:
    """On a large table, ESTIMATE with a predicate reads few files; it errs by at most one file."""
    point, wide = 1_234_567, 2_000_000
    for predicate, least in ((f"late = {point}", 1), (f"late BETWEEN {point} AND {wide}", 6)):
        on = f"ON large (late) OPTIONS ({WIDE})"
        query = f"SELECT DISTINCT input_file_name() FROM large WHERE {predicate}"
        with tables.settings(COMPILED):
            read = row_of_estimate(
                tables, f"ESTIMATE SIEVE INDEX EXTENDED {on} WHERE {predicate}"
            ).files_predicate
            files = len(tables.sql(query))
        assert files >= least
        assert files <= read <= files + 1


@pytest.mark.long
def test_estimate_from_a_sample_of_files_is_close(tables: Lab) -> None:
    """With a sample, ESTIMATE's error is at most half of the bytes and a quarter of the files read.

    The advice says that ESTIMATE sampled files; ESTIMATE reads only the files of the sample.
    """
    tables.sql("""
        CREATE TABLE many USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(120, late) */ *
        FROM (SELECT if(id % 50 = 7, pmod(xxhash64(id), 60000), id) AS late, id % 7 AS everywhere,
          concat('value ', id % 5) AS five, uuid() AS u FROM range(60000))""")
    columns = ("late", "u", "everywhere", "five")
    found = tables.spark.sql(f"ESTIMATE SIEVE INDEX ON many ({', '.join(columns)})").collect()
    tables.sql(f"CREATE SIEVE INDEX ON many ({', '.join(columns)})")
    built = {
        row.column: row
        for row in tables.spark.sql("SHOW SIEVE INDEXES ON many").collect()
    }  # fmt: skip
    for row in found:
        described = dict(tables.sql(f"DESCRIBE SIEVE INDEX {row.column}_sieve ON many"))
        reads = number(described["files read for a key that occurs"])
        assert row.files == 120
        assert row.files_read == pytest.approx(reads, rel=0.25, abs=0.5), row.column
        assert row.bytes == pytest.approx(built[row.column].bytes, rel=0.5), row.column
        assert "stimated by a sample of 20 files" in row.advice
        cannot = row.column in ("everywhere", "five")
        assert ("cannot help" in row.advice) == cannot
        assert ("cannot help" in described.get("advice", "")) == cannot
    before = jobs(tables)
    tables.sql("ESTIMATE SIEVE INDEX ON many (late)")
    assert jobs(tables) - before <= 4
    tables.sql("DROP TABLE many")


def jobs(lab: Lab) -> int:
    """How many jobs Spark has started so far."""
    return int(lab.spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


@pytest.mark.long
@pytest.mark.parametrize("column", ["name", pytest.param("mode", marks=LONG)])
def test_map_is_not_advised_for_values_in_every_file(tables: Lab, column: str) -> None:
    """If each file has every value, ESTIMATE and CREATE say that an index cannot help.

    The advice proposes no map.
    """
    tables.sql("""
        CREATE TABLE modes USING parquet AS SELECT /*+ REPARTITION(12) */ id,
        element_at(array('REG AIR', 'AIR', 'SHIP', 'TRUCK'), 1 + int(id % 4)) AS mode,
        concat('Customer#00000', id % 4) AS name, concat('Customer#00000', id) AS each
        FROM range(20000)""")
    for options in ("shape = 'auto'", "shape = 'map'"):
        on = f"ON modes ({column}) OPTIONS ({options})"
        for statement in ("ESTIMATE SIEVE INDEX", "CREATE OR REPLACE SIEVE INDEX"):
            (row,) = tables.spark.sql(f"{statement} {on}").collect()
            assert "cannot help" in row.advice, (statement, on)
            assert "'map'" not in row.advice
    (row,) = tables.spark.sql("CREATE SIEVE INDEX ON modes (each)").collect()
    assert row.advice is None
    tables.sql("CREATE TABLE few USING parquet AS SELECT /*+ REPARTITION(2) */ * FROM modes")
    (row,) = tables.spark.sql(f"CREATE SIEVE INDEX ON few ({column})").collect()
    assert "cannot help" in row.advice
    for name in ("modes", "few"):
        tables.sql(f"DROP TABLE {name}")


def test_partitions_are_pruned_first(tables: Lab) -> None:
    """If Spark selects partitions, ESTIMATE counts only the files of these partitions."""
    row = row_of_estimate(
        tables, "ESTIMATE SIEVE INDEX EXTENDED ON parts (late) WHERE p = 3 AND late = 700"
    )
    assert row.files_predicate == 1
    assert row.bytes_predicate < 2 * row.bytes_present


def test_a_table_without_files(tables: Lab) -> None:
    """For a table without files, ESTIMATE predicts no number of files, and the advice says why."""
    before = row_of_estimate(tables, "ESTIMATE SIEVE INDEX EXTENDED ON empty (late) WHERE late = 3")
    assert (before.files, before.bytes, before.files_predicate) == (0, 0, 0)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ON small (lat)", "no column lat; did you mean"),
        ("ON nowhere (a)", "nowhere"),
        ("ON small (flag) OPTIONS (shape = 'map')", "boolean"),
        ("ON small (late) OPTIONS (budget = '0%')", "budget"),
        ("ON small (u) OPTIONS (shape = 'map', budget = '1KB')", "takes about"),
        ("ON small (late) WHERE", "SIEVE_SYNTAX_ERROR"),
        ("ON small (late) WHERE lat = 3", "UNRESOLVED_COLUMN"),
        ("ON small (late) WHERE late ==== 3", "PARSE_SYNTAX_ERROR"),
        (
            "ON small (late) WHERE late IN (SELECT late FROM parts)",
            "SIEVE_UNSUPPORTED_PREDICATE",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named_in_the_error(tables: Lab, statement: str, words: str) -> None:
    """ESTIMATE fails for a wrong input, names this input, and leaves no file behind."""
    with pytest.raises(AnalysisException, match=words):
        tables.sql(f"ESTIMATE SIEVE INDEX {statement}")
    assert tables.sql("SHOW SIEVE INDEXES") == []
