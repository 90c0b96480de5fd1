"""Delta tables: the commits of the Delta log.

The shim returns the content of the log; this module decides whether the log is complete.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from sieve.metadata.records import Commit
from sieve.tables.jvm_failures import FAILURES

log = logging.getLogger(__name__)

# Above this number of commits, a full listing takes no longer than reading each commit. Delta reads
# a full listing from a checkpoint.
_MOST_COMMITS: Final = 200


def listed_commit(access: Any) -> tuple[Commit, int]:
    """Returns the commit of the last listing, or else the newest commit, and its time in ms."""
    told = json.loads(access.history().commit())
    return Commit(told["table"], told["version"]), told["time_ms"]


def list_changed(access: Any, since: Commit, instant_ms: int) -> tuple[frozenset[str], str] | None:
    """The files that commits after ``since`` added or removed, and which of the files are current.

    A commit that changes no data, such as OPTIMIZE, also counts.

    Args:
        since: the commit after which changes count.
        instant_ms: time of this commit, ms since the epoch. After a restore of an older log from a
            backup, a new commit can have the same version number.

    Returns:
        The paths of all added or removed files, and the current files as JSON in the form of
        ``access.list()``. None if a full listing is necessary.
    """
    newest, newest_ms = listed_commit(access)
    if newest.table != since.table or not 0 <= newest.version - since.version <= _MOST_COMMITS:
        return None
    if newest.version == since.version and newest_ms != instant_ms:
        return None
    # A failure here is harmless, because a full listing follows and succeeds or reports the error.
    try:
        versions, touched, listed = json.loads(access.history().listSince(since.version))
        now, _ = listed_commit(access)
    except FAILURES as error:
        log.warning("the changes of a Delta table are unknown, so all files are listed: %s", error)
        return None
    if now.table != since.table or versions != [*range(since.version + 1, now.version + 1)]:
        return None
    return frozenset(touched), listed
