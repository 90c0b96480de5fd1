import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.errors import InvalidInputError
from sql_ext.statements.commands import (
    AdviseIndexes,
    AlterIndex,
    CheckIndex,
    ColumnPath,
    Command,
    CreateIndex,
    DescribeIndex,
    DropIndex,
    EstimateIndex,
    ExplainSieve,
    Namespace,
    OptimizeIndex,
    OptionValue,
    RefreshIndex,
    ShowIndexes,
    ShowVersions,
    TableName,
    VacuumIndex,
    VacuumIndexes,
    quote,
)
from sql_ext.statements.parser import parse_statement

GOLDEN = Path(__file__).parents[2] / "golden"


def _pairs(file: str) -> list[tuple[str, str]]:
    text = (GOLDEN / file).read_text(encoding="utf-8").removesuffix("\n")
    pairs = [pair.partition("\n=> ") for pair in re.sub(r"\A#.*\n", "", text).split("\n%%\n")]
    return [(statement, result) for statement, _, result in pairs]


@pytest.mark.parametrize(("statement", "record"), _pairs("statements.txt"))
def test_a_statement_parses_to_its_record(statement: str, record: str) -> None:
    """The parser makes the expected record for each form, quotation and comment of a statement."""
    assert repr(parse_statement(statement)) == record


@pytest.mark.parametrize(("statement", "message"), _pairs("statements-errors.txt"))
def test_error_names_the_position_and_the_expected_words(statement: str, message: str) -> None:
    """The error for a wrong statement shows the position, the word found and the words expected."""
    with pytest.raises(InvalidInputError) as refusal:
        parse_statement(statement)
    assert refusal.value.condition == "SIEVE_SYNTAX_ERROR"
    assert refusal.value.message == message


@pytest.mark.parametrize(
    "statement", (GOLDEN / "statements-identity.txt").read_text(encoding="utf-8").splitlines()
)
def test_rendered_record_equals_the_statement(statement: str) -> None:
    """A statement's record, rendered as text, equals the complete statement."""
    assert _written(parse_statement(statement)) == statement


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            "refrsh(table => 't')",
            r"no procedure sieve.refrsh. Did you mean refresh\? The procedures",
        ),
        ("x()", r"no procedure sieve.x. The procedures are create, refresh, drop, "),
        ("refresh()", r"sieve.refresh needs table: CALL sieve.refresh\(table => ...\)"),
        ("create(index => 'i')", r"sieve.create needs table and columns: "),
        ("create('t', columns => NULL)", r"sieve.create needs columns: "),
        (
            "refresh(tabel => 't')",
            r"no argument tabel. Did you mean table\? Its arguments are table,",
        ),
        ("refresh('t', shape => map)", r"sieve.refresh has no argument shape"),
        ("create('t', 'a', shap => map)", r"Did you mean shape\?"),
        ("refresh('t', table => 't')", r"column 25: argument table is given twice"),
        ("refresh(table => 't', 'i')", r"without a name come before"),
        ("optimize('t', 'i', 'x')", r"at most 2 arguments by position: table, index\."),
        ("refresh(5)", r"table is a string"),
        ("refresh('t', full => 'yes')", r"full is TRUE or FALSE"),
        ("check('t', sample => 'all')", r"sample is a number"),
        ("check('t', sample => 0)", r"column 33: a sample is above 0"),
        ("vacuum('t', retain_hours => -1)", r"cannot be negative"),
        ("refresh('a.b.c.d')", r"table is the name of a table, as SQL has it"),
        ("create('t', 'a,')", r"columns is a list of columns, as SQL has it"),
        ("create('t', 'a) ; DROP TABLE t')", r"columns is a list of columns"),
        ("create('t', 'a, b', 'i')", r"an index with a name has one column"),
        ("create('t', 'a', replace => true, if_not_exists => true)", r"replaced or left as it is"),
        ("refresh('t', 'i', 'a')", r"the index's name or its column, not both"),
        ("drop('t')", r"say which index"),
        ("set_options('t', 'i')", r"say which option"),
        ("show_indexes('t', 'd')", r"a table or a database, not both"),
        ("refresh(table = 't')", r'found "=", expected "=>"'),
        ("refresh('t'", r"found the end of the statement"),
        ("explain('SELECT 1') /*", r"this comment is never closed"),
    ],
)
def test_wrong_call_suggests_a_similar_name(call: str, problem: str) -> None:
    """If CALL has an unknown procedure or argument, the error suggests a similar name.

    CALL refuses missing, repeated and invalid arguments.
    """
    with pytest.raises(InvalidInputError, match=problem):
        parse_statement(f"CALL sieve.{call}")


