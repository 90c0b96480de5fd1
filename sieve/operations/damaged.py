"""Damaged indexes: finds the table of an index with a damaged newest version, for DROP."""

from __future__ import annotations

from sieve.errors import CorruptError, UnavailableError
from sieve.metadata.commit import newest_number, read_version
from sieve.metadata.creation_record import creation_record_of
from sieve.metadata.records import TableIdentity
from sieve.storage.interface import Store


def owner_of_damaged(store: Store, folder: str) -> TableIdentity | None:
    """Returns the table of an index whose newest version is damaged.

    Returns:
        The table that the newest readable version names. If no version is readable, the creation
        record names the table. None if no version exists, or if all versions and the record are
        unreadable.

    Raises:
        UnsupportedError: a later release of Sieve wrote a version of the index.
        UnavailableError: the store does not answer, or the newest version has become readable.
    """
    newest = newest_number(store, folder)
    for number in range(newest, 0, -1):
        try:
            manifest = read_version(store, folder, number)
        except CorruptError:
            continue
        if number == newest:
            raise UnavailableError(
                "SIEVE_STORE_UNAVAILABLE",
                f"{folder} was unreadable before and is readable now; run the statement again",
            )
        return manifest.table
    record = creation_record_of(store, folder) if newest else None
    return None if record is None else record.table
