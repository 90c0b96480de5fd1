"""JSON reader: reads the members of a decoded JSON object, and checks their kinds and limits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from sieve.errors import CorruptError

T = TypeVar("T")

INT64_MAX = (1 << 63) - 1
TEXT_LIMIT = 4096
SMALL_OBJECT_NODES = 1000
SMALL_OBJECT_DEPTH = 8


class Fields:
    """Reads the members of one JSON object by name; `done` refuses members that were not read.

    Every method raises `CorruptError` if the member is missing, is not of the method's kind, or
    exceeds a limit. The error names the member. The lengths of strings are counted in characters.
    """

    __slots__ = ("_members", "_taken", "_where")

    def __init__(self, value: Any, where: str) -> None:
        self._where = where
        if not isinstance(value, dict):
            raise self._wrong("is not an object")
        self._members: dict[str, Any] = value
        self._taken: set[str] = set()

    def names(self) -> set[str]:
        """Returns the names of all members of the object."""
        return set(self._members)

    def done(self, made: T) -> T:
        """Returns ``made``; raises CorruptError if the object has a member that was not read."""
        unknown = self._members.keys() - self._taken
        if unknown:
            raise self._wrong(f"has an unknown member {min(unknown)[:100]!r}")
        return made

    def made(self, record: Callable[..., T], **read: Callable[[str], Any]) -> T:
        """Returns a dataclass object whose attributes have the values of this object's members.

        Args:
            record: the dataclass.
            read: for some attributes, a function that takes the attribute's name and reads its
                member. Every other attribute must be an int, float or str. The attribute's type
                decides how the member is read.
        """
        by_type: dict[str, Callable[[str], Any]] = {
            "int": self.integer,
            "float": self.real,
            "str": self.text,
        }
        names = [(one.name, str(one.type)) for one in fields(record)]  # type: ignore[arg-type]
        members = {name: (read.get(name) or by_type[kind])(name) for name, kind in names}
        return self.done(record(**members))

    def optional(self, name: str, read: Callable[[], T]) -> T | None:
        """Returns None if the member is a JSON null, otherwise the result of ``read``."""
        return None if self._take(name) is None else read()

    def boolean(self, name: str) -> bool:
        """Returns a member that is a JSON true or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong("is not a boolean", name)
        return value

    def integer(self, name: str, low: int = 0, high: int = INT64_MAX) -> int:
        """Returns a member that is a JSON integer from ``low`` to ``high``."""
        value = self._take(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._wrong(f"is not an integer from {low} to {high}", name)
        return value

    def real(self, name: str) -> float:
        """Returns a member that is a finite JSON number of 0 or more."""
        value = self._take(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64_MAX:
            return float(value)
        if not isinstance(value, float) or not math.isfinite(value) or value < 0:
            raise self._wrong("is not a finite number of 0 or more", name)
        return value

    def text(
        self,
        name: str,
        low: int = 0,
        high: int = TEXT_LIMIT,
        pattern: re.Pattern[str] | None = None,
    ) -> str:
        """Returns a string of ``low`` to ``high`` characters that matches the whole pattern."""
        return self._text(self._take(name), name, low, high, pattern)

    def texts(
        self,
        name: str,
        low: int = 0,
        *,
        high: int,
        shortest: int = 1,
        pattern: re.Pattern[str] | None = None,
    ) -> tuple[str, ...]:
        """Returns an array of ``low`` to ``high`` strings, each at least ``shortest`` long."""
        values = self._array(name, low, high)
        return tuple(self._text(value, name, shortest, TEXT_LIMIT, pattern) for value in values)

    def text_map(self, name: str, count: int, length: int) -> dict[str, str]:
        """Returns an object of at most ``count`` strings, each at most ``length`` long."""
        value = self._take(name)
        if not isinstance(value, dict) or len(value) > count:
            raise self._wrong(f"is not an object of at most {count} members", name)
        return {
            self._text(key, name, 0, TEXT_LIMIT, None): self._text(text, name, 0, length, None)
            for key, text in value.items()
        }

    def ranges(self, name: str, high: int) -> tuple[tuple[int, int], ...]:
        """Returns an array of at most ``high`` ascending, disjoint ranges of 64-bit integers.

        In the array, each range is a pair [first, last].
        """
        ranges: list[tuple[int, int]] = []
        for value in self._array(name, 0, high):
            if not isinstance(value, list) or len(value) != 2 or not all(map(_is_int64, value)):
                raise self._wrong("is not an array of pairs of 64-bit integers", name)
            if value[0] > value[1] or (ranges and value[0] <= ranges[-1][1]):
                raise self._wrong("has ranges that do not ascend", name)
            ranges.append((value[0], value[1]))
        return tuple(ranges)

    def record(self, name: str) -> Fields:
        """Returns the reader of a member that is an object."""
        return Fields(self._take(name), f"{self._where}.{name}")

    def records(self, name: str, high: int) -> list[Fields]:
        """Returns a reader for each object in an array of at most ``high`` objects."""
        values = self._array(name, 0, high)
        return [Fields(value, f"{self._where}.{name}[{i}]") for i, value in enumerate(values)]

    def small_object(self, name: str, text: int = TEXT_LIMIT) -> dict[str, Any]:
        """Returns an object; limits its depth, its number of values and its text lengths."""
        value = self._take(name)
        if not isinstance(value, dict):
            raise self._wrong("is not an object", name)
        level: list[Any] = [value]
        nodes = 0
        for _ in range(SMALL_OBJECT_DEPTH):
            nodes += len(level)
            if nodes > SMALL_OBJECT_NODES:
                raise self._wrong(f"has more than {SMALL_OBJECT_NODES} values", name)
            for node in level:
                if isinstance(node, str):
                    self._text(node, name, 0, text, None)
            level = [child for node in level for child in _children(node)]
        if level:
            raise self._wrong(f"is nested deeper than {SMALL_OBJECT_DEPTH}", name)
        return value

    def _array(self, name: str, low: int, high: int) -> list[Any]:
        value = self._take(name)
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise self._wrong(f"is not an array of {low} to {high} values", name)
        return value

    def _text(
        self, value: Any, name: str, low: int, high: int, pattern: re.Pattern[str] | None
    ) -> str:
        if not isinstance(value, str) or not low <= len(value) <= high:
            raise self._wrong(f"is not a string of {low} to {high} characters", name)
        if pattern is not None and pattern.fullmatch(value) is None:
            raise self._wrong("does not have its fixed pattern", name)
        return value

    def _take(self, name: str) -> Any:
        if name not in self._members:
            raise self._wrong("is missing", name)
        self._taken.add(name)
        return self._members[name]

    def _wrong(self, what: str, name: str | None = None) -> CorruptError:
        where = self._where if name is None else f"{self._where}.{name}"
        return CorruptError("SIEVE_MANIFEST_CORRUPT", f"{where} {what}")


def _is_int64(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and -(1 << 63) <= value <= INT64_MAX


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return [*node.keys(), *node.values()]
    return node if isinstance(node, list) else []