def test_long_line_is_cut_around_the_wrong_word() -> None:
    """For a long line, the error shows only the part around the wrong word, above a caret."""
    statement = f"CREATE SIEVE INDEX ON t ({', '.join(f'column{i}' for i in range(500))} x)"
    with pytest.raises(InvalidInputError) as refusal:
        parse_statement(statement)
    line, carets = refusal.value.message.splitlines()[-2:]
    assert len(line) < 100
    assert line[carets.index("^")] == "x"


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        ("'it\"\"s'", 'it""s'),
        ("'a\\'b'", "a'b"),
        ("'\\\\''x'", "\\'x"),
        ("r'a\\nb'", "a\\nb"),
        ("'a\\nb'", "a\nb"),
        ("'\\u0041\\101'", "AA"),
    ],
)
def test_texts_are_unescaped_as_spark_does(literal: str, value: str) -> None:
    """As in Spark, doubled quotes and backslash escapes are decoded, except in raw strings."""
    made = parse_statement(f"CREATE SIEVE INDEX ON t (c) COMMENT {literal}")
    assert isinstance(made, CreateIndex)
    assert made.comment == value


def test_caret_is_below_the_wrong_word() -> None:
    """The caret is below the wrong word, even after wide characters or combining characters."""
    for before, cells in (("e\u0301e\u0301", 2), ("\u8868\u8868", 4), ("ee", 2)):
        with pytest.raises(InvalidInputError) as refusal:
            parse_statement(f"DROP SIEVE INDEX `{before}` x ON t")
        carets = refusal.value.message.splitlines()[-1]
        assert carets == " " * (2 + len("DROP SIEVE INDEX ``") + cells + 1) + "^"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_editors_count_them(end: str) -> None:
    """For the position of an error, LF, CR LF and CR count as one end of line."""
    with pytest.raises(InvalidInputError, match=r"^\[SIEVE_SYNTAX_ERROR\] line 3, column 2: "):
        parse_statement(f"SHOW SIEVE{end}INDEXES{end} wrong")
    with pytest.raises(InvalidInputError, match=r"^\[SIEVE_SYNTAX_ERROR\] line 2, column 12: "):
        parse_statement(f"{end}SHOW SIEVE wrong")


