"""Iceberg tables: the changes between two snapshots.

Iceberg's metadata contains the two snapshots and their manifests. The shim compares the manifests.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from sieve.metadata.records import Commit
from sieve.tables.hudi import FAILURES

log = logging.getLogger(__name__)


def listed_commit(access: Any) -> Commit | None:
    """The table's id and the sequence number of the listed snapshot.

    Returns:
        None for a table without a snapshot or of format version 1, which has no sequence numbers.
    """
    told = access.history().commit()
    return None if told is None else Commit(**json.loads(told))


def list_changed(access: Any, since: Commit) -> tuple[frozenset[str], str] | None:
    """The data files in manifests that only one of two snapshots has: an earlier or the listed one.

    Args:
        since: the commit of the snapshot to compare with.

    Returns:
        The paths of these files, and those files that the listed snapshot contains, as JSON in the
        form of ``access.list()``; None if a full listing is necessary.
    """
    newest = listed_commit(access)
    if newest is None or newest.table != since.table:
        return None
    # A failure here is harmless, because a full listing follows and succeeds or reports the error.
    try:
        found = access.history().listSince(since.version)
    except FAILURES as error:
        log.warning(
            "the changes of an Iceberg table are unknown, so all files are listed: %s", error
        )
        return None
    if found is None:
        return None
    touched, listed = json.loads(found)
    return frozenset(touched), listed
