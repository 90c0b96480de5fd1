"""Delta tables: the commits of the Delta log.

The shim passes on the content of the log. This module decides whether the log is complete.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from sieve.metadata.records import Commit
from sieve.tables.hudi import FAILURES

log = logging.getLogger(__name__)

# Above this number of commits, a full listing is as fast: Delta reads a listing from a checkpoint,
# but commits one by one.
_MOST_COMMITS: Final = 200


def listed_commit(access: Any) -> tuple[Commit, int]:
    """The commit of the last listing, else the newest, with its time in ms since the epoch."""
    told = json.loads(access.history().commit())
    return Commit(told["table"], told["version"]), told["time_ms"]


def list_changed(access: Any, since: Commit) -> tuple[frozenset[str], str] | None:
    """The files that commits after a given one have added or removed, and which of them exist now.

    Every commit counts, even one that says that it changes no data, such as OPTIMIZE.

    Args:
        since: a commit.

    Returns:
        Paths, and JSON in the form of ``access.list()``; None if a full listing is necessary.
    """
    newest, _ = listed_commit(access)
    if newest.table != since.table or not 0 <= newest.version - since.version <= _MOST_COMMITS:
        return None
    # A failure here is harmless: a full listing follows, which succeeds or reports the error.
    try:
        versions, touched, listed = json.loads(access.history().listSince(since.version))
        now, _ = listed_commit(access)
    except FAILURES as error:
        log.warning("what has changed in a Delta table is not known, so all is listed: %s", error)
        return None
    if now.table != since.table or versions != [*range(since.version + 1, now.version + 1)]:
        return None
    return frozenset(touched), listed
