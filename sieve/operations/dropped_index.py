"""A statement about all indexes of a table succeeds even if another session drops one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sieve.errors import SieveError, UnavailableError
from sieve.metadata.registration import registrations
from sieve.operations.registered_index import Malformed, RegisteredIndex
from sieve.tables.registered_table import RegisteredTable


@contextlib.contextmanager
def leave_out_if_dropped(
    index: RegisteredIndex, table: RegisteredTable, *, every: bool
) -> Iterator[None]:
    """Suppresses the block's error if another session has dropped the index meanwhile.

    Args:
        every: whether the statement is about all indexes of the table. If the statement names the
            index, the error remains.
    """
    try:
        yield
    except SieveError:
        if not every or not _is_dropped(index, table):
            raise


def _is_dropped(index: RegisteredIndex, table: RegisteredTable) -> bool:
    """Returns True if the table certainly no longer registers the index."""
    try:
        now = registrations(table.refresh_registry()).get(index.name)
    except UnavailableError:
        return False
    return not isinstance(index, Malformed) and (now is None or now.uuid != index.registration.uuid)
