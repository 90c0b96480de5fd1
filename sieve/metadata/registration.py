"""Registration: the table property through which Spark sessions find an index.

CREATE writes the property ``sieve.index.<name>``. The property contains the index's folder, and
whether each write to the table refreshes the index. Spark needs this information before its first
request to Sieve. Everyone who may alter the table can change the property. Therefore readers check
the length of the property's value before they parse it, and ignore an invalid value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from sieve.errors import InvalidInputError
from sieve.index_key import expression_of
from sieve.metadata.index_options import AUTO
from sieve.metadata.paths import UUID
from sieve.metadata.records import IndexUuid
from sieve.storage.interface import join

FORMAT = 1
PREFIX = "sieve.index."
DECLARED_COLUMNS = "sieve.columns"
"""The table property that declares the columns to index."""
DECLARED_OPTIONS = "sieve.options"
"""The table property that contains the options of the declared indexes."""
VALUE_LIMIT = 1023
"""Maximum length of a registration's value in characters. The Hive metastore accepts values of
4,000 characters or more, but some other tools accept only shorter values."""

NAME_LIMIT = 128
MAX_COLUMN_DEPTH = 100

_ROOT = re.compile(r"[a-z][a-z0-9+.-]*:/[^\0]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of one index, as stored in its table's properties.

    Attributes:
        uuid: the unique id of the index. Sieve identifies an index by its UUID; the index's name is
            only for users.
        column: the path of the indexed column, in the column's own case.
        root: URI of the root folder. The index's own folder is in the root, and is named by the
            UUID.
        follows: whether each write to the table refreshes the index (option ``refresh = 'auto'``).
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
    """Returns the key of the property that registers an index, with the index's name in lower case.

    Raises:
        InvalidInputError: the name is empty, is longer than 128 characters, or contains control
            characters.
    """
    if not 1 <= len(name) <= NAME_LIMIT or _CONTROL.search(name):
        raise InvalidInputError(
            "SIEVE_INVALID_NAME",
            f"index name {name[:NAME_LIMIT]!r} must have 1 to {NAME_LIMIT} characters and no "
            "control characters",
        )
    return PREFIX + name.lower()


def render_registration(registration: Registration) -> str:
    """Returns the value of the property that registers an index: ASCII JSON below 1 KB.

    Raises:
        InvalidInputError: the value would be too long, because of a long column path or a long
            root.
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
    """Parses the value of a registration; returns None for a malformed value or a newer format."""
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
    """Returns a dict from index name to well-formed registration, in the order of property keys."""
    parsed = ((name, parse_registration(value)) for name, value in _values(properties))
    return {name: registration for name, registration in parsed if registration is not None}


def malformed_registrations(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names of indexes whose registration is malformed or of a newer format, sorted."""
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