# The alphabet has characters that break simple quoting. The pieces are words of the SQL grammar.
hostile = st.text(
    st.one_of(st.sampled_from("`'\"\\;-/*().,= \n\t\0#éß表😀"), st.characters(codec="utf-8")),
    min_size=1,
)
pieces = st.sampled_from(
    "CREATE REFRESH DROP ALTER SHOW DESCRIBE DESC EXPLAIN ESTIMATE WHERE SIEVE INDEX INDEXES ON "
    "OPTIMIZE VACUUM ADVISE VERSIONS RETAIN HOURS "
    "TABLE IF NOT EXISTS FROM IN SET OPTIONS COMMENT ENABLE DISABLE FULL EXTENDED TRUE t a.b `x` "
    "CHECK SAMPLE PERCENT CALL sieve.create sieve.drop => columns OR REPLACE USING NULL "
    "' \" ` ( ) , "
    "= . ; 1 -2.5 1e5 1x r'y' /* */ -- \\ 'z' - #".split()
)
columns = st.lists(hostile, min_size=1, max_size=3).map(lambda parts: ColumnPath(tuple(parts)))
tables = st.lists(hostile, min_size=1, max_size=3).map(lambda parts: TableName(tuple(parts)))
namespaces = st.lists(hostile, min_size=1, max_size=2).map(lambda parts: Namespace(tuple(parts)))
values = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), hostile
)
option_maps = st.dictionaries(hostile.map(str.lower).filter(lambda k: k == k.lower()), values)
filled = option_maps.filter(bool)
ages = st.floats(min_value=0, allow_infinity=False)
named = {"table": tables, "name": hostile}
commands: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        CreateIndex,
        table=tables,
        columns=st.lists(columns, min_size=1, max_size=1).map(tuple),
        name=st.none() | hostile,
        if_not_exists=st.booleans(),
        options=option_maps,
        comment=st.none() | hostile,
    ),
    st.builds(
        CreateIndex,
        table=tables,
        columns=st.lists(columns, min_size=1, max_size=1).map(tuple),
        replace=st.booleans(),
    ),
    st.builds(RefreshIndex, table=tables, name=st.none() | hostile, full=st.booleans()),
    st.builds(RefreshIndex, table=tables, column=columns, full=st.booleans()),
    st.builds(
        EstimateIndex,
        table=tables,
        columns=st.lists(columns, min_size=1, max_size=3).map(tuple),
        options=option_maps,
        extended=st.booleans(),
    ),
    st.builds(DropIndex, **named, if_exists=st.booleans()),
    st.builds(DropIndex, table=tables, column=columns, if_exists=st.booleans()),
    st.builds(AlterIndex, **named, state=st.sampled_from(["ready", "disabled"])),
    st.builds(AlterIndex, **named, state=st.none(), options=filled),
    st.builds(ShowIndexes, table=st.none() | tables),
    st.builds(ShowIndexes, namespace=namespaces),
    st.builds(AdviseIndexes, table=st.none() | tables),
    st.builds(AdviseIndexes, namespace=namespaces),
    st.builds(DescribeIndex, **named, extended=st.booleans()),
    st.builds(ShowVersions, table=tables, name=st.none() | hostile),
    st.builds(OptimizeIndex, table=tables, name=st.none() | hostile),
    st.builds(VacuumIndex, table=tables, name=st.none() | hostile, hours=st.none() | ages),
    st.builds(VacuumIndexes, namespace=st.none() | namespaces, hours=st.none() | ages),
    st.builds(
        CheckIndex,
        table=tables,
        name=st.none() | hostile,
        sample=st.floats(0, 100, exclude_min=True),
        extended=st.booleans(),
    ),
)


@given(commands)
def test_any_name_survives_quoting(command: Command) -> None:
    """Rendering and parsing preserve names and strings of any characters."""
    assert parse_statement(_written(command)) == command


