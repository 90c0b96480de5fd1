"""Decides whether a scan is allowed to use a version of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sieve.errors import CorruptError, SieveError, UnsupportedError
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, same_table
from sieve.reader.reason import Reason
from sieve.storage.interface import GoneError


def reason_of(error: SieveError) -> Reason:
    """The reason for an index that could not be read."""
    if isinstance(error, GoneError):
        return Reason.INDEX_GONE
    if isinstance(error, CorruptError):
        return Reason.INDEX_CORRUPT
    return Reason.VERSION_TOO_NEW if isinstance(error, UnsupportedError) else Reason.ERROR


def why_unusable(
    manifest: Manifest, table: TableIdentity, fingerprints: Iterable[Mapping[str, str]]
) -> Reason | None:
    """Returns why a scan must not use a version, or None if the scan can use the version.

    Args:
        fingerprints: the parts of the reader's fingerprint in each session that reads.
    """
    # The table can be another one: a copy with the same properties, or a new table of this name.
    if not same_table(manifest.table, table):
        return Reason.NO_INDEX
    if manifest.state != "ready":
        return Reason.DISABLED if manifest.state == "disabled" else Reason.NO_INDEX
    if manifest.is_outdated:
        return Reason.VERSION_TOO_OLD
    if any(map(manifest.changed_parts, fingerprints)):
        return Reason.READER_CHANGED
    return None
