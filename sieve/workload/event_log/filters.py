"""Converts a scan's filters in an event log into column uses, which contain no constants.

    PushedFilters  [IsNotNull(id), Or(EqualTo(id,5),In(id, [7,8])), EqualTo(`my col`,it's)]
    DataFilters    [isnotnull(ts#13), (year(cast(ts#13 as date)) = 1970)]

Spark does not quote the constants in a list of filters. So this module cannot read a list that
contains a constant with unbalanced brackets. ``PushedFilters`` contains the filters without
functions that an index on a column can evaluate. Filters with functions are in ``DataFilters``,
where regular expressions find them. A part of a constant can look like a column, so a name counts
as a column only if the scan's schema contains the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sieve.errors import UnsupportedError
from sieve.index_key import ELEMENTS, GRAM_BYTES, SUBSTRING, expression_key
from sieve.workload.column_use import Column, ColumnUse, Kind, Uses, all_of, any_of, negated
from sieve.workload.spelling import spelled

MAX_DEPTH: Final = 200
_CUT_OFF = re.compile(r"\.\.\. \d+ more fields")
_CALL = re.compile(r"\w+\(")
_KINDS = {
    "EqualTo": Kind.EQUALS,
    "EqualNullSafe": Kind.EQUALS,
    "GreaterThan": Kind.RANGE,
    "GreaterThanOrEqual": Kind.RANGE,
    "LessThan": Kind.RANGE,
    "LessThanOrEqual": Kind.RANGE,
    "In": Kind.IN,
    "IsNull": Kind.NULL,
    "IsNotNull": None,
    "StringStartsWith": Kind.PREFIX,
    "StringEndsWith": Kind.CONTAINS,
    "StringContains": Kind.CONTAINS,
}
# Matches comparisons of monotone functions. From a comparison of a monotone function, the shim
# derives a range of the function's argument (MonotoneFunction.scala).
_FUNCTION = re.compile(
    r"(?:^\[|, )\((?P<calls>(?:(?:cast|year|trunc|date_trunc|date_add|date_sub)\()+)(?:\w+, )?"
    r"(?P<name>[^#(),]{1,300})#\d+L?[^=<>]{0,200} (?P<op><=>|=|<=|>=|<|>) "
)
# Matches comparisons of functions that are not monotone. For functions that are not monotone, only
# an index on the expression helps.
_EXPRESSION = re.compile(
    r"(?:^\[|, )\((?:(?P<call>lower|upper|length)\((?P<name>[^#(),]{1,300})#\d+L?\)"
    r"|get_json_object\((?P<json>[^#(),]{1,300})#\d+, (?P<path>\$[\w.\[\]]{1,300})\)) "
    r"(?P<op><=>|=|<=|>=|<|>) "
)


# Matches predicates on elements of arrays, and on keys and values of maps.
_ELEMENTS = re.compile(
    r"(?:^\[|, )"
    r"(?:(?:array_contains|arrays_overlap)\((?:(?P<map>map_keys|map_values)\()?|(?P<exists>exists)\()"
    r"(?P<name>[^#(),]{1,300})#\d+(?P<fields>(?:\.\w+)*)\)?, "
    r"(?:lambdafunction\(\(?lambda \w+#\d+L?(?P<inner>(?:\.\w+)*) (?:(?P<op>=|<=|>=|<|>)|IN) )?"
)
# Matches LIKE if the pattern begins with a wildcard. Also matches ``Contains`` and ``EndsWith``,
# which Spark uses instead of LIKE for simple patterns.
_LIKE = re.compile(
    r"(?:^\[|, )(?:(?P<name>[^#(),]{1,300})#\d+ LIKE (?P<pattern>[%_][^,\]\\]*)(?=[,\]])"
    r"|(?:Contains|EndsWith)\((?P<of>[^#(),]{1,300})#\d+, (?P<text>[^()]*)\)(?=[,\]]))"
)


class UnreadableFilterError(UnsupportedError):
    """A list of filters in a plan does not have Spark's form."""

    def __init__(self, problem: str) -> None:
        super().__init__("SIEVE_EVENT_LOG", f"the list of filters has {problem}")


