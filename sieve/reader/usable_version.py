"""Decides whether a scan can use a version of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sieve.errors import CorruptError, SieveError, UnsupportedError
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, same_table
from sieve.reader.reason import Reason
from sieve.storage.interface import GoneError


def reason_of(error: SieveError) -> Reason:
    """The reason that users see if this error prevented the use of an index."""
    if isinstance(error, GoneError):
        return Reason.INDEX_GONE
    if isinstance(error, CorruptError):
        return Reason.INDEX_CORRUPT
    return Reason.VERSION_TOO_NEW if isinstance(error, UnsupportedError) else Reason.ERROR


def why_unusable(
    manifest: Manifest, table: TableIdentity, fingerprints: Iterable[Mapping[str, str]]
) -> Reason | None:
    """Returns why a scan must not use a version; None if the scan can use the version.

    Args:
        fingerprints: the parts of the reader's fingerprint, for each session that takes part in the
            scan.
    """
    # The version may belong to another table. A copy of a table has the same properties, and a new
    # table can have the same name.
    if not same_table(manifest.table, table):
        return Reason.NO_INDEX
    if manifest.state != "ready":
        return Reason.DISABLED if manifest.state == "disabled" else Reason.NO_INDEX
    if manifest.is_outdated:
        return Reason.VERSION_TOO_OLD
    if any(map(manifest.changed_parts, fingerprints)):
        return Reason.READER_CHANGED
    return None
