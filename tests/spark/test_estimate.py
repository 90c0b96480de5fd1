"""ESTIMATE: what is told before is what CREATE then makes, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Lab
from pyspark.errors import AnalysisException

FILES = 20
LARGE = 3_000_000
WIDE = "budget = '4%'"
"""Of the large table so much has more cuts than are weighed."""


@pytest.fixture(scope="module")
def tables(lab: Lab) -> Iterator[Lab]:
    """A small table, a partitioned one, and one of which only windows are looked at."""
    late = "CASE WHEN id % 50 = 7 THEN pmod(xxhash64(id), {rows}) ELSE id END AS late"
    with lab.database("estimates"):
        lab.sql(f"""
            CREATE TABLE small USING parquet AS SELECT {late.format(rows=8000)},
              concat('k', (id * 7919) % 8000) AS text, id % 2 = 0 AS flag,
              CASE WHEN id % 9 > 0 THEN cast(id AS double) / 7 END AS f, uuid() AS u
            FROM range(0, 8000, 1, {FILES})""")
        lab.sql(f"""
            CREATE TABLE parts USING parquet PARTITIONED BY (p) AS
            SELECT id AS late, id DIV 200 AS p FROM range(0, 2000, 1, {FILES})""")
        lab.sql(f"""
            CREATE TABLE large USING parquet AS SELECT {late.format(rows=LARGE)}
            FROM range(0, {LARGE}, 1, {FILES})""")
        lab.sql("CREATE TABLE empty (late INT) USING parquet")
        yield lab


def told(lab: Lab, statement: str) -> dict[str, str]:
    """Properties and their values."""
    return dict(lab.sql(statement))


def number(text: str) -> float:
    """The first word, which is one."""
    return float(text.split(maxsplit=1)[0])


@pytest.mark.parametrize(
    ("table", "column", "options"),
    [
        ("small", "late", "shape = 'auto'"), ("small", "late", "shape = 'sieve'"),
        ("small", "u", "shape = 'auto'"), ("small", "u", "shape = 'map'"),
        ("large", "late", "shape = 'auto'"), ("large", "late", WIDE),
    ],
)  # fmt: skip
def test_it_tells_what_create_then_makes(
    tables: Lab, table: str, column: str, options: str
) -> None:
    """Bytes within a quarter or 4 KB, files read within a quarter or half a file."""
    on = f"ON {table} ({column}) OPTIONS ({options})"
    before = told(tables, f"ESTIMATE SIEVE INDEX {on}")
    assert tables.sql(f"SHOW SIEVE INDEXES ON {table}") == []
    tables.sql(f"CREATE SIEVE INDEX {on}")
    try:
        after = told(tables, f"DESCRIBE SIEVE INDEX EXTENDED {column}_sieve ON {table}")
    finally:
        tables.sql(f"DROP SIEVE INDEX ON {table} ({column})")
    assert number(before["bytes"]) == pytest.approx(number(after["bytes"]), rel=0.25, abs=4096)
    assert before["rows"] == after["rows"]
    assert before["files"] == after["files"]
    reads = [name for name in after if name.startswith("files read for") and name in before]
    # Where nearly every key occurs, no probe may have met an absent one.
    assert len(reads) >= 2
    for name in reads:
        assert number(before[name]) == pytest.approx(number(after[name]), rel=0.25, abs=0.5)


@pytest.mark.parametrize(
    "predicate",
    [
        "late = 4321", "late = -1", "late BETWEEN 990 AND 1010", "late IN (5, 7000) OR late < 3",
        "late > 100 AND f IS NULL", "late IS NULL", "NOT (late >= 20)", "f > 1 ; ;",
    ],
)  # fmt: skip
def test_a_predicate_reads_what_is_told(tables: Lab, predicate: str) -> None:
    """The files of the predicate are those that EXPLAIN counts once the index is there."""
    before = told(tables, f"ESTIMATE SIEVE INDEX ON small (late) WHERE {predicate}")
    tables.sql("CREATE SIEVE INDEX ON small (late)")
    try:
        (scan,) = tables.explain(f"SELECT * FROM small WHERE {predicate.rstrip('; ')}")
    finally:
        tables.sql("DROP SIEVE INDEX ON small (late)")
    words = before["files read for the predicate"]
    assert abs(number(words) - scan["files_read"]) <= 1
    assert f"without the index {scan['files_total']}," in words
    assert ("no part" in words) == (predicate == "f > 1 ; ;")


def test_a_predicate_on_a_part_of_a_large_table(tables: Lab) -> None:
    """A point and a range anywhere get windows of their own."""
    point, wide = 1_234_567, 2_000_000
    for predicate, least in ((f"late = {point}", 1), (f"late BETWEEN {point} AND {wide}", 6)):
        on = f"ON large (late) OPTIONS ({WIDE})"
        words = told(tables, f"ESTIMATE SIEVE INDEX {on} WHERE {predicate}")[
            "files read for the predicate"
        ]
        files = len(tables.sql(f"SELECT DISTINCT input_file_name() FROM large WHERE {predicate}"))
        assert files >= least
        assert files <= number(words) <= files + 1


def test_partitions_are_pruned_first(tables: Lab) -> None:
    """What Spark would not read anyway is not counted."""
    words = told(tables, "ESTIMATE SIEVE INDEX ON parts (late) WHERE p = 3 AND late = 700")
    assert words["files read for the predicate"].startswith("1 expected; without the index 2,")


def test_a_table_without_files(tables: Lab) -> None:
    """Nothing is expected of it, and that is told."""
    before = told(tables, "ESTIMATE SIEVE INDEX ON empty (late) WHERE late = 3")
    assert (before["files"], before["bytes"]) == ("0", "0")
    assert before["files read for the predicate"].startswith("0 expected")


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
def test_bad_input_is_refused_in_words(tables: Lab, statement: str, words: str) -> None:
    """What is wrong with it, and nothing is left behind."""
    with pytest.raises(AnalysisException, match=words):
        tables.sql(f"ESTIMATE SIEVE INDEX {statement}")
    assert tables.sql("SHOW SIEVE INDEXES") == []
