"""For every shape of index, queries return the same rows, and indexes stay within their budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from spark_session import Answer, Lab

LONG = pytest.mark.long
SHAPES = ("auto", "intervals", "map", "sieve")
FILES = 16
WITHOUT: dict[str, Answer] = {}
"""Answers without an index, which stay valid because the tables do not change."""


@pytest.fixture(scope="module")
def tables(lab: Lab) -> Iterator[Lab]:
    """A table of keys of several types, mostly ascending, and a table of unusual columns."""
    with lab.database("shapes"):
        lab.sql(f"""
            CREATE TABLE t USING parquet AS SELECT id AS row,
              CASE WHEN id % 50 = 7 THEN (id * 7919) % 8000 ELSE id END AS late,
              concat('https://example.org/item/', lpad(cast((id * 7919) % 8000 AS string), 6, '0'))
                AS url,
              xxhash64(id) AS noise,
              concat('tenant-', id % 40, repeat('/same', 12), hex(xxhash64(id))) AS path,
              cast((id * 7919) % 8000 AS decimal(30,2)) AS wide,
              CASE WHEN id % 9 > 0 THEN cast(id AS double) / 7 END AS f,
              date_add(DATE '2020-01-01', cast(id DIV 100 AS int)) AS day
            FROM range(0, 8000, 1, {FILES})""")
        lab.sql("""
            CREATE TABLE odd USING parquet AS SELECT id, 5 AS one, cast(NULL AS int) AS none,
              cast('NaN' AS double) AS nan, id % 2 = 0 AS flag,
              CASE id WHEN 0 THEN -9223372036854775808 WHEN 39 THEN 9223372036854775807
                ELSE id END AS ends
            FROM range(0, 40, 1, 4)""")
        yield lab


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_rows(tables: Lab, shape: str) -> None:
    """Queries for present keys, absent keys, lists, ranges and negations return the same rows."""
    tables.sql(
        f"CREATE SIEVE INDEX ON t (late, url, noise, wide, f, day) OPTIONS (shape = '{shape}')"
    )
    noise = tables.sql("SELECT noise FROM t WHERE row IN (77, 4001) ORDER BY row")
    few = [
        "late = 4321", "late = -1", "late = 8000", "late IN (10, 7990)",
        "late BETWEEN 990 AND 1010", "late < 3 OR late > 7998", "url = 'nope'",
        "url = 'https://example.org/item/001234'",
        "url IN ('https://example.org/item/000001', 'x')", f"noise = {noise[0][0]}",
        f"noise = {noise[0][0] + 1}", f"noise IN ({noise[0][0]}, {noise[1][0]})", "wide = 77.00",
        "wide = 77.01", "f = 100.0D", "f IS NULL AND late = 9", "day = DATE '2020-02-01'",
        "late = 4321 AND url = 'nope'", "late <=> 5", "late = 4321 OR late IS NULL",
    ]  # fmt: skip
    many = ("NOT (late = 5)", "late != 5", "f IS NULL", "url LIKE 'https%'", "wide > 0")
    # Spark plans one query with many scans faster than many queries.
    scans = [
        f"SELECT {k}, count(*), sum(row) FROM t WHERE {where}"
        for k, where in enumerate((*few, *many))
    ]
    tables.check(" UNION ALL ".join(scans), known=WITHOUT)
    tables.check("SELECT row FROM t WHERE late = 4000", at_most=3, known=WITHOUT)
    tables.check("SELECT row FROM t WHERE day = DATE '2020-02-01'", exactly=1, known=WITHOUT)
    tables.check("SELECT row FROM t WHERE late = -1", exactly=0, known=WITHOUT)
    if shape == "map":
        tables.check(f"SELECT row FROM t WHERE noise = {noise[0][0]}", exactly=1)
        tables.check("SELECT row FROM t WHERE url = 'https://example.org/item/001234'", exactly=1)
        tables.check("SELECT row FROM t WHERE wide = 77.00", exactly=1)
    for column in ("late", "url", "noise", "wide", "f", "day"):
        tables.sql(f"DROP SIEVE INDEX ON t ({column})")


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_columns(tables: Lab, shape: str) -> None:
    """Indexes also skip files by columns of one value, only NULL, only NaN, or type limits."""
    tables.sql(f"CREATE SIEVE INDEX ON odd (one, none, nan, ends) OPTIONS (shape = '{shape}')")
    for where, files in {
        "one = 5": 4, "one = 6": 0, "none = 1": 0, "none IS NULL": 4, "nan = 1": 0,
        "nan = double('NaN')": 4, "ends = 9223372036854775807": 1,
        "ends = -9223372036854775808": 1, "ends < 0": 1, "ends >= 30": 1,
    }.items():  # fmt: skip
        query = f"SELECT id FROM odd WHERE {where}"
        if shape == "sieve" and where.startswith("ends"):
            # A block as wide as the type's range only separates the type's limits from other
            # values.
            tables.check(query, at_most=3, known=WITHOUT)
        else:
            tables.check(query, exactly=files, known=WITHOUT)
    for column in ("one", "none", "nan", "ends"):
        tables.sql(f"DROP SIEVE INDEX ON odd ({column})")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("budget", ["5KB", "10KB", "100KB"])
def test_run_files_stay_within_the_budget(tables: Lab, budget: str) -> None:
    """The sum of a run's file sizes stays within the budget."""
    tables.sql(f"CREATE SIEVE INDEX cheap ON t (noise) OPTIONS (budget = '{budget}')")
    facts = tables.facts("cheap")
    location = tables.spark.catalog.getDatabase("shapes").locationUri.removeprefix("file:")
    (folder,) = [p for p in (Path(location) / ".sieve").iterdir() if p.name == facts["uuid"]]
    size = sum(p.stat().st_size for p in (folder / "runs").rglob("*.parquet"))
    assert 0 < size <= int(budget.removesuffix("KB")) * 1024
    tables.check("SELECT count(*) FROM t WHERE noise = 12345")
    tables.sql("DROP SIEVE INDEX cheap ON t")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("column", "budget", "chosen"),
    [
        ("noise", "5KB", False),
        pytest.param("noise", "24KB", False, marks=LONG),
        ("path", "24KB", True),
    ],
)
def test_auto_chooses_a_map_if_it_reads_fewer_files(
    tables: Lab, column: str, budget: str, chosen: bool
) -> None:
    """If long strings share key codes, `auto` chooses a hash map that fits into the budget.

    For unique numbers with different codes, `auto` chooses another shape, because fewer bytes
    suffice. ESTIMATE predicts the shape that the build then chooses with `auto`.
    """
    on = f"ON t ({column}) OPTIONS (budget = '{budget}')"
    (key,) = tables.sql(f"SELECT {column} FROM t WHERE row = 4001")[0]
    words = "files read for a key that occurs"
    (told,) = tables.spark.sql(f"ESTIMATE SIEVE INDEX EXTENDED {on}").collect()
    tables.sql(f"CREATE SIEVE INDEX few {on}")
    try:
        shapes = {shape for (shape,) in tables.sql("SELECT shape FROM sieve_segments('t', 'few')")}
        assert ("map" in shapes) == chosen
        found = dict(tables.sql("DESCRIBE SIEVE INDEX few ON t"))[words]
        assert found.startswith(f"{told.files_present:.2f} of ")
        assert ("map" in told.shape) == chosen
        most = FILES if budget == "5KB" else 1
        tables.check(f"SELECT row FROM t WHERE {column} = {key!r}", at_most=most)
        tables.check(f"SELECT count(*) FROM t WHERE {column} >= {key!r}")
        tables.check(f"SELECT count(*) FROM t WHERE {column} < {key!r}")
    finally:
        tables.sql("DROP SIEVE INDEX few ON t")
    location = tables.spark.catalog.getDatabase("shapes").locationUri.removeprefix("file:")
    assert list((Path(location) / ".sieve").rglob("*.parquet")) == []


