"""Validates command records. The same rules apply to statements and to procedure calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sql_ext.statements import commands

_Rule = tuple[Callable[[Any], bool], str, str]
"""A test that returns True for a wrong record, the name of the wrong member, and the message."""

_TWO_SELECTORS: Final[_Rule] = (
    lambda record: record.name is not None and record.column is not None,
    "column",
    "give the index's name or its column, not both.",
)
_TWO_SCOPES: Final[_Rule] = (
    lambda record: record.table is not None and record.namespace is not None,
    "namespace",
    "give a table or a database, not both.",
)
_NEGATIVE_HOURS: Final[_Rule] = (
    lambda record: record.hours is not None and record.hours < 0,
    "hours",
    "hours to retain cannot be negative.",
)
_RULES: Final[dict[type, tuple[_Rule, ...]]] = {
    commands.CreateIndex: (
        (
            lambda record: record.name is not None and len(record.columns) > 1,
            "columns",
            (
                "an index with a name has one column; write one statement for each column, or one "
                "without a name: CREATE SIEVE INDEX ON table (column, ...)."
            ),
        ),
        (
            lambda record: record.replace and record.if_not_exists,
            "if_not_exists",
            "an index that exists is replaced or left as it is, not both.",
        ),
    ),
    commands.RefreshIndex: (_TWO_SELECTORS,),
    commands.DropIndex: (
        _TWO_SELECTORS,
        (
            lambda record: record.name is None and record.column is None,
            "table",
            "say which index: DROP SIEVE INDEX name ON t, or DROP SIEVE INDEX ON t (column).",
        ),
    ),
    commands.AlterIndex: (
        (
            lambda record: record.state is None and not record.options,
            "options",
            "say which option, such as budget.",
        ),
    ),
    commands.ShowIndexes: (_TWO_SCOPES,),
    commands.AdviseIndexes: (_TWO_SCOPES,),
    commands.VacuumIndex: (_NEGATIVE_HOURS,),
    commands.VacuumIndexes: (_NEGATIVE_HOURS,),
    commands.CheckIndex: (
        (
            lambda record: not 0 < record.sample <= 100,
            "sample",
            "a sample is above 0 and at most 100 percent of the files.",
        ),
    ),
}


def problem(command: commands.Command) -> tuple[str, str] | None:
    """The invalid member of a record, and the error message; None for a valid record."""
    for wrong, member, sentence in _RULES.get(type(command), ()):
        if wrong(command):
            return member, sentence
    return None