class ScanSchema:
    """The names of a scan's columns.

    Args:
        read_schema: the schema as text, such as ``struct<id:bigint,s:struct<a:int>>``; truncated if
            it is long. None if the plan does not contain the schema.
        filters: the scan's filters, which contain column names in Catalyst's form, such as
            ``id#12L``. If ``read_schema`` is None, ``filters`` also lists the scan's columns in
            this form.
    """

    def __init__(self, read_schema: str | None, filters: str) -> None:
        self._text = read_schema or ""
        self._filters = filters
        self._is_partial = read_schema is None
        self.is_cut_off = (
            _CUT_OFF.search(filters if read_schema is None else read_schema) is not None
        )

    def has(self, column: Column) -> bool:
        """Returns whether the scan has this column.

        If the scan's schema is truncated or unknown, the result is also True for each column that a
        filter names. For a part of a VARIANT, the result is False. The plan does not show the
        part's path, because Spark reads a struct with the fields 0, 1, ... instead.
        """
        if column[-1].isdigit() and f"{column[0]}:struct<0:" in self._text:
            return False
        if all(f"<{name}:" in self._text or f",{name}:" in self._text for name in column):
            return True
        filtered = re.search(rf"(?<!\w){re.escape(column[0])}#\d", self._filters) is not None
        return (self.is_cut_off or self._is_partial) and filtered

    def is_text(self, name: str) -> bool:
        """Returns whether a column's type is string or unknown."""
        return re.search(f"[<,]{re.escape(name)}:(?!string)", self._text) is None

    def is_nested(self, name: str) -> bool:
        """Returns whether a column is a struct, an array or a map.

        An index on the whole value of a struct, an array or a map is not possible.
        """
        types = re.findall(rf"[<,]{re.escape(name)}:(\w+)", self._text)
        return bool(types) and {"struct", "array", "map"}.issuperset(types)


def column_uses(pushed: str, data_filters: str, schema: ScanSchema) -> Uses:
    """Returns the uses of columns in the filters of a scan of files.

    Args:
        pushed: the scan's metadata ``PushedFilters``.
        data_filters: the scan's metadata ``DataFilters``.
        schema: the columns of the scan.

    Raises:
        UnreadableFilterError: Spark truncated the filters, or a constant has unbalanced brackets.
    """
    parser = _Parser(pushed)
    uses = all_of([parser.conjunction(), *_functions(data_filters, schema)])
    columns = {key: parser.texts.get(key, key) for key in uses}
    own = {
        key: uses[key]
        for key, column in columns.items()
        if schema.has(column) and not schema.is_nested(column[-1])
    }
    return {**own, **other_uses(data_filters, schema)}


def other_uses(data_filters: str, schema: ScanSchema) -> Uses:
    """Returns the uses of expressions, elements and substrings in the filters of a scan.

    Args:
        data_filters: the filters in Catalyst's form, as in the metadata ``DataFilters``.
        schema: the columns of the scan.
    """
    others = [
        *_expressions(data_filters, schema),
        *_elements(data_filters, schema),
        *_patterns(data_filters, schema),
    ]
    return all_of(others)


def _expressions(data_filters: str, schema: ScanSchema) -> Iterator[Uses]:
    for found in _EXPRESSION.finditer(data_filters):
        name = (found["name"] or found["json"],)
        if schema.has(name) and schema.is_text(name[0]):
            equal = found["op"] in ("=", "<=>")
            column = spelled(name)
            sql = f"{found['call']}({column})"
            if found["json"]:
                sql = f"get_json_object({column}, '{found['path']}')"
            yield {expression_key(sql): ColumnUse(Kind.EQUALS if equal else Kind.RANGE)}


def _elements(data_filters: str, schema: ScanSchema) -> Iterator[Uses]:
    for found in _ELEMENTS.finditer(data_filters):
        path = (found["name"], *found["fields"].split(".")[1:])
        inner = (found["inner"] or "").split(".")[1:]
        # Only `exists` has a lambda function as an argument; the other functions have constants.
        is_readable = found["exists"] is None or found["inner"] is not None
        if is_readable and schema.has((*path, *inner)):
            sql = spelled((*path, *inner))
            if found["map"]:
                sql = f"{found['map']}({sql})"
            equal = found["op"] in (None, "=")
            kind = Kind.EQUALS if equal else Kind.RANGE
            yield {expression_key(sql, ELEMENTS): ColumnUse(kind)}


