"""DROP: end an index, in an order of effects that may be cut short anywhere.

1. The tombstone: a last version that says "dropped". From here on no query uses the index, in any
   session, and no REFRESH finds its folder again for a table that has lost the property.
2. The table's property. What is left if the metastore does not serve is a registration of a dropped
   index; another DROP begins here (`HalfDropped`).
3. The files. What is left of them no table refers to, and VACUUM SIEVE INDEXES removes it.

A table that is gone has taken its property along: `end_index` does the rest.
"""

from __future__ import annotations

from sieve.environment import Environment
from sieve.errors import UnavailableError, UnsupportedError
from sieve.metadata.creation_record import delete_index
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Drop
from sieve.operations.alter import change_index
from sieve.operations.damaged import owner_of_wreck
from sieve.operations.registered_index import (
    Disabled,
    Failed,
    HalfDropped,
    Ready,
    RegisteredIndex,
    check_reachable,
)
from sieve.storage.interface import Store
from sieve.tables.table import CatalogTable


def end_index(index: RegisteredIndex, table: TableIdentity, environment: Environment) -> bool:
    """End an index whose table is gone: tombstone, then the files.

    Returns:
        Whether there was one; where it is of another table, or out of reach, nothing is done.

    Raises:
        UnavailableError: the store stopped answering.
    """
    store = _files_to_delete(index, table)
    if isinstance(index, Ready | Disabled):
        change_index(index, Drop(), environment)
    if store is None:
        return False
    delete_index(store, index.directory)
    return True


def drop_index(table: CatalogTable, index: RegisteredIndex, environment: Environment) -> None:
    """Drop an index: tombstone, then the property, then the files.

    A registration whose index belongs to another table, or is gone, loses its property only: the
    files are not this table's to delete. A drop that was cut short after its tombstone is finished.

    Raises:
        UnavailableError: the store does not tell what there is to drop, and nothing was done; or
            the metastore does not serve, and dropping it again finishes what is left.
    """
    # Without a tombstone an index that is there would be found again by its table's next REFRESH.
    check_reachable(index)
    store = _files_to_delete(index, table.info.identity)
    if isinstance(index, Ready | Disabled):
        change_index(index, Drop(), environment)
    environment.changing()
    try:
        table.unregister(index.name, index.registration)
    except UnavailableError as error:
        raise type(error)(
            error.condition,
            f"{error.message}; index {index.name} is out of use, but still registered: run DROP "
            "SIEVE INDEX again",
        ) from error
    if store is not None:
        delete_index(store, index.directory)


def _files_to_delete(index: RegisteredIndex, table: TableIdentity) -> Store | None:
    """The store of what a table has registered, if the folder there is that table's to delete."""
    match index:
        case Ready() | Disabled() | HalfDropped():
            return index.store
        case Failed(store=store) if store is not None:
            try:
                owner = owner_of_wreck(store, index.directory)
            except UnsupportedError:
                return None
            return store if owner is not None and same_table(owner, table) else None
        case _:
            return None