@pytest.mark.long
def test_the_default_index_finds_unique_scattered_keys(tables: Lab) -> None:
    """With default options, a query for a key reads one file, and other queries read few."""
    tables.sql("CREATE SIEVE INDEX ON t (noise)")
    assert tables.facts("noise_sieve")["options"] == "shape = auto, budget = auto, payback = 10"
    for key, row in tables.sql("SELECT noise, row FROM t WHERE row IN (77, 4001, 7999)"):
        tables.check(f"SELECT row FROM t WHERE noise = {key}", exactly=1)
        assert [tuple(r) for r in tables.sql(f"SELECT row FROM t WHERE noise = {key}")] == [(row,)]
    tables.check("SELECT count(*), sum(row) FROM t WHERE noise > 0")
    tables.sql("ALTER SIEVE INDEX noise_sieve ON t SET OPTIONS (payback = 1)")
    tables.sql("REFRESH SIEVE INDEX noise_sieve ON t")
    assert tables.facts("noise_sieve")["options"] == "shape = auto, budget = auto, payback = 1"
    tables.sql("DROP SIEVE INDEX noise_sieve ON t")


@pytest.mark.long
def test_map_reads_at_most_one_file_for_an_absent_key(tables: Lab) -> None:
    """With 4,000 keys in five files each, a query for an absent key reads 0 or 1 file on average.

    No query for an absent key reads more than six files.
    """
    tables.sql(f"""
        CREATE TABLE plane USING parquet PARTITIONED BY (file) AS
        SELECT /*+ REPARTITION(1) */ md5(cast(k AS string)) AS tail,
          concat(uuid(), uuid(), uuid(), uuid()) AS wide, file
        FROM (SELECT id % 4000 AS k, pmod(xxhash64(id), {FILES}) AS file FROM range(24000))""")
    tables.sql("CREATE SIEVE INDEX ON plane (tail) OPTIONS (shape = 'map')")
    absent = [f"SELECT file FROM plane WHERE tail = md5('x{n}')" for n in range(40)]
    tables.check(" UNION ALL ".join(absent), at_most=39)
    for query in absent[:5]:
        tables.check(query, at_most=6)
    present = "SELECT file FROM plane WHERE tail = md5('77') ORDER BY file"
    tables.check(present, at_most=6)
    tables.sql("DROP TABLE plane")


