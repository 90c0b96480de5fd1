"""Indexes whose registration another tool has undone: their table finds them again."""

from __future__ import annotations

from collections.abc import Mapping

from sieve.environment import Environment
from sieve.errors import SieveError
from sieve.metadata.commit import newest
from sieve.metadata.creation_record import creation_records
from sieve.metadata.records import IndexUuid, same_table
from sieve.metadata.registration import Registration
from sieve.operations.registered_index import RegisteredIndex, is_gone
from sieve.storage.interface import base_name
from sieve.tables.table import CatalogTable


def reregister(
    table: CatalogTable, indexes: Mapping[str, RegisteredIndex], environment: Environment
) -> list[str]:
    """Register the indexes again that were made for a table and that it does not know any more.

    Args:
        table: the table.
        indexes: those that it knows; one that is gone keeps its name from no other.
        environment: the means.

    Returns:
        Their names.

    Raises:
        UnavailableError: the root cannot be listed, or the metastore does not answer.
        RootRefusedError: no other session would use what lies there.
    """
    info = table.info
    root = environment.root_for_new(info.database_location)
    store = environment.open_store(root)
    known = {registration.uuid for registration in info.registrations.values()}
    adopted: list[str] = []
    for record in creation_records(store, root, known):
        if not record.registered or record.table.database.lower() != info.identity.database.lower():
            continue
        try:
            manifest = newest(store, record.folder)
        except SieveError:
            # What cannot be read would be of no use to the table.
            continue
        if manifest is None or manifest.state == "dropped":
            continue
        namesake = indexes.get(manifest.name)
        in_use = namesake is not None and not is_gone(namesake)
        taken = in_use or manifest.name in adopted
        if same_table(manifest.table, info.identity) and not taken:
            uuid = IndexUuid(base_name(record.folder))
            environment.check_shared(root, info.identity.database)
            environment.changing()
            table.register(manifest.name, Registration(uuid, manifest.column, root))
            adopted.append(manifest.name)
    return adopted