def _patterns(data_filters: str, schema: ScanSchema) -> Iterator[Uses]:
    for found in _LIKE.finditer(data_filters):
        name = (found["name"] or found["of"],)
        texts = re.split("[%_]", found["pattern"]) if found["name"] else [found["text"]]
        if schema.has(name) and any(map(_has_grams, texts)):
            yield {expression_key(spelled(name), SUBSTRING): ColumnUse(Kind.CONTAINS)}


def _has_grams(text: str) -> bool:
    """Returns whether a text is long enough for a look-up in an index on substrings."""
    return len(text.encode()) >= GRAM_BYTES


def _functions(data_filters: str, schema: ScanSchema) -> Iterator[Uses]:
    for found in _FUNCTION.finditer(data_filters):
        name = found["name"]
        if not ("cast(" in found["calls"] and schema.is_text(name)):
            equal = found["op"] in ("=", "<=>")
            yield {(name,): ColumnUse(Kind.BETWEEN if equal else Kind.RANGE)}


class _Parser:
    """A recursive descent parser of ``PushedFilters``.

    Attributes:
        texts: a dict from the key of a substring index to the path of the indexed column. The dict
            contains the substring keys that `conjunction` returns.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.texts: dict[Column, Column] = {}

    def conjunction(self) -> Uses:
        if self._text in ("", "[]"):
            return {}
        self._expect("[")
        parts = [self._filter(0)]
        while not self._text.startswith("]", self._at):
            self._expect(", ")
            parts.append(self._filter(0))
        self._expect("]")
        if self._at != len(self._text):
            raise UnreadableFilterError("text after its end")
        return all_of(parts)

    def _filter(self, depth: int) -> Uses:
        if depth > MAX_DEPTH:
            raise UnreadableFilterError(f"more than {MAX_DEPTH} levels")
        call = _CALL.match(self._text, self._at)
        if call is None:
            raise UnreadableFilterError("no filter where one should begin")
        name = call[0][:-1]
        self._at = call.end()
        if name in ("And", "Or"):
            left = self._filter(depth + 1)
            self._expect(",")
            combine = all_of if name == "And" else any_of
            uses = combine([left, self._filter(depth + 1)])
        elif name == "Not":
            uses = negated(self._filter(depth + 1))
        elif name in _KINDS:
            return self._leaf(name)
        else:
            self._skip_constant()
            uses = {}
        self._expect(")")
        return uses

    def _leaf(self, name: str) -> Uses:
        column = self._column()
        start = self._at
        self._skip_constant()
        constant = self._text[start : self._at]
        self._expect(")")
        kind = _KINDS[name]
        if kind is None:
            return {}
        if kind is Kind.CONTAINS:
            if not _has_grams(constant.removeprefix(",")):
                return {column: ColumnUse(Kind.OTHER)}
            key = expression_key(spelled(column), SUBSTRING)
            self.texts[key] = column
            return {key: ColumnUse(kind)}
        values = constant.count(",") if kind is Kind.IN else 1
        return {column: ColumnUse(kind, values)}

    def _column(self) -> Column:
        parts = [self._name()]
        while self._text.startswith(".", self._at):
            self._at += 1
            parts.append(self._name())
        return tuple(parts)

    def _name(self) -> str:
        found = re.compile(r"`((?:[^`]|``)+)`|([^`.,()]+)").match(self._text, self._at)
        if found is None:
            raise UnreadableFilterError("no column where one should be")
        self._at = found.end()
        return found[2] or found[1].replace("``", "`")

    def _skip_constant(self) -> None:
        """Skips a constant, up to the bracket that closes the filter around the constant."""
        depth = 0
        for found in re.compile(r"[()]").finditer(self._text, self._at):
            if found[0] == ")" and depth == 0:
                self._at = found.start()
                return
            depth += 1 if found[0] == "(" else -1
        raise UnreadableFilterError("a bracket that is not closed")

    def _expect(self, text: str) -> None:
        if not self._text.startswith(text, self._at):
            raise UnreadableFilterError("a constant with brackets")
        self._at += len(text)
