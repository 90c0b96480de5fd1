"""Registration: the table property that makes Spark sessions find an index.

CREATE writes the property ``sieve.index.<name>``. The property contains the facts about an index
that Spark needs before any request: the index's folder, and whether a refresh follows each write to
the table. Everyone who is allowed to alter the table can write the property. Therefore readers
check the length of a value before they parse the value, and ignore invalid values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from sieve.errors import InvalidInputError
from sieve.index_key import expression_of
from sieve.metadata.options import AUTO
from sieve.metadata.paths import UUID
from sieve.metadata.records import IndexUuid
from sieve.storage.interface import join

FORMAT = 1
PREFIX = "sieve.index."
DECLARED_COLUMNS = "sieve.columns"
"""The property in which a table declares the columns to index."""
DECLARED_OPTIONS = "sieve.options"
"""The property with the options of declared indexes."""
VALUE_LIMIT = 1023
"""Maximum length of the value in characters. The metastore stores 4,000 characters or more, but
some other tools store fewer."""

NAME_LIMIT = 128
MAX_COLUMN_DEPTH = 100

_ROOT = re.compile(r"[a-z][a-z0-9+.-]*:/[^\0]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of one index in its table.

    Attributes:
        uuid: the index's identity; the index's name is only for users.
        column: path of the indexed column, exact case.
        root: URI of the folder that contains the index's own folder, whose name is the UUID.
        follows: whether a refresh follows each write to the table (option ``refresh = 'auto'``).
    """

    uuid: IndexUuid
    column: tuple[str, ...]
    root: str
    follows: bool = False

    @property
    def directory(self) -> str:
        """URI of the index's own folder."""
        return join(self.root, self.uuid)


def property_key(name: str) -> str:
    """The key of the property that registers an index; converts the name to lower case.

    Raises:
        InvalidInputError: the name is empty, longer than 128 characters, or has control characters.
    """
    if not 1 <= len(name) <= NAME_LIMIT or _CONTROL.search(name):
        raise InvalidInputError(
            "SIEVE_INVALID_NAME",
            f"index name {name[:NAME_LIMIT]!r} must have 1 to {NAME_LIMIT} characters and no "
            "control characters",
        )
    return PREFIX + name.lower()


def render_registration(registration: Registration) -> str:
    """The value of the property: ASCII JSON below 1 KB.

    Raises:
        InvalidInputError: column and root together are too long.
    """
    record = {
        "format": FORMAT,
        "uuid": registration.uuid,
        "column": registration.column,
        "root": registration.root,
    }
    if registration.follows:
        record["refresh"] = AUTO
    value = json.dumps(record, separators=(",", ":"))
    if len(value) > VALUE_LIMIT:
        raise InvalidInputError(
            "SIEVE_REGISTRATION_TOO_LONG",
            f"the column's path and the root {registration.root!r} do not fit in "
            f"{VALUE_LIMIT} characters; set spark.sieve.path to a shorter folder",
        )
    return value


def parse_registration(value: str) -> Registration | None:
    """Parses a property's value; returns None if it is malformed or of a newer format."""
    if len(value) > VALUE_LIMIT:
        return None
    try:
        record = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not _is_format_1(record.get("format")):
        return None
    uuid, column, root = (record.get(key) for key in ("uuid", "column", "root"))
    if not _matches(uuid, UUID) or not _is_root(root) or not _is_path(column):
        return None
    return Registration(IndexUuid(uuid), tuple(column), root, record.get("refresh") == AUTO)


def registrations(properties: Mapping[str, str]) -> dict[str, Registration]:
    """All well-formed registrations among a table's properties, by index name, in key order."""
    parsed = ((name, parse_registration(value)) for name, value in _values(properties))
    return {name: registration for name, registration in parsed if registration is not None}


def malformed_registrations(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The names of indexes whose registration is malformed or of a newer format, in key order."""
    return tuple(name for name, value in _values(properties) if parse_registration(value) is None)


def _values(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in sorted(properties):
        name = key.removeprefix(PREFIX)
        if key.startswith(PREFIX) and 1 <= len(name) <= NAME_LIMIT:
            yield name, properties[key]


def _is_format_1(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == FORMAT


def _matches(value: Any, pattern: re.Pattern[str]) -> TypeGuard[str]:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_root(value: Any) -> TypeGuard[str]:
    return _matches(value, _ROOT) and not {".", ".."} & set(value.split("/"))


def _is_path(value: Any) -> TypeGuard[list[str]]:
    return (
        isinstance(value, list)
        and 1 <= len(value) <= MAX_COLUMN_DEPTH
        and all(isinstance(part, str) for part in value)
        and (all(value) or bool(expression_of(value)))
    )
