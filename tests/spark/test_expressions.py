"""Indexes on expressions: queries skip files without a match, and return the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from spark_session import COMPILED, Lab

FILES = 8
EXPRESSIONS = (
    "lower(email)",
    "get_json_object(payload, '$.user.id')",
    "CAST(get_json_object(payload, '$.ts') AS TIMESTAMP)",
    "from_json(payload, 'ok BOOLEAN').ok",
    "attrs['k']",
    "tags[0]",
    "upper(s.x)",
    "id % 100",
    "id DIV 2000 = 3",
    "attrs IS NULL",
    "nullif(email, 'U0042@X')",
    "right(coalesce(attrs['k'], email), 4)",
    "CASE WHEN id < 4000 THEN -id ELSE id END",
    "concat(email, '|', id)",
    "CAST(digits AS INT)",
)


@pytest.fixture(scope="module")
def users(lab: Lab) -> Iterator[Lab]:
    """Rows in the order of ``id``. In two files, `digits` contains a text that is not a number."""
    with lab.database("expressions"):
        payload = """concat('{"user":{"id":', id, '},"ts":"2026-01-', 1 + id DIV 1000,
            '","ok":', id >= 7900, '}')"""
        columns = (
            "id, concat('U', lpad(id, 4, '0'), '@X') AS email, "
            "array(concat('t', id), 'all') AS tags, "
            "IF(id % 10 = 3, NULL, map('k', concat('v', id))) AS attrs, "
            "struct(concat('s', id) AS x, id AS y) AS s, "
            "-1e20D AS low, 1e20D AS high, array(struct(id AS k)) AS parts, "
            "IF(id IN (1234, 5678), 'none', string(id)) AS digits"
        )
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT {columns}, {payload} AS payload "
            f"FROM range(0, 8000, 1, {FILES})"
        )
        with lab.setting("spark.sql.ansi.enabled", "true"):
            lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(EXPRESSIONS)})")
        lab.sql("CREATE TABLE some USING parquet AS SELECT 'u0042@x' AS email UNION ALL SELECT 'x'")
        with lab.settings({"spark.sieve.audit.sample": "1", "spark.sql.ansi.enabled": "true"}):
            yield lab


@pytest.fixture(scope="module")
def plain(users: Lab) -> Lab:
    """The table `u` has the rows of `t` and no index, so statements on it need less time."""
    users.sql(
        f"CREATE TABLE u USING parquet AS SELECT /*+ REPARTITION_BY_RANGE({FILES}, id) */ * FROM t"
    )
    return users


@pytest.fixture(scope="module")
def other(plain: Lab) -> Lab:
    """A session with the user-defined function `own`."""
    session = Lab(plain.spark.newSession())
    session.spark.udf.register("own", lambda number: number)
    return session


QUERIES = {
    "equality": ("lower(email) = 'u0042@x'", 1),
    "its other case": ("LOWER(Email) = 'u0042@x'", 1),
    "turned around": ("'u0042@x' = lower(email)", 1),
    "IN": ("lower(email) IN ('u0042@x', 'u7042@x')", 2),
    "a range": ("lower(email) BETWEEN 'u0990@x' AND 'u1010@x'", 2),
    "a prefix": ("lower(email) LIKE 'u00%'", 1),
    "absent": ("lower(email) = 'U0042@X'", 0),
    "JSON": ("get_json_object(payload, '$.user.id') = '4200'", 1),
    "JSON as an instant": ("CAST(get_json_object(payload, '$.ts') AS TIMESTAMP) > '2026-01-08'", 0),
    "a function of an expression": (
        "to_date(CAST(get_json_object(payload, '$.ts') AS TIMESTAMP)) = '2026-01-03'",
        1,
    ),
    "a field of JSON": ("from_json(payload, 'ok BOOLEAN').ok", 1),
    "its negation": ("NOT from_json(payload, 'ok BOOLEAN').ok", 8),
    "a key of a map": ("attrs['k'] = 'v4200'", 1),
    "the function for a key of a map": ("element_at(attrs, 'k') = 'v4200'", 1),
    "no key": ("attrs['k'] IS NULL", 8),
    "an element": ("tags[0] IN ('t17', 't7017')", 2),
    "a field of a struct": ("upper(s.x) = 'S6000'", 1),
    "a truth value": ("id DIV 2000 = 3", 2),
    "words": ("attrs IS NULL", 8),
    "its opposite": ("NOT (id DIV 2000 = 3)", 6),
    "two columns": ("concat(email, '|', id) = 'U0042@X|42'", 1),
    "scattered": ("id % 100 = 17", 8),
    "a choice": ("CASE WHEN id < 4000 THEN -id ELSE id END = 4200", 1),
    "no value of a choice": ("CASE WHEN id < 4000 THEN -id ELSE id END = 3000", 0),
    "a choice in a choice": ("right(coalesce(attrs['k'], email), 4) = '4200'", 1),
    "a choice under NOT": ("NOT (CASE WHEN id < 4000 THEN -id ELSE id END > -3990)", 1),
    "a choice beside another": ("coalesce(nullif(email, 'U0042@X'), 'x') = 'U4200@X'", 1),
    "OR": ("lower(email) = 'u0042@x' OR upper(s.x) = 'S6000'", 2),
    "AND": ("lower(email) < 'u2' AND upper(s.x) = 'S6000'", 0),
    "not equal": ("lower(email) <> 'u0042@x'", 8),
    "null-safe": ("attrs['k'] <=> 'v4200'", 1),
    "an expression without an index": ("upper(email) = 'U0042@X'", 8),
}


LONG = {
    "turned around",
    "its negation",
    "no key",
    "words",
    "its opposite",
    "scattered",
    "not equal",
}
"""Queries that differ from another query in one word; only `make test-long` runs them."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in QUERIES],
)
def test_a_filter_reads_the_files_that_can_match(users: Lab, name: str) -> None:
    """A filter on an indexed expression reads only the files in which a row can match."""
    predicate, files = QUERIES[name]
    users.check(f"SELECT * FROM t WHERE {predicate}", exactly=files)


