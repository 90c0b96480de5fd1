from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

import sieve
from sql_ext.statements import commands
from sql_ext.statements.parser import parse_statement as parse


class FakeSession:
    """Records each statement, and answers with one row that has all columns of the statement."""

    def __init__(self) -> None:
        self.parsed: list[Any] = []

    def sql(self, query: str, /) -> FakeSession:
        self.parsed.append(parse(query))
        return self

    def collect(self) -> list[dict[str, Any]]:
        columns = commands.columns_of(self.parsed[-1])
        return [{name: name for name, _ in columns} | {"column of a later release": 1}]


def sent(function: Any, *args: Any, **named: Any) -> Any:
    """Calls a function and returns the record of the statement that the function sent."""
    spark = FakeSession()
    (row,) = function(spark, *args, **named)
    (record,) = spark.parsed
    assert all(getattr(row, name) == name for name, _ in commands.columns_of(record))
    return record


TABLE = commands.TableName(("shop", "t"))
ID = commands.ColumnPath(("id",))
HOSTILE = "it's a \\ 'test'); DROP TABLE t; --\n\"`"


@pytest.mark.parametrize(
    ("record", "function", "args", "named"),
    [
        (commands.ShowIndexes(), sieve.indexes, (), {}),
        (
            commands.ShowIndexes(namespace=commands.Namespace(("shop",))),
            sieve.indexes,
            ("shop",),
            {},
        ),
        (
            commands.CreateIndex(TABLE, (ID,), options={"budget": "2%", "payback": 7}),
            sieve.create,
            ("shop.t", "id"),
            {"budget": "2%", "payback": 7},
        ),
        (
            commands.CreateIndex(TABLE, (ID, commands.ColumnPath(("my col", "b")))),
            sieve.create,
            ("shop.t", ["id", "`my col`.b"]),
            {},
        ),
        (
            commands.CreateIndex(
                TABLE, (ID,), name=HOSTILE, if_not_exists=True, comment=HOSTILE, replace=False
            ),
            sieve.create,
            ("shop.t", "id"),
            {"index": HOSTILE, "if_not_exists": True, "comment": HOSTILE},
        ),
        (commands.AdviseIndexes(), sieve.advise, (), {}),
        (commands.AdviseIndexes(TABLE), sieve.advise, ("shop.t",), {}),
        (
            commands.AdviseIndexes(namespace=commands.Namespace(("shop",))),
            sieve.advise,
            (),
            {"db": "shop"},
        ),
        (commands.RefreshIndex(TABLE), sieve.refresh, ("shop.t",), {}),
        (
            commands.RefreshIndex(TABLE, name="i", full=True),
            sieve.refresh,
            ("shop.t", "i"),
            {"full": True},
        ),
        (
            commands.DropIndex(TABLE, column=ID, if_exists=True),
            sieve.drop,
            ("shop.t",),
            {"column": "id", "if_exists": True},
        ),
        (
            commands.DescribeIndex(TABLE, "i", extended=True),
            sieve.describe,
            ("shop.t", "i"),
            {"extended": True},
        ),
        (
            commands.ExplainSieve("SELECT '\\'' FROM t"),
            sieve.explain,
            ("SELECT '\\'' FROM t",),
            {},
        ),
        (commands.CheckIndex(TABLE, sample=5.0), sieve.check, ("shop.t",), {"sample": 5}),
        (
            commands.EstimateIndex(
                TABLE, (ID,), predicate="s = 'it\\'s'", options={"budget": "1%"}
            ),
            sieve.estimate,
            ("shop.t", "id"),
            {"predicate": "s = 'it\\'s'", "budget": "1%"},
        ),
    ],
)
def test_functions_send_statements(record: Any, function: Any, args: Any, named: Any) -> None:
    """Each function of the client sends the right statement, for any characters in arguments."""
    assert sent(function, *args, **named) == record


def test_an_option_is_a_name() -> None:
    """The client refuses unknown keyword arguments, so they never become part of the SQL."""
    with pytest.raises(Exception, match="SIEVE_SYNTAX_ERROR"):
        sent(sieve.create, "t", "id", **{"a` => 1, `b": 2})


def test_a_number_of_0_is_sent() -> None:
    """The client omits None and False, but sends 0. The statement then accepts or refuses the 0."""
    with pytest.raises(sieve.errors.InvalidInputError, match="sample"):
        sent(sieve.check, "shop.t", sample=0)


def test_a_picture_is_a_row_of_a_function() -> None:
    """`inspect` sends names unchanged; a notebook shows a picture, and a terminal shows text."""
    asked = []

    class Drawing:
        def sql(self, query: str, /) -> Drawing:
            asked.append(query)
            return self

        def collect(self) -> list[dict[str, Any]]:
            return [{"png": bytearray(b"\x89PNG"), "summary": "two\nlines", "later": 1}]

    picture = sieve.inspect(Drawing(), "shop.`t's`", "i\\d")
    assert asked == ["SELECT * FROM sieve_inspect('shop.`t\\'s`', 'i\\\\d')"]
    assert (repr(picture), picture.summary) == ("two\nlines", "two\nlines")
    assert type(picture.png) is bytes
    assert picture._repr_png_() == picture.png == b"\x89PNG"


def test_type_checkers_of_programs_read_the_types() -> None:
    """The package contains `py.typed`, so type checkers use the types of its functions."""
    assert files("sieve").joinpath("py.typed").is_file()
