"""Indexes on array elements: queries skip files without a match, and return the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab, together

FILES = 8
COLUMNS = (
    "tags",
    "items.price",
    "map_keys(attrs)",
    "map_values(attrs)",
    "scores",
    "s.days",
    "transform(map_keys(attrs), k -> upper(k))",
    "transform(tags, (t, n) -> concat(t, n))",
)


@pytest.fixture(scope="module")
def posts(lab: Lab) -> Iterator[Lab]:
    """A table in the order of ``id``; in some rows, ``tags`` is NULL, empty, or contains NULL."""
    with lab.database("elements"):
        columns = (
            "id, CASE id % 100 WHEN 10 THEN NULL WHEN 20 THEN array() WHEN 30 THEN array(NULL) "
            "WHEN 40 THEN array(NULL, 'none') ELSE "
            "array(concat('t', lpad(id, 4, '0')), 'all', concat('f', id DIV 1000)) END AS tags, "
            "array(struct(id AS price, 'x' AS name, id % 2 AS more), "
            "if(id = 6500, NULL, struct(id + 100000 AS price, 'y' AS name, 0 AS more))) AS items, "
            "map(concat('k', id), id, 'k', -id) AS attrs, struct(id AS x, "
            "array(date_add(date'2026-01-01', int(id DIV 100))) AS days) AS s, "
            "CASE id WHEN 1234 THEN array(double('NaN')) WHEN 2345 THEN array(-0.0D) "
            "ELSE array(id + 0.5D) END AS scores"
        )
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT {columns} FROM range(0, 8000, 1, {FILES})")
        lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(COLUMNS)})")
        with lab.setting("spark.sieve.audit.sample", "1"):
            yield lab


QUERIES = {
    "contains": ("array_contains(tags, 't0042')", 1),
    "an absent element": ("array_contains(tags, 'T0042')", 0),
    "contains NULL": ("array_contains(tags, CAST(NULL AS STRING))", 0),
    "two elements of one row": ("array_contains(tags, 't0042') AND array_contains(tags, 'all')", 1),
    "two elements of two rows": (
        "array_contains(tags, 't0042') AND array_contains(tags, 't0043')",
        1,
    ),
    "elements of two files": ("array_contains(tags, 't0042') AND array_contains(tags, 't7043')", 0),
    "OR": ("array_contains(tags, 't0042') OR array_contains(tags, 't7043')", 2),
    "overlap": ("arrays_overlap(tags, array('t0042', 't7043', NULL))", 2),
    "overlap turned around": ("arrays_overlap(array('t0042'), tags)", 1),
    "overlap with nothing": ("arrays_overlap(tags, array(CAST(NULL AS STRING)))", 8),
    "exists": ("exists(tags, e -> e = 't0042')", 1),
    "exists IN": ("exists(tags, e -> e IN ('t0042', 't7043'))", 2),
    "exists in a range": ("exists(tags, e -> e > 't0990' AND e < 't1010')", 2),
    "two ranges of two elements": (
        "exists(tags, e -> e < 'b') AND exists(tags, e -> e BETWEEN 't0042' AND 't0043')",
        1,
    ),
    "exists with a prefix": ("exists(tags, e -> e LIKE 't00%')", 1),
    "exists with another column": ("exists(tags, e -> e = 't0042' AND id = 42)", 1),
    "exists with another name": ("exists(tags, other -> 't0042' = other)", 1),
    "two variables": ("exists(tags, e -> exists(tags, f -> e = 't0042' AND f = 'all'))", 8),
    "exists NULL": ("exists(tags, e -> e IS NULL)", 8),
    "NOT": ("NOT array_contains(tags, 't0042')", 8),
    "NOT an absent element": ("NOT array_contains(tags, 'nothing')", 8),
    "NOT exists": ("NOT exists(tags, e -> e > 'b')", 8),
    "NOT exists, true only for arrays without elements": ("NOT exists(tags, e -> e < 't9')", 8),
    "NOT overlap": ("NOT arrays_overlap(tags, array('all'))", 8),
    "NULL of a predicate": ("array_contains(tags, 't0042') IS NULL", 8),
    "not true": ("(array_contains(tags, 't0042')) IS NOT TRUE", 8),
    "true": ("(array_contains(tags, 't0042')) IS TRUE", 1),
    "not false": ("(array_contains(tags, 't0042')) IS NOT FALSE", 8),
    "for all": ("forall(tags, e -> e > 'b')", 8),
    "the array": ("tags = array('t0042', 'all', 'f0')", 8),
    "no array": ("tags IS NULL", 8),
    "a position": ("array_position(tags, 't0042') = 1", 8),
    "its size": ("size(tags) = 2", 8),
    "a field of structs": ("array_contains(items.price, 4200L)", 1),
    "a field of structs in a range": ("exists(items.price, p -> p < 500)", 1),
    "a field of an element": ("exists(items, i -> i.price = 4200)", 1),
    "a field of an element, in a range": (
        "exists(items, i -> i.PRICE > 7990 AND i.price < 9000)",
        1,
    ),
    "a field of an element, beside others": (
        "exists(items, i -> i.price IN (4200, 5) AND i.more = 0 AND i.name < 'z' AND id > 7)",
        2,
    ),
    "fields of two elements": (
        "exists(items, i -> i.price = 4200) AND exists(items, i -> i.price = 104200)",
        1,
    ),
    "a field of two variables": (
        "exists(items, i -> exists(items, j -> i.price = 4200 OR j.price = 104200))",
        8,
    ),
    "a field, or another one": ("exists(items, i -> i.price = 4200 OR i.more = 1)", 8),
    "a field that is NULL": ("exists(items, i -> i.price IS NULL)", 1),
    "NOT of a field": ("NOT exists(items, i -> i.price = 4200)", 8),
    "its other spelling": ("array_contains(ITEMS.Price, 104200L)", 1),
    "keys of a map": ("map_contains_key(attrs, 'k4200')", 1),
    "keys of a map, an array": ("array_contains(map_keys(attrs), 'k4200')", 1),
    "values of a map": ("array_contains(map_values(attrs), -4200L)", 1),
    "a value of a key": ("attrs['k'] = -4200", 8),
    "dates": ("exists(s.days, d -> d >= '2026-03-15')", 1),
    "NaN": ("array_contains(scores, double('NaN'))", 1),
    "a zero": ("array_contains(scores, 0.0D)", 1),
    "a rising function": ("exists(scores, e -> floor(e) = 1200)", 1),
    "a function of elements": (
        "array_contains(transform(map_keys(attrs), x -> upper(x)), 'K4200')",
        1,
    ),
    "another function of elements": (
        "array_contains(transform(map_keys(attrs), x -> lower(x)), 'k4200')",
        8,
    ),
    "exists with a function of elements": (
        "exists(transform(map_keys(attrs), x -> upper(x)), k -> k IN ('K4200', 'K5'))",
        2,
    ),
    "exists with an indexed function": ("exists(map_keys(attrs), k -> upper(k) = 'K4200')", 1),
    "exists with a function and the element": (
        "exists(map_keys(attrs), k -> upper(k) = 'K4200' AND k = 'k5')",
        0,
    ),
    "exists with a function or the element": (
        "exists(map_keys(attrs), k -> upper(k) = 'K4200' OR k = 'k5')",
        2,
    ),
    "exists without a function": ("exists(map_keys(attrs), k -> k IN ('k4200', 'k5'))", 2),
    "exists with a function that is NULL": ("exists(map_keys(attrs), k -> upper(k) IS NULL)", 0),
    "NOT exists with a function": ("NOT exists(map_keys(attrs), k -> upper(k) > 'A')", 8),
    "a function of two variables": (
        "array_contains(transform(tags, (x, y) -> concat(x, y)), 't00420')",
        1,
    ),
    "its variables in another order": (
        "array_contains(transform(tags, (x, y) -> concat(y, x)), '0t0042')",
        8,
    ),
}


OFTEN = {
    "contains", "contains NULL", "elements of two files", "OR", "overlap", "overlap with nothing",
    "two ranges of two elements", "exists with another column", "two variables", "exists NULL",
    "NOT", "NOT exists, true only for arrays without elements", "the array", "a field of structs",
    "a field of an element, beside others", "a field of two variables", "a field that is NULL",
    "values of a map", "NaN", "a rising function", "another function of elements",
    "exists with a function or the element", "exists with a function that is NULL",
    "NOT exists with a function", "its variables in another order",
}  # fmt: skip
"""The queries that `make test` runs. The other queries differ from one of these in a few words."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in QUERIES],
)
def test_a_filter_reads_the_files_that_can_match(posts: Lab, name: str) -> None:
    """A filter on array elements reads only the files in which an array can match."""
    predicate, files = QUERIES[name]
    posts.check(f"SELECT * FROM t WHERE {predicate}", exactly=files)


