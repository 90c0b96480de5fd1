"""DROP: ends an index in an order of effects that is safe to interrupt anywhere.

1. The tombstone: a last version with the state "dropped". From here on no query uses the index, in
   any session, and no REFRESH finds its folder again for a table that has lost the property.
2. The table's property. If the metastore does not answer, a registration of a dropped index remains
   (`HalfDropped`); another DROP continues here.
3. The files. If some files remain, no table refers to them, and VACUUM SIEVE INDEXES deletes them.

When a table is dropped, its properties are already gone, so `end_index` does only steps 1 and 3.
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
    """Ends an index whose table is gone: tombstone, then the files.

    Returns:
        Whether there was an index to end. An index of another table, or an unreachable index, is
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
    """Drops an index: tombstone, then the property, then the files.

    If the index belongs to another table or is gone, removes only the property: this table must not
    delete the files. If an earlier drop was interrupted after its tombstone, this function finishes
    it.

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
