"""Indexes on substrings: queries skip files without a match, and return the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab, together

FILES = 8
OPTIONS = "OPTIONS (kind = 'substring')"


@pytest.fixture(scope="module")
def logs(lab: Lab) -> Iterator[Lab]:
    """Lines in the order of ``id``; every tenth line is NULL or shorter than 4 bytes (a gram)."""
    with lab.database("substrings"):
        message = (
            "CASE WHEN id % 100 = 10 THEN NULL WHEN id % 100 = 20 THEN 'ab' ELSE concat('line ', "
            "lpad(id, 4, '0'), ' Über_', chr(65 + int(id DIV 1000)), '%done ', "
            "substr('äößçéñøåæ', 1 + int(id DIV 1000), 2), ' end') END"
        )
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, {message} AS message "
            f"FROM range(0, 8000, 1, {FILES})"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (message, lower(message)) {OPTIONS}")
        lab.sql("CREATE SIEVE INDEX ON t (message)")
        with lab.setting("spark.sieve.audit.sample", "1"):
            yield lab


QUERIES = {
    "contains": ("message LIKE '%ine 0042%'", 1),
    "the function": ("contains(message, 'ine 0042')", 1),
    "absent": ("message LIKE '%ine 9042%'", 0),
    "absent by its last gram": ("message LIKE '%line 0042x%'", 0),
    "parts": ("message LIKE '%e 00%_done%'", 1),
    "parts of two files": (r"message LIKE '%e 00%\_C\%done%'", 0),
    "one character": ("message LIKE '%line_0042%'", 1),
    "an escaped wildcard": (r"message LIKE '%\_A\%do%'", 1),
    "an escaped wildcard of another escape": ("message LIKE '%!_B!%do%' ESCAPE '!'", 1),
    "an escaped escape": ("message LIKE '%A!!done%' ESCAPE '!'", 0),
    "a long text": ("message LIKE '%line 0042 Über\\_A\\%done äö end%'", 1),
    "an unescaped wildcard": ("message LIKE '%_A%do%'", 8),
    "a prefix": ("message LIKE 'line 7%'", 1),
    "a suffix": ("message LIKE '%ßç end'", 1),
    "a prefix and a suffix": ("message LIKE 'line%ßç end'", 1),
    "characters of two bytes": ("message LIKE '%öß%'", 1),
    "one character of two bytes": ("message LIKE '%ß%'", 8),
    "instr": ("instr(message, 'e 7042') > 0", 1),
    "no instr": ("instr(message, 'e 7042') = 0", 8),
    "instr at a place": ("instr(message, 'e 7042') = 4", 1),
    "any place of instr": ("-1 < instr(message, 'e 7042')", 8),
    "instr at any place": ("instr(message, 'e 7042') > -1", 8),
    "instr at a place or none": ("instr(message, 'e 7042') >= 0", 8),
    "a place of instr or none": ("0 <= instr(message, 'e 7042')", 8),
    "a place of instr": ("1 <= instr(message, 'e 7042')", 1),
    "no place of instr": ("0 = instr(message, 'e 7042')", 8),
    "not no instr": ("NOT (instr(message, 'e 7042') = 0)", 1),
    "locate": ("0 < locate('e 7042', message, 2)", 1),
    "position": ("position('e 7042' IN message) >= 1", 1),
    "ILIKE": ("message ILIKE '%INE 0042 üb%'", 1),
    "lower": ("lower(message) LIKE '%ine 0042 über%'", 1),
    "another function": ("upper(message) LIKE '%INE 0042%'", 8),
    "LIKE ANY": ("message LIKE ANY ('%e 0042%', '%e 7042%')", 2),
    "LIKE ALL": ("message LIKE ALL ('%e 0042%', '%A_done%')", 1),
    "OR": ("message LIKE '%e 0042%' OR message LIKE '%e 7042%'", 2),
    "AND": ("message LIKE '%e 0042%' AND message LIKE '%e 7042%'", 0),
    "NOT": ("NOT (message LIKE '%e 0042%')", 8),
    "NOT LIKE an absent text": ("message NOT LIKE '%nothing%'", 8),
    "not true": ("(message LIKE '%e 0042%') IS NOT TRUE", 8),
    "equality, by the other index": ("message = 'line 0042 Über_A%done äö end'", 1),
    "equality": ("lower(message) = 'line 0042 über_a%done äö end'", 1),
    "equality with an absent text": ("'line 0042 über_b%done äö end' = lower(message)", 0),
    "equality or NULL": ("lower(message) <=> 'line 0042 über_a%done äö end'", 1),
    "equality with NULL": ("lower(message) <=> NULL AND id < 4000", 8),
    "a list": ("lower(message) IN ('line 0042 über_a%done äö end', 'line 7042')", 2),
    "equality with a short text": ("lower(message) = 'ab'", 8),
    "inequality": ("lower(message) <> 'line 0042 über_a%done äö end'", 8),
    "a regular expression": ("message RLIKE 'e 0042'", 8),
    "nothing": ("message LIKE '%'", 8),
}


OFTEN = {
    "contains", "parts", "an escaped wildcard of another escape", "a long text",
    "one character of two bytes", "no instr", "any place of instr", "instr at a place or none",
    "position", "lower", "LIKE ANY", "NOT", "equality", "inequality",
}  # fmt: skip
"""The queries that `make test` runs. The other queries differ from one of these in a few words."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in QUERIES],
)
def test_a_filter_reads_the_files_that_can_match(logs: Lab, name: str) -> None:
    """A filter reads only files in which a text can contain all parts of the pattern."""
    predicate, files = QUERIES[name]
    logs.check(f"SELECT * FROM t WHERE {predicate}", exactly=files)


