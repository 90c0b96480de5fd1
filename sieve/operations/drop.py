"""DROP: deletes an index in three steps. If a DROP is interrupted, another DROP finishes it.

1. DROP publishes the tombstone, a last version with the state "dropped". From then on, no session
   uses the index, and no REFRESH registers the folder again.
2. DROP removes the table's property. If the metastore does not answer, the property remains
   (`HalfDropped`), and another DROP continues with this step.
3. DROP deletes the files. If some files remain, VACUUM SIEVE INDEXES deletes the files, because no
   table refers to the index.

A table that was dropped has no properties, so `end_index` omits step 2.
"""

from __future__ import annotations

from sieve.environment import Environment
from sieve.errors import UnavailableError, UnsupportedError
from sieve.metadata.creation_record import delete_index
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Drop
from sieve.operations.damaged import owner_of_damaged
from sieve.operations.publish_change import change_index
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
    """Drops an unregistered index: publishes the tombstone, and deletes the files.

    Returns:
        True if the function dropped the index. False if the index belongs to another table or is
        unreachable; nothing has then changed.

    Raises:
        UnavailableError: the store does not answer.
    """
    store = _files_to_delete(index, table)
    if isinstance(index, Ready | Disabled):
        change_index(index, Drop(), environment)
    if store is None:
        return False
    delete_index(store, index.directory)
    return True


def drop_index(table: RegisteredTable, index: RegisteredIndex, environment: Environment) -> None:
    """Drops a table's index: publishes the tombstone, removes the property and deletes the files.

    If the index no longer exists or belongs to another table, the function removes only the
    property. If an earlier DROP was interrupted after it published the tombstone, the function does
    the remaining steps.

    Raises:
        UnavailableError: the store or the metastore does not answer. If the store does not answer
            before DROP publishes the tombstone, nothing has changed. If the metastore does not
            answer, another DROP can do the remaining steps.
    """
    # If DROP removed only the property, the table's next REFRESH would register the index again.
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
    """The store from which DROP must delete an index's files; None if DROP deletes no files."""
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
