"""``sieve_files`` returns, for each file of a table, whether a scan reads the file and why.

Example: ``SELECT kept, reason FROM sieve_files('orders', 'id = 123457')``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

COLUMNS: Final = (
    ("file", "STRING"),
    ("kept", "BOOLEAN"),
    ("reason", "STRING"),
    ("ranges_total", "BIGINT"),
    ("ranges_read", "BIGINT"),
    ("bytes_read", "BIGINT"),
)

_UNPROVEN: Final = {
    "new-file": "new since the index was built",
    "unsettled-file": "too young to be relied on when the index was built",
    "changed-file": "changed since the index was built",
    "unproven-file": "without rows, or not read in full, or with a damaged record",
}
_UNREAD: Final = {
    "cached": "not read: the table is cached",
    "never-true": "not read: the predicate is never true",
}


def file_rows(
    scan: Mapping[str, Any],
) -> Iterator[tuple[str, bool, str, int | None, int, int]]:
    """Returns one row for each file of the table.

    Args:
        scan: the driver's report on the scan. ``files`` contains all paths. ``listed`` contains the
            paths that remain after Spark's own pruning, each with its number of ranges. ``kept``
            contains the paths that the scan reads, each with the ``ranges`` and ``bytes`` to read.
            If the index does not cover the file, the path's ``unproven`` is the reason. ``used``
            names the indexes that the scan used, and ``reasons`` says why the scan did not use
            other indexes. If Spark plans no scan, ``unread`` says why, and ``listed``, ``kept``,
            ``used`` and ``reasons`` are missing. ``partitioned`` is true if the table is
            partitioned.
    """
    listed, kept = scan.get("listed", {}), scan.get("kept", {})
    used = ", ".join(scan.get("used", ()))
    unused = "no index used: " + ", ".join(scan.get("reasons", ()))
    pruned = "partition pruned" if scan["partitioned"] else "pruned by _metadata"
    for path in scan["files"]:
        if "unread" in scan:
            yield path, False, _UNREAD[scan["unread"]], None, 0, 0
        elif path not in listed:
            yield path, False, pruned, None, 0, 0
        elif path not in kept:
            yield path, False, f"skipped by {used}", listed[path], 0, 0
        else:
            why = kept[path]["unproven"]
            known = f"may hold a match ({used})" if used else unused
            reason = _UNPROVEN[why] if why else known
            yield path, True, reason, listed[path], kept[path]["ranges"], kept[path]["bytes"]
