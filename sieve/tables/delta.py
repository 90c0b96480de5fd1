"""Delta tables: commits of their log.

The shim passes on what the log says; this module decides whether it tells all.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from sieve.metadata.records import Commit
from sieve.tables.hudi import FAILURES

log = logging.getLogger(__name__)

# Above this, a full listing is as fast: Delta reads it from a checkpoint, and commits one by one.
_MOST_COMMITS: Final = 200


def listed_commit(access: Any) -> tuple[Commit, int]:
    """The commit that was listed last, or else the newest, and its time, ms since the epoch.

    Args:
        access: the shim's access to the table.
    """
    told = json.loads(access.history().commit())
    return Commit(told["table"], told["version"]), told["time_ms"]


def list_changed(access: Any, since: Commit) -> tuple[frozenset[str], str] | None:
    """The files that commits since one have added or removed, and those of them that are there.

    Commits count whether or not they say that they change data: OPTIMIZE says not.

    Args:
        access: the shim's access to the table.
        since: a commit.

    Returns:
        Paths, and JSON in the form of ``access.list()``; None if only a full listing can tell.
    """
    newest, _ = listed_commit(access)
    if newest.table != since.table or not 0 <= newest.version - since.version <= _MOST_COMMITS:
        return None
    # A failure here is harmless: a full listing follows, and succeeds or reports the error.
    try:
        versions, touched, listed = json.loads(access.history().listSince(since.version))
        now, _ = listed_commit(access)
    except FAILURES as error:
        log.warning("what has changed in a Delta table is not known, so all is listed: %s", error)
        return None
    if now.table != since.table or versions != [*range(since.version + 1, now.version + 1)]:
        return None
    return frozenset(touched), listed
