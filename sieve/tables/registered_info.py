"""A table's properties in the catalog: its identity, and the properties that register indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sieve.metadata.records import TableIdentity, identity_from
from sieve.metadata.registration import Registration, malformed_registrations, registrations


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredInfo:
    """A table by its properties in the catalog.

    Attributes:
        identity: identifies the table.
        provider: its format in the catalog, lower case; "" if the catalog names none.
        registrations: its indexes by name.
        malformed: names of indexes whose registration cannot be read.
        declared: the table properties that declare indexes.
        database_location: absolute URI.
    """

    identity: TableIdentity
    provider: str
    registrations: Mapping[str, Registration]
    malformed: tuple[str, ...]
    declared: Mapping[str, str]
    database_location: str

    @property
    def label(self) -> str:
        """The table's name for messages."""
        return f"{self.identity.namespace}.{self.identity.table}"

    def name_of(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """The key itself, because the columns are unknown."""
        return key

    def key_of(self, name: Sequence[str]) -> tuple[str, ...]:
        """The key of the indexed column with this name, ignoring case; else ``name``."""
        wanted = [part.lower() for part in name]
        keys = (one.column for one in self.registrations.values())
        return next((key for key in keys if [part.lower() for part in key] == wanted), tuple(name))


def registered_info_from(raw: Mapping[str, Any]) -> RegisteredInfo:
    """The shim's description of a table's properties, given as parsed JSON."""
    return RegisteredInfo(**registered_members(raw))


def registered_members(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The members of `RegisteredInfo` by name."""
    properties = raw.get("registrations", {})
    return {
        "identity": identity_from(raw),
        "provider": (raw.get("provider") or "").lower(),
        "registrations": registrations(properties),
        "malformed": malformed_registrations(properties),
        "declared": raw.get("declared", {}),
        "database_location": raw["database_location"],
    }
