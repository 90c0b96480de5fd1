"""Text formats: detects tables whose rows depend on the splits or on which columns are read."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import Final

from sieve.metadata.spark_lines import LINES

TEXT_FORMATS: Final = ("csv", "json")

_OF_BOTH: Final = (
    *("charset", "columnnameofcorruptrecord", "dateformat", "encoding"),
    *("enabledatetimeparsingfallback", "linesep", "locale", "mode", "multiline", "samplingratio"),
    *("singlevariantcolumn", "timestampformat", "timestampntzformat", "timezone"),
    *("ignorecorruptfiles", "ignoremissingfiles", "modifiedafter", "modifiedbefore"),
    *("pathglobfilter", "recursivefilelookup"),
)
_OPTIONS: Final = {
    "csv": frozenset(
        {
            *_OF_BOTH,
            *("chartoescapequoteescaping", "columnpruning", "comment", "delimiter"),
            *("emptyvalue", "enforceschema", "escape", "escapequotes", "extension", "header"),
            *("ignoreleadingwhitespace", "ignoretrailingwhitespace", "inferschema", "nanvalue"),
            *("inputbuffersize", "maxcharspercolumn", "maxcolumns", "negativeinf", "nullvalue"),
            *("positiveinf", "preferdate", "quote", "quoteall", "sep", "unescapedquotehandling"),
        }
    ),
    "json": frozenset(
        {
            *_OF_BOTH,
            *("allowbackslashescapinganycharacter", "allowcomments", "allownonnumericnumbers"),
            *("allownumericleadingzeros", "allowsinglequotes", "allowunquotedcontrolchars"),
            *("allowunquotedfieldnames", "dropfieldifallnull", "ignorenullfields", "pretty"),
            *("infertimestamp", "prefersdecimal", "primitivesasstring", "useunsaferow"),
            "writenonasciicharacterascodepoint",
        }
    ),
}
"""The options that Spark's CSV and JSON readers look up, in lower case."""

_OF_WRITERS: Final = ("compression", "codec", "mergeschema")
"""Options that Spark's CSV and JSON readers ignore. The name of a text file shows its codec, and
text has no schemas to merge.
"""


def is_unread_option(files: str, key: str, line: str) -> bool:
    """Returns whether Spark's reader of a text format certainly ignores an option.

    The result is False for a name with a dot, because it may be a Hadoop setting. The result is
    also False for an unknown release line, because its readers may look up further options.

    Args:
        files: ``csv`` or ``json``.
        key: the name of the option, in lower case.
        line: the release line of Spark, such as 4.1.
    """
    unknown = line in LINES and "." not in key and key not in _OPTIONS[files]
    return unknown or key in _OF_WRITERS


_ASCII = ("utf-8", "ascii", "iso8859-1", "cp1252")
"""Encodings in which a line feed is one byte, and this byte is never part of another character."""


def has_void(parts: Mapping[str, str]) -> bool:
    """Returns whether a table is a JSON table whose schema contains the type VOID.

    If the value of a VOID column is an object or an array, Spark's JSON parser returns NULL, but
    does not skip the value's tokens. For the record `{"v": {"a": 7}, "a": 1}` and a VOID column
    `v`, a query of `v` and `a` reads 7 for `a`, but a query of `a` alone reads 1.
    """
    schema = parts.get("schema", "")
    # A column can be named void, so the last condition checks the types in the schema.
    return (
        parts.get("format", "").startswith("json ")
        and '"void"' in schema
        and _names_void(json.loads(schema))
    )


def _names_void(kind: object) -> bool:
    """Returns whether a type in Spark's JSON form is VOID or contains VOID."""
    if not isinstance(kind, dict):
        return kind == "void"
    inner = [kind.get(key) for key in ("type", "elementType", "keyType", "valueType")]
    fields = [field["type"] for field in kind.get("fields", ())]
    return any(_names_void(one) for one in (*inner, *fields))


def lines_vary(parts: Mapping[str, str]) -> bool:
    """Returns whether the lines that Spark reads from a file may depend on the file's splits.

    If the start of a line separator equals its end, as in a separator of two blanks, separators can
    overlap in a file. A reader uses the first separator after the start of its split. Example: the
    separator is two blanks, and the file contains a, three blanks and b. The second line is `` b``
    in a single split, but ``b`` if a split starts at the second blank. A build and a query can use
    different splits, because splits depend on settings and on the number of bytes to read.
    """
    # If a line is longer than linerecordreader.line.maxlength, Spark truncates the line where a
    # split ends.
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
    """Returns whether each line of a file is in exactly one split, wherever the splits begin.

    To find its first line, a split's reader looks for the next line separator. If the separator or
    the encoded line feed has several bytes, a split can begin between these bytes, so the lines
    depend on the splits.
    """
    if lines_vary(parts):
        return False
    encoding = parts.get("option.encoding", parts.get("option.charset", "UTF-8"))
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        return False
    return len(parts.get("option.linesep", "\n").encode()) == 1 and name in _ASCII