@given(commands, st.data())
def test_comments_and_case_change_nothing(command: Command, data: st.DataObject) -> None:
    """Comments between words, and the letter case of keywords, do not change the record."""
    gaps = st.sampled_from([" ", "\n", " /* ` ' /* */ */ ", " -- it's\n", "\t\r\n"])
    words = re.findall(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[^ `']+", _written(command), re.DOTALL)
    text = "".join(
        (word if word[0] in "`'" else data.draw(st.sampled_from([word.lower(), word.upper()])))
        + ("" if word == "." else data.draw(gaps))
        for word in words
    )
    assert parse_statement(text) == command


@given(st.lists(pieces | hostile, max_size=14).map(" ".join) | st.text())
def test_any_text_gives_a_record_or_an_error(text: str) -> None:
    """For any text, the parser returns a record, or an error with a position in the text."""
    with contextlib.suppress(InvalidInputError):
        parse_statement(text)
        return
    with pytest.raises(InvalidInputError, match=r"line \d+, column \d+: (?s:.)+\n\n  .*\n *\^+$"):
        parse_statement(text)


@given(hostile.filter(lambda text: text.strip()), st.sampled_from(["", " ", "\n/* x */ "]))
def test_query_of_explain_is_passed_to_spark_unchanged(tail: str, gap: str) -> None:
    """EXPLAIN SIEVE passes its query to Spark unchanged, even if the query is invalid SQL."""
    command = parse_statement(f"EXPLAIN SIEVE {gap}SELECT {tail}")
    assert command == ExplainSieve(f"SELECT {tail}".rstrip())


@given(hostile.filter(lambda text: text.strip()))
def test_predicate_of_estimate_is_passed_to_spark_unchanged(tail: str) -> None:
    """ESTIMATE passes its predicate to Spark unchanged, except for semicolons at the end."""
    command = parse_statement(f"ESTIMATE SIEVE INDEX ON t (a) WHERE b = 1 AND {tail}")
    assert isinstance(command, EstimateIndex)
    assert command.predicate == f"b = 1 AND {tail}".rstrip().rstrip("; \t\r\n")


def _written(command: Command) -> str:  # noqa: C901, PLR0912 - one case a statement
    """Writes a statement in its longest form: all names quoted, and all parts in order."""
    match command:
        case CreateIndex(table, columns, name, if_not_exists, options, comment, replace):
            parts = [
                "CREATE OR REPLACE SIEVE INDEX" if replace else "CREATE SIEVE INDEX",
                "IF NOT EXISTS" if if_not_exists else "",
                quote(name) if name else "",
                f"ON {table} ({', '.join(map(str, columns))})",
                f"OPTIONS {_options(options)}" if options else "",
                f"COMMENT {_literal(comment)}" if comment else "",
            ]
        case RefreshIndex(table, name, column, full):
            parts = ["REFRESH SIEVE INDEX", *_selected(table, name, column), "FULL" if full else ""]
        case DropIndex(table, name, column, if_exists):
            exists = "IF EXISTS" if if_exists else ""
            parts = ["DROP SIEVE INDEX", exists, *_selected(table, name, column)]
        case AlterIndex(table, name, None, options):
            parts = [f"ALTER SIEVE INDEX {quote(name)} ON {table} SET OPTIONS {_options(options)}"]
        case AlterIndex(table, name, state):
            change = "ENABLE" if state == "ready" else "DISABLE"
            parts = [f"ALTER SIEVE INDEX {quote(name)} ON {table} {change}"]
        case ShowIndexes(table, namespace):
            where = f"ON {table}" if table else f"IN {namespace}" if namespace else ""
            parts = ["SHOW SIEVE INDEXES", where]
        case DescribeIndex(table, name, extended):
            form = "EXTENDED" if extended else ""
            parts = ["DESCRIBE SIEVE INDEX", form, f"{quote(name)} ON {table}"]
        case ExplainSieve(query):
            parts = ["EXPLAIN SIEVE", query]
        case EstimateIndex(table, columns, options, extended=extended):
            form = "EXTENDED " if extended else ""
            parts = [
                f"ESTIMATE SIEVE INDEX {form}ON {table} ({', '.join(map(str, columns))})",
                f"OPTIONS {_options(options)}" if options else "",
            ]
        case ShowVersions(table, name):
            parts = ["SHOW SIEVE VERSIONS", *_selected(table, name, None)]
        case OptimizeIndex(table, name):
            parts = ["OPTIMIZE SIEVE INDEX", *_selected(table, name, None)]
        case VacuumIndex(table, name, hours):
            parts = ["VACUUM SIEVE INDEX", *_selected(table, name, None), _retained(hours)]
        case VacuumIndexes(namespace, hours):
            where = f"IN {namespace}" if namespace else ""
            parts = ["VACUUM SIEVE INDEXES", where, _retained(hours)]
        case CheckIndex(table, name, sample, extended):
            form = "EXTENDED" if extended else ""
            parts = ["CHECK SIEVE INDEX", form, *_selected(table, name, None)]
            parts += [f"SAMPLE {sample} PERCENT"]
        case AdviseIndexes(table, namespace):
            where = f"ON {table}" if table else f"IN {namespace}" if namespace else ""
            parts = ["ADVISE SIEVE INDEXES", where]
    return " ".join(filter(None, parts))


def _retained(hours: float | None) -> str:
    return "" if hours is None else f"RETAIN {hours!r} HOURS"


def _selected(table: TableName, name: str | None, column: ColumnPath | None) -> list[str]:
    return [quote(name) if name else "", f"ON {table}", f"({column})" if column else ""]


def _options(options: dict[str, OptionValue]) -> str:
    return f"({', '.join(f'{quote(k)} = {_literal(v)}' for k, v in options.items())})"


def _literal(value: OptionValue) -> str:
    if isinstance(value, str):
        # Spark keeps a backslash before % and _, because LIKE patterns need it.
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return str(value).lower() if isinstance(value, bool) else repr(value)
