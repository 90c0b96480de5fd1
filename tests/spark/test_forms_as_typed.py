"""Tests each form of predicate, plain and negated, with and without Spark's optimizer rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab, together

MANY = ", ".join(str(n) for n in range(1, 12))
"""Eleven numbers in two files. Spark turns a list of more than ten constants into a set."""
TEXTS = ", ".join(f"'{n}'" for n in range(1, 12))
PREFIXES = ", ".join(f"'C{n:04}'" for n in range(1, 12))
PAIRS = ", ".join(f"({n}L, 'C{n:04}')" for n in range(1, 12))
ALL = ", ".join(map(str, range(40)))
WRONG = ", ".join(f"'D{n:04}'" for n in range(20))
NULL = "CAST(NULL AS STRING)"
INFINITY, NAN = "double('Infinity')", "double('NaN')"

TRUTHS = [
    "true <=> (id = 5)",
    "(id = 5) <=> false",
    "(id = 5) = true",
    "false = (id = 5)",
    "(id = 5) IN (true, NULL)",
    "array_contains(array(false, NULL), id = 5)",
    "flag IN (true, NULL)",
    "flag <> true",
    "false <=> flag",
    "array_contains(array(true), flag)",
    "array_contains(array(5L, 15L), id)",
    "array_contains(array(5L, NULL), id)",
    "array_contains(array(-0.0D, 5D), x)",
    "x IN (-0.0D, 5D)",
    "id <=> NULL",
    "id + 1 <=> NULL",
    "upper(code) <=> NULL",
    "id IN (5, NULL)",
    "5 < id AND 35 >= id",
    "nullif(id, 12L) < 20",
    "CASE WHEN nullif(id, 12L) < 20 THEN 1 WHEN id > 30 THEN 2 ELSE 3 END = 3",
    "coalesce(id = 5, flag)",
    "if(id = 5, NULL, flag)",
    "id = 5 OR part = 2",
    "part = 2 OR id = 5",
    "id = 25 AND part = 7",
    "part = 7 AND id = 25",
    "id = 5 OR (part = 2 AND code = 'C0012')",
]
TEXT = [
    "'5' = CAST(id AS STRING)",
    "CAST(id AS STRING) <=> '5'",
    "'5' <=> CAST(id AS STRING)",
    f"CAST(id AS STRING) IN ({TEXTS})",
    "CAST(flag AS STRING) = 'true'",
    "CAST(dec AS STRING) = '6.25'",
    "'C0005' = left(code, 9)",
    "left(code, 9) <=> 'C0005'",
    "'C0005' <=> left(code, 9)",
    "left(code, 9) IN ('C0005', concat(code, ''))",
    f"left(code, 9) IN ({PREFIXES})",
    "left(code, 5) LIKE 'C000_'",
    "left(code, 3) LIKE 'C000_'",
    "startswith(left(code, 3), 'C000')",
    "'C001' < left(code, 5)",
    "'C001' <= left(code, 4)",
    "'C001' > left(code, 5)",
    "'C001' >= left(code, 5)",
    "left(code, 5) > 'C001'",
    "left(code, 5) <= 'C001'",
    "left(code, 1) > CAST(X'FF' AS STRING)",
    "left(code, 1) < CAST(X'FF' AS STRING)",
    "left(name, 3) = 'äöü'",
    "substr(name, 1, 3) = 'äöü'",
    "left(name, 4) IN ('äöüa', 'abca')",
    "left(name, 2) > 'äö'",
    "left(name, 3) <=> 'äöü'",
    "name LIKE 'äö%'",
    "startswith(name, 'äöü')",
    "code RLIKE '^.*5$'",
    "code LIKE ALL ('C%', '%5')",
    "code LIKE ALL ('C0%', NULL)",
    "code LIKE ANY ('C0005', NULL)",
    "CAST(ts AS STRING) LIKE '2026-02-0_ 00%'",
    "date_format(ts, 'dd.MM.yyyy') = '05.02.2026'",
    "date_format(day, 'd') > '5'",
    "from_unixtime(unix, 'dd/MM/yyyy') = '05/02/2026'",
    "from_unixtime(unix, 'E') <= 'Mon'",
    "CAST(left(CAST(ts AS STRING), 9) AS DATE) = '2026-02-01'",
]
NUMBERS = [
    f"id + 1 IN ({MANY})",
    "id * 0 = 0",
    "0 * id = 0",
    "dec * 0 = 0",
    "dec / 0 = 0",
    "id DIV 0 = 0",
    "x * 0D = 0",
    "0D * x >= 0",
    "x / 0D > 0",
    f"x * {INFINITY} = {INFINITY}",
    f"x * {INFINITY} = {NAN}",
    f"f * float({INFINITY}) > 0",
    f"f * float({INFINITY}) = float({INFINITY})",
    f"f * float({INFINITY}) = float({NAN})",
    f"-{INFINITY} * x > 0",
    f"x / {INFINITY} = 0",
    f"x + {NAN} = {NAN}",
    f"x - {INFINITY} < 0",
    "big DIV 1 = 12",
    "dec DIV 2 = 3",
    "round(dec, -1) = 10",
    "bround(x, -1) = 10",
    "ceil(dec, -1) = 10",
    "round(id, -1) = 10",
]
TIMES = [
    "extract(YEAROFWEEK FROM day) = 2026",
    "next_day(day, 'MON') = '2026-02-02'",
    "next_day(day, 'none') = '2026-02-02'",
    f"next_day(day, {NULL}) > '1970-01-01'",
    "trunc(day, 'none') < '2026-02-02'",
    f"trunc(day, {NULL}) = '1970-01-01'",
    "date_trunc('none', ts) < '2026-02-02'",
    f"date_trunc({NULL}, ts) >= '1970-01-01'",
    "ts + make_interval(0, 1, 0, 1, 2) = '2026-03-01 02:00:00'",
    "ts + make_interval(0, 1) = '2026-02-28'",
    "n - make_interval(0, 1, 0, 1) < TIMESTAMP_NTZ '2026-01-27'",
    "timestampadd(MONTH, 1, ts) = '2026-02-28'",
    "timestampadd(DAY, 1, day) = '2026-02-28'",
    "ts - TIMESTAMP '2026-02-01' = INTERVAL 1 DAY",
    "to_timestamp(from_unixtime(unix)) = '2026-02-05'",
    "CAST(left(CAST(n AS STRING), 9) AS TIMESTAMP) = '2026-02-01'",
    "k < 0 AND timestampadd(YEAR, 9223372036854775807, ts) > '2026-02-01'",
    "k < 0 AND timestampadd(WEEK, 9223372036854775807, ts) > '2026-02-01'",
]
PARTS = [
    "instr(word, 'ord0005') > 0",
    "instr(word, 'ord0005') >= 1",
    "instr(word, 'ord0005') = 2",
    "instr(word, 'ord0005') = 0",
    "0 < instr(word, 'ord0005')",
    "1 <= instr(word, 'ord0005')",
    "2 = instr(word, 'ord0005')",
    "0 = instr(word, 'ord0005')",
    "locate('ord0005', word, CAST(NULL AS INT)) = 0",
    "contains(word, 'ord0005')",
    "startswith(word, 'word0005')",
    "endswith(word, 'd0005.')",
    "word LIKE '%d!_0005%' ESCAPE '!'",
    "word LIKE '%ord0005_'",
    "word RLIKE '0005'",
]
ARRAYS = [
    "array_contains(list, 5L)",
    "exists(list, e -> e = 5 OR e IS NULL)",
    "exists(list, e -> e > 130)",
    "forall(list, e -> e < 130)",
    "arrays_overlap(list, array(5L, NULL))",
    "arrays_overlap(list, array(CAST(NULL AS BIGINT)))",
    "array_contains(other, 5L)",
    "array_contains(other, 5L) OR array_contains(list, 15L)",
    "exists(items, i -> i.price = 5)",
    "exists(items, i -> i.name = 'a')",
    "exists(items, i -> i.price = 5 AND st.n = 5)",
    "size(filter(list, e -> e = 5)) = 1",
]
TUPLES = [
    "(id, code) = named_struct('a', 5L, 'b', 'C0005')",
    "named_struct('a', 5L, 'b', 'C0005') = (id, code)",
    "(id, code) IN ((5L, 'C0005'), (6L, 'C0007'))",
    f"(id, code) IN ({PAIRS})",
    "(id, code) IN ((5L, 'C0005'), CAST(NULL AS STRUCT<a: BIGINT, b: STRING>))",
    f"(id, code) IN ((CAST(NULL AS BIGINT), {NULL}))",
    "(id, code) <=> named_struct('a', CAST(NULL AS BIGINT), 'b', CAST(NULL AS STRING))",
    "(id, lower(code)) IN ((5L, 'c0005'))",
    "id <=> NULL AND code <=> NULL",
    "id <=> 5 AND 'C0005' <=> code",
    "id IN (5, NULL) AND code = 'C0005'",
    "id IN (NULL) AND code = 'C0005'",
    "dec = 6.25 AND id = 5",
    "(dec, id) IN ((CAST(6.25 AS DECIMAL(9, 2)), 5L), (CAST(2.5 AS DECIMAL(9, 2)), 2L))",
    "(dec, id) = named_struct('a', CAST(6.25 AS DECIMAL(9, 2)), 'b', 5L)",
    f"id IN ({ALL}) AND code IN ({PREFIXES}, {WRONG})",
]
PREDICATES = {
    "truths": TRUTHS,
    "text": TEXT,
    "numbers": NUMBERS,
    "times": TIMES,
    "parts": PARTS,
    "arrays": ARRAYS,
    "tuples": TUPLES,
}
FORMS = {"plain": ("{}", "({}) IS NOT TRUE"), "negated": ("NOT ({})", "({}) IS FALSE")}
RULES = ", ".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in (
        "BooleanSimplification", "LikeSimplification", "NullDownPropagation", "NullPropagation",
        "OptimizeIn", "PushFoldableIntoBranches", "ReorderAssociativeOperator",
        "ReplaceNullWithFalseInPredicate", "SimplifyBinaryComparison", "SimplifyCasts",
        "SimplifyConditionals", "UnwrapCastInBinaryComparison",
    )
)  # fmt: skip
FOLDING = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
_WITHOUT: dict[tuple[str, str], set[str]] = {}
"""Caches the answers without the index. Optimizer rules change no answer."""
EXCLUDED = {"optimized": "none", "typed": RULES, "unfolded": f"{RULES}, {FOLDING}"}
"""For each way to run a query, the optimizer rules that Spark omits."""
OFTEN = {
    "plain-optimized": {"truths", "text"},
    "negated-typed": {"numbers", "parts"},
}
"""For each pair of forms and rules that `make test` runs, the kinds of predicates."""


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[str]:
    """A table with a row per day from 2026-01-25, in four files; only the last row has a ``k``."""
    with (
        lab.database("typed"),
        lab.settings({"spark.sql.ansi.enabled": "false", "spark.sql.files.minPartitionNum": "1"}),
    ):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT k, id, id >= 20 AS flag, id - 20.0D AS x, "
            "if(id < 10, NULL, id DIV 10) AS part, "
            "concat(if(id < 10, 'äöü', if(id < 30, 'abc', 'äbü')), char(97 + id % 3)) AS name, "
            "float(id - 20) AS f, CAST(id * 1.25 AS DECIMAL(9, 2)) AS dec, "
            "CAST(id AS DECIMAL(38, 0)) + if(id = 22, 18446744073709551606, 0) AS big, "
            "concat('C', lpad(CAST(id AS STRING), 4, '0')) AS code, "
            "concat('word', lpad(CAST(id AS STRING), 4, '0'), '.') AS word, "
            "array(id, id + 100) AS list, array(id) AS other, array(struct(id AS price, "
            "if(id % 2 = 0, 'a', 'b') AS name)) AS items, struct(id AS n) AS st, "
            "CAST(ts AS DATE) AS day, ts, CAST(ts AS TIMESTAMP_NTZ) AS n, "
            "unix_seconds(ts) AS unix FROM (SELECT k, id, timestamp_seconds(1769299200 + id * "
            "86400) AS ts FROM (SELECT id AS k, nullif(id, 39L) AS id FROM range(0, 40, 1, 4)))"
        )
        lab.sql(
            "CREATE SIEVE INDEX ON t (id, part, name, flag, x, f, dec, big, code, day, ts, n, "
            "unix, list, items.price, (id, code), (dec, id))"
        )
        lab.sql("CREATE SIEVE INDEX ON t (word) OPTIONS (kind = 'substring')")
        yield "typed.t"


@pytest.mark.parametrize(
    ("kind", "negation", "rules"),
    [
        pytest.param(
            kind,
            negation,
            rules,
            marks=() if kind in OFTEN.get(f"{negation}-{rules}", ()) else pytest.mark.long,
        )
        for kind in PREDICATES
        for negation in FORMS
        for rules in EXCLUDED
    ],
)
def test_the_rows_of_each_form_under_each_negation(
    lab: Lab, table: str, kind: str, negation: str, rules: str
) -> None:
    """A predicate and its negations each return the same rows with and without the index."""
    forms = [form.format(p) for form in FORMS[negation] for p in PREDICATES[kind]]
    query = together(f"SELECT k FROM {table} WHERE {form}" for form in forms)
    with lab.setting("spark.sql.optimizer.excludedRules", EXCLUDED[rules]):
        if (kind, negation) not in _WITHOUT:
            with lab.setting("spark.sieve.enabled", "false"):
                _WITHOUT[kind, negation] = set(lab.run(query).rows)
        with lab.setting("spark.sieve.strict", "true"):
            found = set(lab.run(query).rows)
    other = found ^ _WITHOUT[kind, negation]
    assert not other, [(forms[int(row[1:].split(",")[0])], row) for row in sorted(other)]


def test_texts_of_times_under_the_legacy_rules(lab: Lab) -> None:
    """Comparisons lose no row even if Spark's legacy formatter omits the zeros of milliseconds."""
    with (
        lab.database("legacy"),
        lab.setting("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT timestamp_millis(1769299200000 + id * 5) AS ts "
            "FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (ts)")
        text = "date_format(ts, 'yyyy-MM-dd HH:mm:ss.S')"
        predicates = [
            f"{text} {op} '2026-01-25 00:00:00.{n}'" for op in "=<>" for n in (5, 50, 150)
        ]
        found = lab.check(together(f"SELECT ts FROM t WHERE {p}" for p in predicates))
        assert found.rows.total() > 3


def test_decimals_with_a_negative_scale(lab: Lab) -> None:
    """A query with a literal of negative scale, such as 1E3BD, reads one file."""
    with (
        lab.database("negative"),
        lab.setting("spark.sql.legacy.allowNegativeScaleOfDecimal", "true"),
    ):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        for predicate in (
            "id * 1E3BD = 5000",
            "id * 1E3BD + 1 = 5001",
            "CAST(id * 1E3BD AS INT) = 5000",
            "7 - id * 1E3BD = -4993",
            "CAST(id * 1E3BD AS DECIMAL(9, 2)) = 5000",
        ):
            found = lab.check(f"SELECT id FROM t WHERE {predicate}", at_most=1)
            assert found.rows == {"(5,)": 1}, predicate


def test_conditionals_with_many_branches_read_all_files(lab: Lab, table: str) -> None:
    """Queries read all files if a conditional has over fifty branches or four nested levels."""
    many = " ".join(f"WHEN id = {n} THEN {n}" for n in range(60))
    deep = "id"
    for _ in range(5):
        deep = f"coalesce(nullif({deep}, 7L), 5L)"
    for chosen in (f"CASE {many} END", deep):
        lab.check(f"SELECT k FROM {table} WHERE {chosen} = 5", exactly=4)
