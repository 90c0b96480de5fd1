"""Iceberg tables: the changes between two snapshots.

Iceberg's metadata contains the two snapshots and their manifests. The shim compares the manifests.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from sieve.metadata.records import Commit
from sieve.tables.jvm_failures import FAILURES

log = logging.getLogger(__name__)


def listed_commit(access: Any) -> Commit | None:
    """The table's id and the sequence number of the listed snapshot.

    Returns:
        None if the table has no snapshot, or uses format version 1, which has no sequence numbers.
    """
    told = access.history().commit()
    return None if told is None else Commit(**json.loads(told))


def list_changed(access: Any, since: Commit, instant_ms: int) -> tuple[frozenset[str], str] | None:
    """Returns the data files in manifests that belong to only one of two snapshots.

    Args:
        since: the commit of the earlier snapshot. The later snapshot is the listed snapshot.
        instant_ms: time of this commit, ms since the epoch. After ``register_table`` with older
            metadata, a new snapshot can have the same sequence number.

    Returns:
        The paths of all found data files. Then, as JSON in the form of ``access.list()``, the data
        files among them that the listed snapshot contains. None if a full listing is necessary.
    """
    newest = listed_commit(access)
    if newest is None or newest.table != since.table:
        return None
    # A failure here is harmless, because a full listing follows and succeeds or reports the error.
    try:
        found = access.history().listSince(since.version, instant_ms)
    except FAILURES as error:
        log.warning(
            "the changes of an Iceberg table are unknown, so all files are listed: %s", error
        )
        return None
    if found is None:
        return None
    touched, listed = json.loads(found)
    return frozenset(touched), listed
