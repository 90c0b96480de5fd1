"""Text formats: detects tables whose rows depend on splits or on the columns of a query."""

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
"""The options that Spark's readers of text look up, in lower case."""

_OF_WRITERS: Final = ("compression", "codec", "mergeschema")
"""Options that readers ignore: a file's name shows its codec, and readers of text merge no schemas.
"""


def is_unread_option(files: str, key: str, line: str) -> bool:
    """Returns whether no reader of a text format looks up an option of this name.

    The answer is False for a name with a dot, which can be a Hadoop setting, and for an unknown
    release line, which can have further options.

    Args:
        files: ``csv`` or ``json``.
        key: the option, in lower case.
        line: the release line of Spark, such as 4.1.
    """
    unknown = line in LINES and "." not in key and key not in _OPTIONS[files]
    return unknown or key in _OF_WRITERS


_ASCII = ("utf-8", "ascii", "iso8859-1", "cp1252")
"""Encodings whose line feed is one byte that is never part of another character."""


def has_void(parts: Mapping[str, str]) -> bool:
    """Returns whether a table is JSON with the type VOID anywhere in its schema.

    If the value of a VOID column is an object or array, Spark's JSON parser returns NULL but does
    not skip the tokens of the value. For `{"v": {"a": 7}, "a": 1}`, a query of `v` and `a` reads 7
    for `a`, and a query of `a` alone reads 1.
    """
    schema = parts.get("schema", "")
    # A column can also have the name void, so this line then checks the types of the parsed schema.
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
    """Returns whether the lines that Spark reads from a file can depend on the file's splits.

    A separator that overlaps with itself, such as two blanks, can occur at several overlapping
    offsets between two lines. A reader uses the first separator after the start of its split. If
    three blanks separate a and b, the second line is `` b``. If a split starts at the second blank,
    the second line is ``b``. A build and a query use different splits, because splits depend on
    settings and on the number of bytes to read.
    """
    # If a line is longer than this setting, Spark cuts the line where a split ends.
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
    """Returns whether splits of a file at any offsets contain each line exactly once.

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