def test_describe_shows_the_expected_reads(tables: Lab) -> None:
    """DESCRIBE shows how many files a query reads with the index, a perfect index, and min/max."""
    tables.sql("CREATE SIEVE INDEX ON t (late)")
    facts = dict(tables.sql("DESCRIBE SIEVE INDEX late_sieve ON t"))
    words = facts["files read for a key that occurs"].replace(";", "").replace(",", "").split()
    read, least, minmax = float(words[0]), float(words[6]), float(words[-1])
    assert 1 <= least <= read < minmax <= FILES
    assert "files read for a range of 0.05% of the domain" in facts
    tables.sql("CREATE SIEVE INDEX cheap ON t (noise) OPTIONS (budget = '4KB')")
    facts = dict(tables.sql("DESCRIBE SIEVE INDEX cheap ON t"))
    assert "shape = 'map'" in facts["advice"]
    for name in ("late_sieve", "cheap"):
        tables.sql(f"DROP SIEVE INDEX {name} ON t")


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("t (late) OPTIONS (budget = '0%')", "above 0%"),
        ("t (late) OPTIONS (budget = '-1MB')", "above 0%"),
        ("t (late) OPTIONS (budget = '101%')", "at most 100%"),
        ("t (late) OPTIONS (budget = '3 apples')", "such as '1%'"),
        ("t (late) OPTIONS (shape = 'maps')", "did you mean 'map'"),
        ("t (late) OPTIONS (shape = 'sieve', budget = '1%')", "has no option 'budget'"),
        ("odd (flag) OPTIONS (shape = 'map')", "boolean"),
        (
            "t (noise) OPTIONS (shape = 'map', budget = '5KB')",
            "a map of [0-9]+ keys takes",
        ),
    ],
)
def test_wrong_options_are_refused(tables: Lab, rest: str, words: str) -> None:
    """If options are wrong, CREATE names the allowed values and leaves no file behind."""
    with pytest.raises(AnalysisException, match=words):
        tables.sql(f"CREATE SIEVE INDEX refused ON {rest}")
    assert tables.sql("SHOW SIEVE INDEXES IN shapes") == []


def test_options_change_with_a_refresh(tables: Lab) -> None:
    """If SET OPTIONS changes the shape, REFRESH builds the new shape, with its default budget."""
    tables.sql("CREATE SIEVE INDEX ON t (url)")
    tables.sql("ALTER SIEVE INDEX url_sieve ON t SET OPTIONS (shape = 'map')")
    facts = dict(tables.sql("DESCRIBE SIEVE INDEX url_sieve ON t"))
    assert facts["options after next refresh"] == "shape = map, budget = 50%"
    tables.sql("REFRESH SIEVE INDEX url_sieve ON t")
    assert dict(tables.sql("DESCRIBE SIEVE INDEX url_sieve ON t"))["shape"] == "map"
    tables.check("SELECT row FROM t WHERE url = 'https://example.org/item/000077'", exactly=1)
    tables.sql("DROP SIEVE INDEX url_sieve ON t")