def test_explain_shows_the_length_of_a_short_text(logs: Lab) -> None:
    """For a short text in a pattern, EXPLAIN shows the function and a byte count, not the text."""
    for predicate, words in (
        ("message LIKE '%ab%'", "contains of less than 4 bytes"),
        ("message LIKE '%abc_de%'", "like of less than 4 bytes"),
        ("instr(message, 'é') > 0", "instr of less than 4 bytes"),
    ):
        (row,) = logs.explain(f"SELECT id FROM t WHERE {predicate}")
        assert row["reasons"] == f"unsupported-predicate ({words}): 1"
    facts = logs.facts("message_substring_sieve")
    assert "advice" not in facts
    assert (facts["kind"], facts["type"]) == ("substring", "string")
    read = [float(facts[f"files read for a text of {n} bytes"].split()[0]) for n in (4, 8, 12, 16)]
    assert read == sorted(read, reverse=True)
    assert read[0] > read[-1] >= 1.0
    assert facts["finds"] == "texts with at least 4 bytes between wildcards"


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("id", "its type is BIGINT, and kind = 'substring' needs a STRING"),
        ("array(message)", "needs a STRING"),
        ("nothing", "no column nothing"),
        ("collate(message, 'UTF8_LCASE')", "it has text with a collation"),
    ],
)
def test_column_without_substrings_is_refused(logs: Lab, typed: str, reason: str) -> None:
    """CREATE refuses a column that has no substrings, and the error says why."""
    with pytest.raises(PySparkException) as error:
        logs.sql(f"CREATE SIEVE INDEX wrong ON t ({typed}) {OPTIONS}")
    assert reason in str(error.value)


