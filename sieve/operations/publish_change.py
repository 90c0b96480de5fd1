"""Publishes a change of an index, such as ALTER or DROP, as a new version of the index."""

from __future__ import annotations

import secrets

from sieve.environment import Environment
from sieve.errors import UnavailableError
from sieve.metadata.commit import publish
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import VersionId
from sieve.metadata.transitions import Change, next_version
from sieve.operations.registered_index import Usable


def change_index(index: Usable, change: Change, environment: Environment) -> Manifest:
    """Publishes a version that differs from the current one only by a change.

    Raises:
        ConflictError: another session dropped the index.
        UnknownOutcomeError: the store did not confirm the change, which may have taken effect.
    """

    def on_top_of(now: Manifest | None) -> Manifest:
        if now is None:
            raise UnavailableError("SIEVE_INDEX_GONE", f"{index.directory} vanished meanwhile")
        return next_version(now, change, VersionId(secrets.token_hex(16)), environment.software)

    environment.changing()
    return publish(index.store, index.directory, index.manifest, on_top_of)
