"""SIEVE statements with parameters, in EXECUTE IMMEDIATE, and in BEGIN ... END blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from spark_session import Lab

QUERY = "SELECT * FROM t WHERE id ="


@pytest.fixture
def table(lab: Lab) -> Iterator[None]:
    """Creates a table of eight files in the order of ``id``, with an index on ``id``."""
    with lab.database("parameters"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        yield


def rows(lab: Lab, text: str, args: Any) -> list[tuple[Any, ...]]:
    """The rows that a statement returns with the given values of its parameters."""
    return [tuple(row) for row in lab.spark.sql(text, args=args).collect()]


@pytest.mark.parametrize(
    ("text", "args", "condition"),
    [
        ("SELECT :p", None, "UNBOUND_SQL_PARAMETER"),
        ("SELECT ?, ?", [1], "UNBOUND_SQL_PARAMETER"),
        ("SELECT * FROM IDENTIFIER(:t)", None, "UNBOUND_SQL_PARAMETER"),
        ("SELECT (", None, "PARSE_SYNTAX_ERROR"),
    ],
)
def test_errors_of_the_parser_keep_their_class(
    lab: Lab, text: str, args: Any, condition: str
) -> None:
    """Sieve passes on an error of Spark's parser, with the same class and condition."""
    with pytest.raises(AnalysisException) as failed:
        lab.spark.sql(text, args=args)
    assert failed.value.getCondition() == condition


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("value", [25, 2**40, -1])
def test_statement_accepts_named_and_positional_parameters(lab: Lab, value: int) -> None:
    """A parameter has the effect of its value.

    In a string or a comment, a ? or :name is no parameter.
    """
    plain = lab.sql(f"EXPLAIN SIEVE {QUERY} {value}L")
    assert rows(lab, f"EXPLAIN SIEVE {QUERY} :id", {"id": value}) == plain
    assert rows(lab, f"EXPLAIN SIEVE {QUERY} ? /* ? */ AND ':a' <> '?' -- :b", [value]) == plain
    raw = f"EXPLAIN SIEVE {QUERY} {{}} AND r'\\' <> '?' AND R\"\\\" <> ':a'"
    assert rows(lab, raw.format("?"), [value]) == lab.sql(raw.format(f"{value}L"))
    assert rows(lab, "CALL sieve.explain(query => :q)", {"q": f"{QUERY} {value}L"}) == plain
    lab.check(f"{QUERY} {value}L", exactly=int(value == 25))


@pytest.mark.usefixtures("table")
def test_values_of_each_type_can_be_parameters(lab: Lab) -> None:
    """Values of parameters can be numbers of any type, strings with quotes, and NULL.

    If an argument is NULL, the statement runs without this argument.
    """
    text = "CREATE SIEVE INDEX i ON t (id) OPTIONS (budget = :b, payback = :p) COMMENT :c"
    comment = 'it\'s \\ a "comment" -- :b ?'
    (made,) = rows(lab, text, {"b": "auto", "p": 20, "c": comment})
    assert made[0] == "i"
    facts = dict(lab.sql("DESCRIBE SIEVE INDEX i ON t"))
    check = "CHECK SIEVE INDEX EXTENDED i ON t"
    assert (facts["comment"], "payback = 20" in facts["options"]) == (comment, True)
    assert len(rows(lab, f"{check} SAMPLE :p PERCENT", {"p": 50.0})) == 1 + 4
    assert rows(lab, "VACUUM SIEVE INDEX i ON t RETAIN ? HOURS", [2]) == [("i", 0, 0, 0)]
    assert len(rows(lab, "CALL sieve.show_indexes(database => :d)", {"d": None})) == 2


@pytest.mark.usefixtures("table")
def test_a_parameter_without_a_value_is_named(lab: Lab) -> None:
    """If a parameter of a SIEVE statement has no value, the error names the parameter.

    If a parameter of an ordinary query has no value, Spark raises the error.
    """
    for args in ({}, {"other": 1}):
        with pytest.raises(Exception, match="UNBOUND_SQL_PARAMETER"):
            rows(lab, f"EXPLAIN SIEVE {QUERY} :id", args)
    with pytest.raises(Exception, match=r"UNBOUND_SQL_PARAMETER|A parameter has no value here"):
        lab.sql("CALL sieve.explain(query => :q)")


@pytest.mark.usefixtures("table")
def test_execute_immediate(lab: Lab) -> None:
    """EXECUTE IMMEDIATE runs SIEVE statements, both with USING and without it."""
    if lab.spark.version < "4":
        pytest.skip("Spark 3.5 has no EXECUTE IMMEDIATE")
    plain = lab.sql(f"EXPLAIN SIEVE {QUERY} 25L")
    assert lab.sql(f"EXECUTE IMMEDIATE 'EXPLAIN SIEVE {QUERY} ?' USING 25L") == plain
    assert lab.sql(f"EXECUTE IMMEDIATE 'EXPLAIN SIEVE {QUERY} :x' USING 25L AS x") == plain


LITERALS = (r"'a\\;b'", r"'it\'s'", r'"it\"s; \'"', "'it''s \n c'", r"R'\'")


