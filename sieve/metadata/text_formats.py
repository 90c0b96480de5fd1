"""Text formats: tables whose rows depend on splits, or on the columns that a query reads."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import Final

TEXT_FORMATS: Final = ("csv", "json")

_ASCII = ("utf-8", "ascii", "iso8859-1", "cp1252")
"""Encodings whose line feed is one byte that is never part of another character."""


def has_void(parts: Mapping[str, str]) -> bool:
    """Whether a table is JSON with the type VOID anywhere in its schema.

    Spark's JSON parser gives NULL for a VOID value and does not skip the tokens of an object or
    array in its place. For `{"v": {"a": 7}, "a": 1}`, a query of `v` and `a` gets 7, and a query of
    `a` alone gets 1.
    """
    schema = parts.get("schema", "")
    # A column may be named VOID, too; most schemas need no full check.
    return (
        parts.get("format", "").startswith("json ")
        and '"void"' in schema
        and _names_void(json.loads(schema))
    )


def _names_void(kind: object) -> bool:
    """Whether a type in Spark's JSON form is VOID or contains it."""
    if not isinstance(kind, dict):
        return kind == "void"
    inner = [kind.get(key) for key in ("type", "elementType", "keyType", "valueType")]
    fields = [field["type"] for field in kind.get("fields", ())]
    return any(_names_void(one) for one in (*inner, *fields))


def lines_vary(parts: Mapping[str, str]) -> bool:
    """Whether the lines of a file may differ if Spark splits the file at other offsets.

    A separator that overlaps with itself, such as two blanks, may stand in several places between
    two lines. A reader takes the first separator after its start. From ``a   b`` it reads ``a`` and
    `` b``, or ``b`` if a split starts at the second blank. The splits of a build and of a query
    differ, because they depend on the settings of each and on the bytes that it reads.
    """
    # Spark cuts a longer line where a split ends.
    if any(part.endswith("linerecordreader.line.maxlength") for part in parts):
        return True
    separator = parts.get("option.linesep", "")
    encoding = parts.get("option.encoding", parts.get("option.charset", "UTF-8"))
    try:
        found = separator.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        found = separator.encode()
    return any(found.startswith(found[k:]) for k in range(1, len(found)))


def splits_keep_lines(parts: Mapping[str, str]) -> bool:
    """Whether splits of a file at any offsets contain each line exactly once.

    Spark's reader finds the next line by its separator. With a separator of several bytes, or an
    encoding that writes a line feed as several bytes, the rows depend on the splits.
    """
    if lines_vary(parts):
        return False
    encoding = parts.get("option.encoding", parts.get("option.charset", "UTF-8"))
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        return False
    return len(parts.get("option.linesep", "\n").encode()) == 1 and name in _ASCII