def test_one_field_of_a_struct_is_enough(users: Lab) -> None:
    """An index on a field of a struct serves a query that reads only this field."""
    users.check("SELECT s.x FROM t WHERE upper(s.x) = 'S6000'", exactly=1)
    users.check("SELECT s.y FROM t WHERE upper(s.x) = 'S6000'", exactly=1)


def test_joins_orders_and_extremes(users: Lab) -> None:
    """Join keys, subquery results, ORDER BY with LIMIT, and MIN use the index on an expression."""
    on = "SELECT t.id FROM t JOIN some ON lower(t.email) = some.email"
    users.check(on, exactly=1 + 2)
    fetched = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sieve.join.pruning": "always"}
    with users.settings(fetched):
        users.check(on, exactly=1 + 2 + 2)
    users.check(
        "SELECT id FROM t WHERE lower(email) = (SELECT max(email) FROM some WHERE email > '0' "
        "AND email < 'v')",
        exactly=1 + 2,
    )
    users.check("SELECT id FROM t ORDER BY lower(email) DESC LIMIT 3", exactly=1)
    users.check("SELECT max(upper(s.x)), min(upper(s.x)) FROM t", exactly=1)
    (row, *_) = users.explain(on)
    assert row["indexes"].startswith("lower_email_sieve@")


def test_file_with_a_failing_expression_is_always_read(users: Lab) -> None:
    """If an indexed expression fails for a row, each query on the expression reads the row's file.

    A query on an expression that fails for a row raises the same error as without the index.
    """
    users.check("SELECT id FROM t WHERE try_cast(digits AS INT) = 42", exactly=8)
    query = "SELECT id FROM t WHERE CAST(digits AS INT) = 42"
    (row,) = users.explain(query)
    # The query reads three files: two with a text that is no number, and one with the wanted
    # number.
    assert row["files_read"] == 3
    for enabled in ("true", "false"):
        with (
            users.setting("spark.sieve.enabled", enabled),
            pytest.raises(PySparkException) as error,
        ):
            users.sql(query)
        assert "CAST_INVALID_INPUT" in str(error.value)
    checked = {row[2] for row in users.sql("CHECK SIEVE INDEX cast_digits_as_int_sieve ON t")}
    assert checked == {"ok", "stale"}


