"""Reregistration: restores a table's index registrations after another tool removed them."""

from __future__ import annotations

from collections.abc import Container, Mapping

from sieve.environment import Environment
from sieve.errors import SieveError
from sieve.metadata.commit import newest
from sieve.metadata.creation_record import creation_records
from sieve.metadata.index_options import AUTO
from sieve.metadata.records import IndexUuid, same_table
from sieve.metadata.registration import Registration
from sieve.operations.registered_index import RegisteredIndex, is_gone
from sieve.storage.interface import base_name
from sieve.tables.registered_table import RegisteredTable


def reregister(
    table: RegisteredTable,
    indexes: Mapping[str, RegisteredIndex],
    environment: Environment,
    names: Container[str] | None = None,
) -> list[str]:
    """Registers the indexes of a table that the table's properties do not register.

    Args:
        indexes: the table's registered indexes. A missing index can take the name of a registered
            index for which `is_gone` is true.
        names: names of the indexes that the function may register; None for all.

    Returns:
        The names of the indexes that the function registered.

    Raises:
        UnavailableError: the store cannot list the root, or the metastore does not answer.
        RootRefusedError: other sessions would ignore an index in the root.
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
            # Queries cannot use an index whose newest version is unreadable, so the code does not
            # register it.
            continue
        if manifest is None or manifest.state == "dropped":
            continue
        if names is not None and manifest.name not in names:
            continue
        namesake = indexes.get(manifest.name)
        in_use = namesake is not None and not is_gone(namesake)
        taken = in_use or manifest.name in adopted
        if same_table(manifest.table, info.identity) and not taken:
            uuid = IndexUuid(base_name(record.folder))
            environment.check_shared(root, info.identity.namespace)
            environment.changing()
            follows = manifest.options.refresh == AUTO
            table.register(manifest.name, Registration(uuid, manifest.column, root, follows))
            adopted.append(manifest.name)
    return adopted
