"""A table's identity and its registered indexes, from the table's properties in the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sieve.metadata.records import TableIdentity, identity_from
from sieve.metadata.registration import Registration, malformed_registrations, registrations


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredInfo:
    """A table as its properties in the catalog describe it.

    Attributes:
        identity: identifies the table.
        provider: the table's format in the catalog, in lower case; "" if the catalog names no
            format.
        registrations: a dict from the name of each registered index to its registration.
        malformed: names of indexes whose registration is malformed.
        declared: the table properties that declare indexes.
        database_location: absolute URI of the folder of the table's database.
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
        """Returns the key itself, because the table's columns are unknown here."""
        return key

    def key_of(self, name: Sequence[str]) -> tuple[str, ...]:
        """The key of the indexed column with this name, ignoring case.

        Returns ``name`` if no indexed column has this name.
        """
        wanted = [part.lower() for part in name]
        keys = (one.column for one in self.registrations.values())
        return next((key for key in keys if [part.lower() for part in key] == wanted), tuple(name))


def registered_info_from(raw: Mapping[str, Any]) -> RegisteredInfo:
    """Makes the record from the shim's parsed JSON."""
    return RegisteredInfo(**registered_members(raw))


def registered_members(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a dict with the members of `RegisteredInfo`, from the shim's parsed JSON."""
    properties = raw.get("registrations", {})
    return {
        "identity": identity_from(raw),
        "provider": (raw.get("provider") or "").lower(),
        "registrations": registrations(properties),
        "malformed": malformed_registrations(properties),
        "declared": raw.get("declared", {}),
        "database_location": raw["database_location"],
    }