def test_an_unknown_kind_is_refused(logs: Lab) -> None:
    """If the kind of index is unknown, the error names the kinds that exist."""
    with pytest.raises(PySparkException, match="elements or substring"):
        logs.sql("CREATE SIEVE INDEX wrong ON t (message) OPTIONS (kind = 'words')")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_statements_on_substrings(lab: Lab, kind: str) -> None:
    """A column can have an index on substrings and an ordinary index at the same time."""
    with lab.database("beside"):
        lab.sql(
            f"CREATE TABLE t USING {kind} AS SELECT id, concat('word', id, '.') AS Word "
            f"FROM range(0, 80, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON t (word)")
        (row,) = lab.sql(f"CREATE SIEVE INDEX ON t (word) {OPTIONS}")
        assert row[0] == "word_substring_sieve"
        (row,) = lab.sql(f"CREATE SIEVE INDEX IF NOT EXISTS ON t (WORD) {OPTIONS}")
        assert row[5] == "unchanged"
        query = "SELECT id FROM t WHERE word LIKE '%rd42%'"
        lab.check(query, exactly=1)
        lab.sql("INSERT INTO t SELECT 100, 'sword42.'")
        lab.check(query, exactly=2)
        assert {row[5] for row in lab.sql("REFRESH SIEVE INDEX ON t (word)")} == {"refreshed"}
        assert lab.check(query, exactly=2).rows.total() == 2
        lab.check("SELECT id FROM t WHERE word LIKE '%x43.%'", exactly=0)
        lab.check("SELECT id FROM t WHERE word = 'word42.'", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
        (row,) = lab.sql(f"ESTIMATE SIEVE INDEX ON t (word) {OPTIONS}")
        assert row[:2] == ("Word", FILES + 1)
        lab.sql("DROP SIEVE INDEX word_sieve ON t")
        lab.check(query, exactly=2)
        assert lab.sql("DROP SIEVE INDEX ON t (Word)") == [("word_substring_sieve",)]


def test_a_file_that_several_tasks_read(lab: Lab) -> None:
    """Builds and checks give the same result for any number of tasks per file."""
    with lab.database("parts"):
        lab.sql(
            "CREATE TABLE t USING csv AS SELECT /*+ COALESCE(1) */ id, "
            "concat('word', id, '.') AS word FROM range(20000)"
        )
        lab.sql("INSERT INTO t VALUES (1, 'other')")
        lab.sql(f"CREATE SIEVE INDEX ON t (word) {OPTIONS}")
        with lab.setting("spark.sql.files.maxPartitionBytes", "50000"):
            assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
            lab.check("SELECT * FROM t WHERE word LIKE '%rd17777.%'", exactly=1)
            lab.sql("REFRESH SIEVE INDEX ON t FULL")
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
        lab.check("SELECT * FROM t WHERE word LIKE '%ther%'", exactly=1)


@pytest.mark.parametrize("turns", [2, pytest.param(12, marks=pytest.mark.long)])
def test_drawn_texts_and_patterns(lab: Lab, turns: int) -> None:
    """Random patterns of characters of one to four bytes find the same rows with the index."""
    draw = random.Random(4)
    characters = ["a", "b", "é", "€", "😀", "%", "_", "!", "\ufffd"]

    def text(most: int) -> str:
        return "".join(draw.choice(characters) for _ in range(draw.randrange(most)))

    def pattern() -> str:
        pieces = []
        for one in text(9):
            pieces.append("!" + one if one in "%_!" else one)
            if draw.random() < 0.2:
                pieces.append(draw.choice("%_"))
        return draw.choice(["%", ""]) + "".join(pieces) + draw.choice(["%", "%", ""])

    def predicate() -> str:
        wanted = text(6)
        some = draw.choice(
            [
                f"v LIKE '{pattern()}' ESCAPE '!'",
                f"v LIKE '{pattern()}' ESCAPE '!'",
                f"contains(v, '{wanted}')",
                f"endswith(v, '{wanted}')",
                f"startswith(v, '{wanted}')",
                f"instr(v, '{wanted}') {draw.choice(['> 0', '= 0', '>= 1', '<> 0', '= 2', '< 3'])}",
                f"locate('{wanted}', v, 2) {draw.choice(['> 0', '= 0', '> 2'])}",
            ]
        )
        return draw.choice([some, some, some, f"NOT ({some})", f"({some}) IS NOT TRUE"])

    rows = ", ".join(f"({k}, {draw.choice(['NULL', *[repr(text(24))] * 8])})" for k in range(300))
    broken = "concat('ab', CAST(X'FF62' AS STRING), 'éa')"
    with lab.database("drawn"), lab.setting("spark.sieve.audit.sample", "1"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(20, id) */ * FROM "
            f"(SELECT * FROM VALUES {rows} AS v (id, v) UNION ALL SELECT 7, {broken})"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (v) {OPTIONS}")
        for _ in range(turns):
            drawn = together(f"SELECT * FROM t WHERE {predicate()}" for _ in range(10))
            lab.check(drawn, at_most=180)
        found = lab.check("SELECT * FROM t WHERE v LIKE '%a_\ufffdbéa%' AND id = 7")
        assert found.rows.total() == 1


def test_patterns_with_a_broken_escape(logs: Lab) -> None:
    """If a pattern has a broken escape, a query that reads a text fails, with or without Sieve."""
    for pattern in ("%none!", "%none!x%"):
        predicate = f"message LIKE '{pattern}' ESCAPE '!'"
        logs.check(f"SELECT id FROM substrings.t WHERE id < 0 AND {predicate}")
        for enabled in ("true", "false"):
            with (
                logs.setting("spark.sieve.enabled", enabled),
                pytest.raises(PySparkException, match=r"INVALID_FORMAT\.ESC"),
            ):
                logs.run(f"SELECT id FROM substrings.t WHERE {predicate}")


def test_escape_for_invalid_bytes_loses_no_row(lab: Lab) -> None:
    """Queries lose no row even if the escape character is the replacement character U+FFFD.

    LIKE decodes invalid bytes as U+FFFD, so a text can match a pattern that has different bytes.
    """
    with lab.database("escapes"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, concat('abcd', CAST(if(id = 5, X'FF', "
            "X'2D') AS STRING), 'efgh') AS v FROM range(0, 8, 1, 4)"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (v) {OPTIONS}")
        escaped = "v LIKE '%cd\ufffd\ufffdef%' ESCAPE '\ufffd'"
        found = lab.check(f"SELECT id FROM t WHERE {escaped}")
        assert found.rows == {"(5,)": 1}