def test_session_without_ansi_ignores_the_index_on_a_cast(users: Lab) -> None:
    """Without ANSI mode, the indexed cast can return NULL, so queries do not use its index."""
    query = "SELECT id FROM t WHERE CAST(digits AS INT) = 42"
    with users.setting("spark.sql.ansi.enabled", "false"):
        users.check(query, exactly=8)
        (row,) = users.explain(query)
        assert row["reasons"] == "reader-changed: 8"
        users.check("SELECT id FROM t WHERE lower(email) = 'u0042@x'", exactly=1)
        users.check("SELECT id FROM t WHERE CAST(digits AS INT) IS NULL", exactly=8)
    with users.setting("spark.sql.session.timeZone", "Asia/Tokyo"):
        instant = "CAST(get_json_object(payload, '$.ts') AS TIMESTAMP)"
        users.check(f"SELECT id FROM t WHERE {instant} < '2026-01-01 09:00:00'", exactly=8)
        users.check("SELECT id FROM t WHERE lower(email) = 'u0042@x'", exactly=1)


def test_index_stays_in_use_in_sessions_of_clients(users: Lab) -> None:
    """Typical client sessions change only harmless settings, so the index stays in use."""
    clients = {"artifact.isolation.enabled": "false", "datetime.java8API.enabled": "true"}
    shown = {"binaryOutputStyle": "HEX", "variable.substitute": "false", "groupByOrdinal": "false"}
    with users.settings({f"spark.sql.{key}": value for key, value in (clients | shown).items()}):
        users.check("SELECT id FROM t WHERE lower(email) = 'u0042@x'", exactly=1)


def test_a_setting_with_its_default_value(users: Lab) -> None:
    """Setting a default value keeps the index in use, but setting a default collation does not."""
    query = "SELECT id FROM t WHERE lower(email) = 'u0042@x'"
    with users.setting("spark.sql.legacy.castComplexTypesToString.enabled", "false"):
        users.check(query, exactly=1)
    with users.setting("spark.sql.defaultStringType", "STRING COLLATE UTF8_LCASE"):
        users.check(query, exactly=FILES)


def test_session_that_replaces_a_function_ignores_the_index(users: Lab) -> None:
    """A session that replaces the function `lower` does not use the index on `lower`.

    A session that has not replaced `lower` uses the index on `lower`.
    """
    other, like = (Lab(users.spark.newSession()) for _ in range(2))
    # The filter on the plain column `id` is needed: without it, the other session's scan would use
    # no index at all.
    query = "SELECT count(*) FROM expressions.t WHERE lower(email) = 'u0042@x' AND id >= 0"
    other.spark.udf.register("lower", lambda _: "u0042@x")
    other.check(query, exactly=FILES)
    like.check(query, exactly=1)
    users.check(query, exactly=1)


@pytest.mark.parametrize(
    ("expression", "setting", "query"),
    [
        pytest.param(
            "to_json(named_struct('i', id, 'n', attrs['k']))",
            ("spark.sql.jsonGenerator.ignoreNullFields", "false"),
            "to_json(named_struct('i', id, 'n', attrs['k'])) = '{\"i\":3,\"n\":null}'",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "from_json(digits, 'a INT, bad STRING', map('mode', 'PERMISSIVE')).bad",
            ("spark.sql.columnNameOfCorruptRecord", "bad"),
            "from_json(digits, 'a INT, bad STRING', map('mode', 'PERMISSIVE')).bad = 'none'",
            marks=pytest.mark.long,
        ),
        (
            "from_json(payload, 'ts DATE', map('dateFormat', 'dd/MM/yyyy')).ts",
            ("spark.sql.legacy.json.enableDateTimeParsingFallback", "true"),
            "from_json(payload, 'ts DATE', map('dateFormat', 'dd/MM/yyyy')).ts = '2026-01-03'",
        ),
        pytest.param(
            "lower(email)",
            ("spark.sql.icu.caseMappings.enabled", "false"),
            "lower(email) = 'u0042@x'",
            marks=pytest.mark.long,
        ),
        (
            "CAST(coalesce(double(attrs['none']), 0.0D) AS STRING)",
            None,
            "CAST(coalesce(double(attrs['none']), -0.0D) AS STRING) = '-0.0'",
        ),
        ("id + low + high", None, "id + (low + high) = 333"),
        pytest.param(
            "IF(id > 9, CAST(NULL AS BIGINT), xxhash64(id, email))",
            None,
            "id = 42 AND email = 'U0042@X'",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "IF(attrs IS NULL, NULL, substr(email, 1, 5))",
            None,
            "substr(email, 1, 5) = 'U0043'",
            marks=pytest.mark.long,
        ),
        ("concat(email, 'a, b')", None, "concat(email, 'a', ' b') = 'U0042@Xa, b'"),
        # Catalyst's canonical form of both conditions is the same.
        (
            "exists(tags, x -> exists(array(s.x), y -> exists(tags, z -> z = y)))",
            None,
            "exists(tags, x -> exists(array(s.x), y -> exists(tags, z -> z = x)))",
        ),
    ],
)
def test_similar_expressions_do_not_use_the_index(
    plain: Lab, expression: str, setting: tuple[str, str] | None, query: str
) -> None:
    """A query does not use the index if its expression only resembles the indexed expression.

    The two expressions differ in a literal, the order of operands, a setting or a hash.
    """
    plain.sql(f"CREATE SIEVE INDEX alike ON u ({expression})")
    try:
        with plain.settings({} if setting is None else dict([setting])):
            plain.check(f"SELECT id FROM u WHERE {query}")
    finally:
        plain.sql("DROP SIEVE INDEX alike ON u")


