"""Registered tables: a table, and the indexes that its catalog properties register.

Statements that show, disable or drop an index need neither the table's files nor its columns. So
statements about registered indexes work even if the files are lost or Spark can no longer read the
table.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from sieve.errors import (
    DeniedError,
    InvalidInputError,
    UnavailableError,
    UnknownOutcomeError,
)
from sieve.metadata.registration import (
    DECLARED_COLUMNS,
    Registration,
    property_key,
    registrations,
    render_registration,
)
from sieve.storage.java_errors import answered, denied, first_line
from sieve.tables.jvm_failures import FAILURES
from sieve.tables.registered_info import RegisteredInfo

# Without this lock, two statements of one driver could both find a name unused, and register two
# indexes under this name.
_registering = threading.Lock()


class RegisteredTable:
    """A table of the catalog and its registered indexes.

    Args:
        access: the shim's access to the table.
        info: the table's properties in the catalog.
    """

    info: RegisteredInfo

    def __init__(self, access: Any, info: RegisteredInfo) -> None:
        self._access = access
        self.info = info

    def register(
        self, name: str, registration: Registration, in_place_of: Registration | None = None
    ) -> None:
        """Writes an index's property, and updates the registry of all sessions of this driver.

        Args:
            registration: the value of the property.
            in_place_of: the value that the property must have before the write (compare and set);
                None means the value in `info`.

        Raises:
            InvalidInputError: after `info` was read, another statement registered an index of this
                name.
            UnavailableError: the metastore does not answer, and the property is unchanged.
            UnknownOutcomeError: the metastore stopped answering during the write.
            Py4JError, PySparkException: the metastore refused the write, and the property is
                unchanged.
        """
        key, value = property_key(name), render_registration(registration)
        with _registering:
            # Read the properties first. If the metastore is unavailable, the call then fails before
            # it changes anything.
            now = registrations(self.refresh_registry())
            if now.get(name) != (in_place_of or self.info.registrations.get(name)):
                raise InvalidInputError(
                    "SIEVE_INDEX_EXISTS",
                    f"another user created an index {name} on table {self.info.label} meanwhile; "
                    "choose another name, or REFRESH that index",
                )
            self._set_property(name, key, value)

    def _set_property(self, name: str, key: str, value: str) -> None:
        try:
            self._access.setProperty(key, value)
        except FAILURES:
            try:
                written = self.refresh_registry().get(key) == value
            except UnavailableError as error:
                raise UnknownOutcomeError(
                    "SIEVE_REGISTRATION_UNKNOWN",
                    f"index {name} of {self.info.label} is built, but it is unknown whether it is "
                    f"registered: {error.message}; run SHOW SIEVE INDEXES ON {self.info.label}",
                ) from error
            if not written:
                raise

    def unregister(self, name: str, registration: Registration) -> None:
        """Removes an index's property, and updates the registry of all sessions of this driver.

        If another index now has the name, the method leaves the property unchanged.

        Raises:
            UnavailableError: the metastore refuses the request or does not reply; the property may
                still exist.
        """
        now = registrations(self.refresh_registry()).get(name)
        if now is not None and now.uuid != registration.uuid:
            return
        try:
            self._access.unsetProperty(property_key(name))
        except FAILURES as error:
            raise self._unavailable(error) from error

    def declare(self, columns: str) -> None:
        """Writes the property that declares which columns to index.

        If ``columns`` is empty, the method removes the property.

        Raises:
            UnavailableError: the metastore refuses the request or does not reply.
        """
        try:
            if columns:
                self._access.setProperty(DECLARED_COLUMNS, columns)
            else:
                self._access.unsetProperty(DECLARED_COLUMNS)
        except FAILURES as error:
            raise self._unavailable(error) from error

    def refresh_registry(self) -> Mapping[str, str]:
        """Publishes the table's current registrations to all sessions of this driver.

        Returns:
            The table's properties.

        Raises:
            UnavailableError: the metastore refuses the request or does not reply.
        """
        try:
            properties: Mapping[str, str] = json.loads(self._access.publish())
        except FAILURES as error:
            raise self._unavailable(error) from error
        return properties

    def _unavailable(self, error: Exception) -> UnavailableError:
        words = first_line(error)
        if denied(error):
            return DeniedError(
                "SIEVE_PERMISSION_DENIED",
                f"this user lacks a permission on table {self.info.label} ({words})",
            )
        if answered(error):
            return UnavailableError(
                "SIEVE_METASTORE_REFUSED",
                f"the metastore refuses a request for table {self.info.label} ({words}); an index "
                "is a property of its table, so the user must be allowed to alter the table",
            )
        return UnavailableError(
            "SIEVE_METASTORE_UNAVAILABLE",
            f"the metastore does not answer for table {self.info.label} ({words})",
        )
