"""Delta tables: commits of their log."""

from __future__ import annotations

import json
from typing import Any

from sieve.metadata.records import Commit


def listed_commit(access: Any) -> tuple[Commit, int]:
    """The commit that was listed last, or else the newest, and its time, ms since the epoch.

    Args:
        access: the shim's access to the table.
    """
    told = json.loads(access.commit())
    return Commit(told["table"], told["version"]), told["time_ms"]
