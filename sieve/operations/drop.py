"""DROP: deletes an index in an order of steps that can be interrupted at any point.

1. DROP publishes the tombstone, a last version with the state "dropped". After this step no session
uses the index, and no REFRESH registers the index's folder again. 2. DROP removes the table's
property. If the metastore does not answer, a registration of a dropped index remains
(`HalfDropped`). Another DROP then continues with this step. 3. DROP deletes the files. If some
files remain, no table refers to these files, and VACUUM SIEVE INDEXES deletes them.

A dropped table no longer has properties, so `end_index` does only steps 1 and 3.
"""

from __future__ import annotations

from sieve.environment import Environment
from sieve.errors import UnavailableError, UnsupportedError
from sieve.metadata.creation_record import delete_index
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Drop
from sieve.operations.alter import change_index
from sieve.operations.damaged import owner_of_damaged
from sieve.operations.registered_index import (
    Disabled,
    Failed,
    HalfDropped,
    Ready,
    RegisteredIndex,
    check_reachable,
)
from sieve.storage.interface import Store
from sieve.tables.registered_table import RegisteredTable


def end_index(index: RegisteredIndex, table: TableIdentity, environment: Environment) -> bool:
    """Drops an index whose table no longer exists: publishes the tombstone, then deletes the files.

    Returns:
        True if an index was dropped. An index of another table, or an unreachable index, is
        unchanged.

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


def drop_index(table: RegisteredTable, index: RegisteredIndex, environment: Environment) -> None:
    """Drops an index: publishes the tombstone, removes the property, then deletes the files.

    If the index belongs to another table or is gone, this function removes only the property,
    because this table must not delete the files. If an earlier drop was interrupted after its
    tombstone, this function finishes it.

    Raises:
        UnavailableError: the store does not answer, and nothing was changed; or the metastore does
            not answer, and another DROP can finish the drop.
    """
    # Without a tombstone, the table's next REFRESH would find an existing index again.
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
    """The store of a registered index, if its folder belongs to the table."""
    match index:
        case Ready() | Disabled() | HalfDropped():
            return index.store
        case Failed(store=store) if store is not None:
            try:
                owner = owner_of_damaged(store, index.directory)
            except UnsupportedError:
                return None
            return store if owner is not None and same_table(owner, table) else None
        case _:
            return None