def version(lab: Lab) -> int:
    """The number of the newest version of the only index."""
    return int(lab.sql("SELECT max(version) FROM sieve_versions('t')")[0][0])


@pytest.mark.usefixtures("table")
def test_statements_run_in_blocks(lab: Lab) -> None:
    """A SIEVE statement can be anywhere in a block; the block's statements run in order."""
    if lab.spark.version < "4.1":
        pytest.skip("blocks are for Spark 4.1 and later")
    disable = "ALTER SIEVE INDEX id_sieve ON t DISABLE;"
    enable = "alter /* ; */ sieve index id_sieve ON t enable;"
    for block, state in (
        (f"BEGIN {disable} END", "disabled"),
        (
            f"-- a block\nbegin\n  DECLARE x INT DEFAULT 1;\n  IF x = 1 THEN {enable} END IF;\nEND",
            "ready",
        ),
        (
            f"BEGIN IF 1 = 2 THEN {enable} ELSE SELECT 'x; {enable}'; {disable} END IF; END",
            "disabled",
        ),
        (
            f"BEGIN DECLARE k INT DEFAULT 0; WHILE k < 2 DO {enable} SET k = k + 1; END WHILE; END",
            "ready",
        ),
        ("BEGIN CALL sieve.refresh(table => 't', `full` => TRUE); END", "ready"),
        (f"BEGIN SELECT 1; EXPLAIN SIEVE {QUERY} 4 AND 'a;b' <> 'c\\'d'; END", "ready"),
    ):
        before = version(lab)
        lab.sql(block)
        assert lab.facts()["state"] == state, block
        assert version(lab) > before or "EXPLAIN" in block, block
    rows(lab, f"BEGIN EXPLAIN SIEVE {QUERY} :id; END", {"id": 3})
    assert lab.sql("BEGIN DECLARE sieve INT DEFAULT 7; SELECT sieve, 'BEGIN ALTER SIEVE'; END") == [
        (7, "BEGIN ALTER SIEVE")
    ]
    with pytest.raises(Exception, match=r"Did you mean SHOW SIEVE INDEXES\?"):
        lab.sql("BEGIN SHOW SIEVE INDEXS ON t; END")
    lab.check(f"{QUERY} 25", exactly=1)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("escaped", "literals"),
    [
        ("true", (r"'a\\;b'", r'"it\"s; \'"')),
        pytest.param("true", LITERALS, marks=pytest.mark.long),
        pytest.param("false", LITERALS, marks=pytest.mark.long),
    ],
)
def test_strings_have_the_same_value_in_blocks(
    lab: Lab, escaped: str, literals: tuple[str, ...]
) -> None:
    """A string has the same value inside and outside a block, however Spark treats backslashes."""
    if lab.spark.version < "4.1":
        pytest.skip("blocks are for Spark 4.1 and later")
    with lab.setting("spark.sql.parser.escapedStringLiterals", escaped):
        for literal in literals:
            comments = []
            for text in ("{}", "BEGIN SELECT 1; {}; END"):
                lab.sql(text.format(f"CREATE SIEVE INDEX j ON t (id) COMMENT {literal}"))
                comments.append(lab.facts("j")["comment"])
                lab.sql("DROP SIEVE INDEX j ON t")
            assert comments[0] == comments[1], literal
        # With escapedStringLiterals, Spark parses these texts as ordinary strings, but each string
        # ends at the same place.
        for literal in (r"r'\'", r'R"\"', r"r'a;\'"):
            # If Sieve missed the end of a raw string, it would take a quote in the last statement
            # for the end.
            disable = "ALTER SIEVE INDEX id_sieve ON t DISABLE"
            lab.sql(f"BEGIN VALUES ({literal}); {disable}; SELECT 'x', \"y\"; END")
            assert lab.facts()["state"] == "disabled", literal
            lab.sql("ALTER SIEVE INDEX id_sieve ON t ENABLE")


@pytest.mark.usefixtures("table")
def test_errors_contain_hints(lab: Lab) -> None:
    """Errors contain hints: SET warns about unknown settings; CREATE INDEX shows the right form."""
    warned = lab.sql("SET spark.sieve.enable = false")
    assert warned[0] == ("spark.sieve.enable", "false")
    assert warned[1][1].endswith("did you mean spark.sieve.enabled?")
    lab.spark.conf.unset("spark.sieve.enable")
    assert len(lab.sql("SET spark.sieve.enabled = true")) == 1
    with pytest.raises(Exception, match=r"CREATE INDEX i ON \S+t USING sieve \(column\)"):
        lab.sql("CREATE INDEX i ON t (id)")
    with pytest.raises(Exception, match=r"SIEVE_INVALID_PREDICATE.*UNRESOLVED_COLUMN"):
        lab.sql("ESTIMATE SIEVE INDEX ON t (id) WHERE idd = 3")
    with pytest.raises(Exception, match=r"SIEVE_UNKNOWN_TABLE.*no table nowhere\.t"):
        lab.sql("CREATE SIEVE INDEX ON nowhere.t (id)")
    lab.sql("CREATE TABLE dots (`x.y` BIGINT) USING parquet")
    with pytest.raises(Exception, match=r"did you mean `x\.y`\?"):
        lab.sql("CREATE SIEVE INDEX ON dots (x.y)")
