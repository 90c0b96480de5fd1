"""Text formats, in which the rows of a damaged record depend on the columns that a query reads.

A version proves something of such files only if its build read whole records (decision record 23).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

TEXT_FORMATS: Final = ("csv", "json")


def is_outdated(format_name: str, parts: Mapping[str, str]) -> bool:
    """Whether an earlier release made a version that proves too little.

    A build of such a release read one column of a text format's records. A damaged record showed it
    other rows than it shows a query of more columns. JSON with a VOID column was not refused.

    Args:
        format_name: the table's, as the version has it.
        parts: what the version's fingerprint was made of.
    """
    return format_name in TEXT_FORMATS and (parts.get("records") != "whole" or has_void(parts))


def has_void(parts: Mapping[str, str]) -> bool:
    """Whether a table is JSON with the type VOID somewhere in its schema.

    Spark's JSON parser gives NULL for such a value and does not pass over the tokens of an object
    or a list: of `{"v": {"a": 7}, "a": 1}` a query of `v` and `a` gets 7, one of `a` alone gets 1.
    """
    schema = parts.get("schema", "")
    # A column may be called so, too; most schemas need no second look.
    return (
        parts.get("format", "").startswith("json ")
        and '"void"' in schema
        and _names_void(json.loads(schema))
    )


def _names_void(kind: object) -> bool:
    """Whether a type, as Spark writes it in JSON, is VOID or has it inside."""
    if not isinstance(kind, dict):
        return kind == "void"
    inner = [kind.get(key) for key in ("type", "elementType", "keyType", "valueType")]
    fields = [field["type"] for field in kind.get("fields", ())]
    return any(_names_void(one) for one in (*inner, *fields))