def test_one_field_of_the_structs_is_enough(posts: Lab) -> None:
    """An index on one field of the structs in an array serves queries of only this field."""
    posts.check("SELECT id FROM t WHERE array_contains(items.price, 4200L)", exactly=1)
    posts.check("SELECT items.name FROM t WHERE array_contains(items.price, 4200L)", exactly=1)


def test_orders_extremes_and_joins_do_not_use_elements(posts: Lab) -> None:
    """ORDER BY, MIN, MAX and joins use whole arrays, so they do not use an index on elements."""
    posts.check("SELECT id FROM t ORDER BY scores DESC LIMIT 3", exactly=8)
    posts.check("SELECT max(scores), min(tags), count(scores) FROM t", exactly=8)
    posts.check("SELECT count(*) FROM t WHERE scores IS NOT NULL", exactly=8)
    posts.check("SELECT a.id FROM t a JOIN t b ON a.tags = b.tags WHERE b.id = 42", exactly=16)


def test_unsupported_part_of_a_condition_has_a_reason(posts: Lab) -> None:
    """If a function in a condition on elements prevents skipping, the reason names the function."""
    for predicate, function in (
        ("NOT array_contains(tags, 'all')", "array_contains"),
        ("exists(tags, e -> reverse(e) = 'x')", "reverse"),
        ("forall(tags, e -> e = 'x')", "forall"),
    ):
        (row,) = posts.explain(f"SELECT id FROM t WHERE {predicate}")
        assert row["reasons"] == f"unsupported-predicate ({function}): 8", row["reasons"]


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("items", "items has structs in an array or map"),
        ("items.nothing", "nothing"),
        ("array(array(id))", "array<bigint>"),
        ("transform(items, i -> i.price)", "items has structs in an array or map"),
    ],
)
def test_column_without_elements_is_refused(posts: Lab, typed: str, reason: str) -> None:
    """CREATE refuses an index on elements of a column without elements, and says why."""
    with pytest.raises(PySparkException) as error:
        posts.sql(f"CREATE SIEVE INDEX wrong ON t ({typed})")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    "kind",
    [
        "parquet",
        pytest.param("orc", marks=pytest.mark.long),
        pytest.param("json", marks=pytest.mark.long),
    ],
)
def test_statements_on_elements(lab: Lab, kind: str) -> None:
    """Each SIEVE statement accepts an array's name as a column."""
    with lab.database("spelled"):
        lab.sql(
            f"CREATE TABLE t USING {kind} AS SELECT id, IF(id % 7 = 0, NULL, array(id, -id)) AS "
            f"Tags, 'x' AS word FROM range(0, 80, 1, {FILES})"
        )
        (row,) = lab.sql("CREATE SIEVE INDEX ON t (tags)")
        assert row[0] == "tags_sieve"
        (row,) = lab.sql("CREATE SIEVE INDEX IF NOT EXISTS ON t (TAGS)")
        assert row[5] == "unchanged"
        query = "SELECT id FROM t WHERE array_contains(tags, -41L)"
        lab.check(query, exactly=1)
        lab.sql("INSERT INTO t SELECT 100, array(-41L, 5, NULL), 'x'")
        lab.check(query, exactly=2)
        (row,) = lab.sql("REFRESH SIEVE INDEX ON t (tags)")
        assert row[5] == "refreshed"
        assert lab.check(query, exactly=2).rows.total() == 2
        lab.check("SELECT id FROM t WHERE array_contains(tags, -40L)", exactly=1)
        # Queries read this file, whose arrays have no element, until REFRESH.
        lab.sql("INSERT INTO t SELECT 101, array(), 'x'")
        lab.check("SELECT id FROM t WHERE array_contains(tags, -40L)", exactly=2)
        lab.sql("REFRESH SIEVE INDEX ON t (tags)")
        lab.check("SELECT id FROM t WHERE array_contains(tags, -40L)", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
        facts = lab.facts("tags_sieve")
        assert (facts["column"], facts["kind"], facts["type"]) == ("Tags", "elements", "bigint")
        (row,) = lab.sql("ESTIMATE SIEVE INDEX ON t (tags)")
        assert row[:2] == ("Tags", FILES + 2)
        assert [row[3] for row in lab.sql("SHOW SIEVE INDEXES ON t")] == ["Tags"]
        (row,) = lab.sql("CREATE OR REPLACE SIEVE INDEX ON t (tags)")
        assert row[5] == "rebuilt"
        lab.check(query, exactly=2)
        assert lab.sql("DROP SIEVE INDEX ON t (Tags)") == [("tags_sieve",)]
        assert lab.sql("SHOW SIEVE INDEXES ON t") == []


def test_declared_elements(lab: Lab) -> None:
    """The table property that declares indexes can name an array. DROP deletes this name."""
    with lab.database("declared"):
        lab.sql(
            "CREATE TABLE t USING parquet TBLPROPERTIES ('sieve.columns' = 'id, tags') AS "
            f"SELECT id, array(id) AS tags FROM range(0, 80, 1, {FILES})"
        )
        for _ in range(2):
            built = {row[0] for row in lab.sql("REFRESH SIEVE INDEX ON t")}
            assert built == {"id_sieve", "tags_sieve"}
        lab.check("SELECT id FROM t WHERE array_contains(tags, 42L)", exactly=1)
        lab.sql("DROP SIEVE INDEX ON t (tags)")
        assert {row[0] for row in lab.sql("REFRESH SIEVE INDEX ON t")} == {"id_sieve"}


def test_file_with_a_failing_array_is_always_read(lab: Lab) -> None:
    """If an array expression fails for a row, queries read the row's file and fail, too."""
    with lab.database("failing"), lab.setting("spark.sql.ansi.enabled", "true"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, IF(id = 17, 'x', string(id)) AS digits "
            f"FROM range(0, 80, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX numbers ON t (array(CAST(digits AS INT), -1))")
        query = "SELECT id FROM t WHERE array_contains(array(CAST(digits AS INT), -1), 42)"
        (row,) = lab.explain(query)
        assert row["files_read"] == 2
        with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
            lab.sql(query)


class Drawing:
    """Draws arrays of small numbers, and predicates on an array ``a`` and a number ``id``."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def literal(self) -> str:
        return self.draw.choice(["CAST(NULL AS INT)", *map(str, range(-3, 12))])

    def array(self) -> str:
        if self.draw.random() < 0.15:
            return "CAST(NULL AS ARRAY<INT>)"
        elements = ", ".join(self.literal() for _ in range(self.draw.randrange(5)))
        return f"CAST(array({elements}) AS ARRAY<INT>)"

    def condition(self, depth: int) -> str:
        """A random condition on one element."""
        if depth and self.draw.random() < 0.4:
            joined = self.draw.choice([" AND ", " OR "])
            return f"({self.condition(depth - 1)}{joined}{self.condition(depth - 1)})"
        some = self.draw.choice(
            [
                f"e {self.draw.choice(['=', '<', '>=', '<>', '<=>'])} {self.literal()}",
                f"e IN ({self.literal()}, {self.literal()})",
                f"e IS {self.draw.choice(['', 'NOT '])}NULL",
                f"e + 1 > {self.literal()}",
                f"coalesce(e, 3) = {self.literal()}",
                f"id > {self.draw.randrange(40)}",
                f"array_contains(a, {self.literal()})",
                f"exists(a, f -> e = {self.literal()} AND f = {self.literal()})",
            ]
        )
        return f"NOT ({some})" if self.draw.random() < 0.15 else some

    def predicate(self, depth: int) -> str:
        chosen = self.draw.random()
        if depth and chosen < 0.4:
            joined = self.draw.choice([" AND ", " OR "])
            return f"({self.predicate(depth - 1)}{joined}{self.predicate(depth - 1)})"
        if depth and chosen < 0.55:
            inner = self.predicate(depth - 1)
            forms = f"NOT ({inner})", f"({inner}) IS NOT TRUE", f"coalesce({inner}, TRUE)"
            return self.draw.choice(forms)
        if chosen < 0.75:
            return f"array_contains(a, {self.literal()})"
        if chosen < 0.85:
            return f"arrays_overlap(a, {self.array()})"
        return f"exists(a, e -> {self.condition(2)})"


@pytest.mark.parametrize("turns", [2, pytest.param(8, marks=pytest.mark.long)])
def test_drawn_arrays_and_predicates(lab: Lab, turns: int) -> None:
    """Random predicates on arrays return the same rows with and without the index."""
    drawing = Drawing(16)
    rows = ", ".join(f"({k}, {drawing.array()})" for k in range(40))
    with lab.database("drawn"), lab.setting("spark.sieve.audit.sample", "1"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(20, id) */ * FROM "
            f"VALUES {rows} AS v (id, a)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (a)")
        for _ in range(turns):
            predicates = [drawing.predicate(3) for _ in range(10)]
            lab.check(together(f"SELECT * FROM t WHERE {one}" for one in predicates), at_most=142)
