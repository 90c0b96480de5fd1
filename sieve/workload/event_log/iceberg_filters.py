"""Converts the filters of an Iceberg scan in an event log into column uses.

Iceberg writes the filters that it evaluates into the text of the scan's node:

    id IS NOT NULL, id = 5, (s LIKE 'x%' OR s.a IN (1, 2)), NOT (my col = 'it's')

Iceberg puts quotes around a text, but does not escape quotes inside the text. Iceberg does not
quote column names. All other filters are in Catalyst's form, in the Filter node above the scan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from sieve.workload.column_use import ColumnUse, Kind, Uses, all_of, any_of, negated
from sieve.workload.event_log.filters import MAX_DEPTH, UnreadableFilterError

_KINDS: Final = {
    "=": Kind.EQUALS,
    "!=": Kind.UNEQUAL,
    "<": Kind.RANGE,
    "<=": Kind.RANGE,
    ">": Kind.RANGE,
    ">=": Kind.RANGE,
    "LIKE": Kind.PREFIX,
    "NOT LIKE": Kind.UNEQUAL,
    "IN": Kind.IN,
    "NOT IN": Kind.UNEQUAL,
}
_TEXT: Final = r"'.*?'(?=[,)]| AND | OR |$)"
_CONSTANT: Final = rf"(?:{_TEXT}|[^\s,()']+)"
_LEAF = re.compile(
    r"(?P<name>[^'()=<>!,]+?) "
    r"(?:IS (?P<not>NOT )?NULL"
    rf"|(?P<op>!=|<=|>=|=|<|>|(?:NOT )?LIKE) {_CONSTANT}"
    rf"|(?P<in>(?:NOT )?IN) \((?P<values>{_CONSTANT}(?:, {_CONSTANT})*)\))"
    r"(?=[,)]| AND | OR |$)",
    re.DOTALL,
)
_TERM = r"[\w.]+\([^'()]*\)"
"""A transform such as ``bucket[16](id)``, or a function such as ``is_nan(d)``."""
_OTHER = re.compile(
    rf"(?:{_TERM}|[\w.]+\[\d+\]\([^'()]*\))"
    rf"(?: IS (?:NOT )?NULL| (?:!=|<=|>=|=|<|>) {_CONSTANT}"
    rf"| (?:NOT )?IN \({_CONSTANT}(?:, {_CONSTANT})*\))?(?=[,)]| AND | OR |$)",
    re.DOTALL,
)
_JOINED: Final[dict[str, Callable[[Iterable[Uses]], Uses]]] = {" AND ": all_of, " OR ": any_of}


def iceberg_uses(filters: str) -> Uses:
    """Returns the uses of columns in the filters of an Iceberg scan.

    Args:
        filters: the filters, separated by commas, as Iceberg prints them.

    Raises:
        UnreadableFilterError: the text does not have Iceberg's form, or a quote inside a constant
            looks like the end of the constant.
    """
    if not filters:
        return {}
    parts = []
    at = 0
    while True:
        uses, at = _filter(filters, at, 0)
        parts.append(uses)
        if at == len(filters):
            return all_of(parts)
        at = _after(filters, at, ", ")


def conjuncts(condition: str) -> list[str]:
    """Splits the text of a Filter node into the operands of its AND.

    The operands keep their brackets, as in the metadata ``DataFilters`` of a scan of files.

    Raises:
        UnreadableFilterError: a constant has unbalanced brackets.
    """
    found: list[str] = []
    waiting = [condition.removeprefix("Filter ")]
    while waiting:
        text = waiting.pop()
        at = _and_of(text) if text.startswith("(") else -1
        if at < 0:
            found.append(text)
        else:
            waiting += [text[at + len(" AND ") : -1], text[1:at]]
    return found


def _and_of(text: str) -> int:
    """The position of the AND inside the outermost brackets of a text; -1 if there is no AND."""
    depth, found = 0, -1
    for bracket in re.finditer(r"[()]| AND ", text):
        if bracket[0] == " AND ":
            found = bracket.start() if depth == 1 and found < 0 else found
            continue
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0 and bracket.end() < len(text):
            return -1
    if depth:
        raise UnreadableFilterError("a constant with brackets")
    return found


def _filter(text: str, at: int, depth: int) -> tuple[Uses, int]:
    """Reads one filter; returns its uses and the position of its end."""
    if depth > MAX_DEPTH:
        raise UnreadableFilterError(f"more than {MAX_DEPTH} levels")
    if text.startswith("NOT (", at):
        uses, at = _filter(text, at + len("NOT ("), depth + 1)
        return negated(uses), _after(text, at, ")")
    if text.startswith("(", at):
        left, at = _filter(text, at + 1, depth + 1)
        word = next((word for word in _JOINED if text.startswith(word, at)), None)
        if word is None:
            raise UnreadableFilterError("neither AND nor OR in brackets")
        right, at = _filter(text, at + len(word), depth + 1)
        return _JOINED[word]([left, right]), _after(text, at, ")")
    other = _OTHER.match(text, at)
    if other is not None:
        return {}, other.end()
    leaf = _LEAF.match(text, at)
    if leaf is None:
        raise UnreadableFilterError("no filter where one should begin")
    return _use(leaf), leaf.end()


def _use(leaf: re.Match[str]) -> Uses:
    column = tuple(leaf["name"].split("."))
    if leaf["in"]:
        values = len(re.findall(_CONSTANT + "(?:, |$)", leaf["values"]))
        return {column: ColumnUse(_KINDS[leaf["in"]], values if leaf["in"] == "IN" else 1)}
    if leaf["op"]:
        return {column: ColumnUse(_KINDS[leaf["op"]])}
    return {} if leaf["not"] else {column: ColumnUse(Kind.NULL)}


def _after(text: str, at: int, expected: str) -> int:
    if not text.startswith(expected, at):
        raise UnreadableFilterError("a constant with quotes or brackets")
    return at + len(expected)