@pytest.mark.parametrize(
    "condition",
    [
        "id < 5 OR id > 79990",
        "NOT (email <=> attrs['k'])",
        "exists(tags, tag -> tag LIKE 't77%')",
        "exists(tags, tag -> exists(array(id), other -> concat('t', other) = tag))",
    ],
)
def test_an_index_on_a_condition_serves_it(plain: Lab, condition: str) -> None:
    """If a filter is an OR or a NOT, an index on the whole condition serves the filter."""
    plain.sql(f"CREATE SIEVE INDEX of_condition ON u ({condition})")
    try:
        (scan,) = plain.explain(f"SELECT id FROM u WHERE {condition}")
        assert "of_condition@1" in scan["indexes"]
        plain.check(f"SELECT count(*) FROM u WHERE {condition}")
    finally:
        plain.sql("DROP SIEVE INDEX of_condition ON u")


def test_a_refresh_does_not_use_a_function_of_the_session(users: Lab) -> None:
    """A session that replaces the function `lower` cannot refresh the index on `lower`."""
    with users.database("replaced"):
        users.sql("CREATE TABLE u USING parquet AS SELECT 1 AS id, 'A' AS email")
        users.sql("CREATE SIEVE INDEX ON u (lower(email))")
        users.sql("INSERT INTO u VALUES (2, 'B')")
        other = Lab(users.spark.newSession())
        other.spark.udf.register("lower", lambda _: "z")
        (row,) = other.sql("REFRESH SIEVE INDEX ON replaced.u")
        assert row[1:6] == (None,) * 5
        with pytest.raises(PySparkException, match="SIEVE_UNKNOWN_COLUMN"):
            other.sql("REFRESH SIEVE INDEX lower_email_sieve ON replaced.u")
        users.sql("REFRESH SIEVE INDEX ON u")
        assert users.check("SELECT id FROM u WHERE lower(email) = 'b'", exactly=1).rows.total() == 1
    users.sql("USE expressions")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("rand() + id", "changes from query to query"),
        ("lower(email) || current_user()", "depends on the session or the time"),
        ("id + unix_timestamp()", "depends on the session or the time"),
        ("id > (SELECT max(id) FROM expressions.u)", "subquery"),
        ("aes_encrypt(email, '0000111122223333')", "changes from query to query"),
        ("aes_encrypt(email, '0000111122223333', 'GCM') = x''", "changes from query to query"),
        ("id > 3 AND email > 'U'", "index the parts"),
        ("between(id, 3, 5)", "index the parts"),
        ("count(id)", "more than an expression"),
        ("explode(tags)", "more than an expression"),
        ("sum(id) OVER ()", "more than an expression"),
        ("own(id)", "user-defined function"),
        ("lower(nothing)", "no column nothing"),
        ("to_json(s)", "s is a struct; name its fields"),
        ("1 + 1", "no column of the table"),
        ("lower(email", "expected"),
        ("lower(email) AS mail", "it has the name mail"),
        ("map('a', email)", "cannot be indexed"),
        ("parts[0].k", "parts has structs in an array or map"),
    ],
)
def test_unsupported_expression_is_refused(other: Lab, expression: str, reason: str) -> None:
    """CREATE names the refused expression and the reason, and leaves no index."""
    with pytest.raises(PySparkException) as error:
        other.sql(f"CREATE SIEVE INDEX ON expressions.u ({expression})")
    assert reason in str(error.value), str(error.value)
    assert other.sql("SHOW SIEVE INDEXES ON expressions.u") == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind",
    [
        "parquet",
        "csv",
        pytest.param("orc", marks=pytest.mark.long),
        pytest.param("json", marks=pytest.mark.long),
    ],
)
def test_statements_on_an_expression(lab: Lab, kind: str) -> None:
    """Statements accept an indexed expression in any equivalent SQL text."""
    with lab.database("spelled"):
        lab.sql(
            f"CREATE TABLE t USING {kind} AS SELECT id, concat('U', id) AS email "
            f"FROM range(0, 80, 1, {FILES})"
        )
        (row,) = lab.sql("CREATE SIEVE INDEX ON t (lower( /* any case */ email))")
        assert row[0] == "lower_email_sieve"
        (row,) = lab.sql("CREATE SIEVE INDEX IF NOT EXISTS ON t (LOWER(EMAIL))")
        assert row[5] == "unchanged"
        query = "SELECT id FROM t WHERE lower(email) = 'u42'"
        lab.check(query, exactly=1)
        lab.sql("INSERT INTO t SELECT 100, 'u42'")
        lab.check(query, exactly=2)
        (row,) = lab.sql("REFRESH SIEVE INDEX ON t (Lower(email))")
        assert row[5] == "refreshed"
        assert lab.check(query, exactly=2).rows.total() == 2
        lab.check("SELECT id FROM t WHERE lower(email) = 'u43'", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
        assert lab.facts("lower_email_sieve")["column"] == "lower( email)"
        (row,) = lab.sql("ESTIMATE SIEVE INDEX ON t (upper(email))")
        assert row[:2] == ("upper(email)", FILES + 1)
        (row,) = lab.sql("CREATE OR REPLACE SIEVE INDEX ON t (lower(email))")
        assert row[5] == "rebuilt"
        lab.check(query, exactly=2)
        if kind in ("parquet", "orc"):
            lab.sql("ALTER TABLE t ADD COLUMNS (more INT)")
            lab.check(query, exactly=2)
        assert lab.sql("DROP SIEVE INDEX ON t (LOWER(email))") == [("lower_email_sieve",)]
        assert lab.sql("SHOW SIEVE INDEXES ON t") == []


def test_a_declared_expression(lab: Lab) -> None:
    """The table property that declares indexes can contain both expressions and columns."""
    with lab.database("declared"):
        lab.sql(
            "CREATE TABLE t USING parquet TBLPROPERTIES ('sieve.columns' = 'id, lower(email)') AS "
            f"SELECT id, concat('U', id) AS email FROM range(0, 80, 1, {FILES})"
        )
        built = {row[0] for row in lab.sql("REFRESH SIEVE INDEX ON t")}
        assert built == {"id_sieve", "lower_email_sieve"}
        lab.check("SELECT id FROM t WHERE lower(email) = 'u42'", exactly=1)


@pytest.mark.parametrize("pushed", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_variants(lab: Lab, pushed: str) -> None:
    """An index on a path in a VARIANT skips files, even if scans read only parts of the VARIANT."""
    # Spark reads single parts of a VARIANT only in compiled queries.
    with (
        lab.database("variants"),
        lab.settings(COMPILED | {"spark.sql.variant.pushVariantIntoScan": pushed}),
    ):
        lab.sql(
            'CREATE TABLE t USING parquet AS SELECT id, parse_json(concat(\'{"user":{"id":\', id, '
            f'\'}}, "ts":"2026-01-01"}}\')) AS p FROM range(0, 80, 1, {FILES})'
        )
        lab.sql("CREATE SIEVE INDEX ON t (p:user.id::bigint)")
        lab.sql("CREATE SIEVE INDEX texts ON t (variant_get(p, '$.user.id', 'string'))")
        lab.check("SELECT id FROM t WHERE p:user.id::bigint = 42", exactly=1)
        lab.check("SELECT id, p:ts::date FROM t WHERE p:user.id::bigint IN (3, 42)", exactly=2)
        lab.check("SELECT id FROM t WHERE variant_get(p, '$.user.id', 'string') = '42'", exactly=1)
        lab.check("SELECT id FROM t WHERE variant_get(p, '$.user.id', 'int') = 42", exactly=8)
        for form in ("variant_get(p, '$.user.id', 'bigint')", "cast(p:user.id AS bigint)"):
            lab.check(f"SELECT id FROM t WHERE {form} = 42", exactly=1)
        lab.check("SELECT id FROM t WHERE p:user.id::string = '42'", exactly=1)
        for form in ("try_variant_get(p, '$.user.id', 'bigint')", "try_cast(p:user.id AS bigint)"):
            lab.check(f"SELECT id FROM t WHERE {form} = 42", exactly=8)
