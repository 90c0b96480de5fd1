"""Hudi tables: which tables Sieve supports, changes since a commit, and appended log files.

The shim returns Hudi's timeline and file slices; this module makes all decisions about them.
Sources: Hudi's ``HoodieTimeline`` (actions of instants) and ``HoodieLogBlock`` (types and headers
of log blocks).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from sieve.tables.jvm_failures import FAILURES

log = logging.getLogger(__name__)

# From table version 8 on, each log file belongs to one commit. Listings show the file as soon as
# this commit is complete.
_VERSIONS: Final = frozenset({"8", "9"})

# Only the metadata of these actions names the partitions that the action wrote or replaced.
_COMMITS: Final = frozenset({"commit", "deltacommit", "replacecommit"})
_HARMLESS: Final = frozenset({"clean", "savepoint", "indexing"})
_ROLLBACKS: Final = frozenset({"rollback", "restore"})

# Above these numbers of commits or partitions, a full listing takes no longer than a listing of the
# changed partitions. For a full listing, Hudi lists in parallel or uses its metadata table.
_MOST_COMMITS: Final = 50
_MOST_PARTITIONS: Final = 100

# Maximum clock skew between the file store and writers.
_SKEW_MS: Final = 60_000

# Above this ratio of log bytes to base file bytes, newer records can hide many rows of the base
# file.
_MOST_LOGGED: Final = 0.25

# Number of threads that read headers of log files; the threads mostly wait for the store.
_LOG_READERS: Final = 16

# This list omits delete blocks, because only a full read shows how many rows a delete block hides.
_ROW_BLOCKS: Final = frozenset({"AVRO_DATA_BLOCK", "PARQUET_DATA_BLOCK", "HFILE_DATA_BLOCK"})
# The first header marks partial records: a MERGE wrote only the columns that it assigned. The
# second header marks blocks that replace earlier blocks.
_OTHER_HEADERS: Final = frozenset({"IS_PARTIAL", "COMPACTED_BLOCK_TIMES"})
_WHOLE_RECORD_MODES: Final = frozenset({"COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"})


def refusal(parts: Mapping[str, str]) -> str | None:
    """The reason why Sieve cannot index a table, in the form of `formats.refuse_kind`.

    None if Sieve can index the table.

    Args:
        parts: the parts of the reader's fingerprint, with the table's properties.
    """

    def is_set(key: str) -> bool:
        return parts.get(f"hudi.{key}", "").lower() == "true"

    version = parts.get("hudi.hoodie.table.version")
    if version not in _VERSIONS:
        return f"hudi version {version}"
    if "hudi.hoodie.bootstrap.base.path" in parts:
        return "hudi bootstrap"
    if is_set("hoodie.table.multiple.base.file.formats.enable"):
        return "hudi formats several"
    base = parts.get("hudi.hoodie.table.base.file.format", "PARQUET")
    return None if base.upper() == "PARQUET" else f"hudi formats {base}"


def takes_whole_records(parts: Mapping[str, str]) -> bool:
    """Returns whether queries see every record exactly as it was written.

    A record can hide another record of the same key, but Hudi never combines fields of both
    records.

    Args:
        parts: the parts of the reader's fingerprint, which contains the table's properties, and the
            reader's settings and options. The result is False if the settings and the properties
            define different ways to merge records.
    """
    table = {k.removeprefix("hudi."): v for k, v in parts.items() if k.startswith("hudi.")}
    read_with = {
        k.partition(".")[2]: v for k, v in parts.items() if k.startswith(("conf.", "option."))
    }
    differs = any(
        key.startswith("hoodie.")
        and ("payload" in key or "merge" in key)
        and table.get(key) != value
        for key, value in read_with.items()
    )
    return (
        table.get("hoodie.record.merge.mode") in _WHOLE_RECORD_MODES
        and not differs
        and not any("partial" in key for key in table)
    )


def changed_partitions(access: Any, instant_ms: int) -> frozenset[str] | None:
    """The partitions that commits wrote after the commit that completed at ``instant_ms``.

    Args:
        instant_ms: ms since the epoch.

    Returns:
        The partitions. None if the timeline no longer contains the commit at ``instant_ms``, or if
        the table has no partitions. Also None if too many commits follow, or an action that is
        neither a commit nor harmless.
    """
    timeline = list(enumerate(json.loads(access.history().timeline())))
    own = [action for _, (action, done, at) in timeline if done and at == instant_ms]
    later = [
        (number, action)
        for number, (action, done, at) in timeline
        if done and (at is None or at > instant_ms) and action not in _HARMLESS
    ]
    pending = {action for _, (action, done, _) in timeline if not done}
    if (
        sum(action in _COMMITS for action in own) != 1
        or len(later) > _MOST_COMMITS
        or not all(action in _COMMITS for _, action in later)
        or pending & _ROLLBACKS
        or _archived_since(access, instant_ms - _SKEW_MS)
    ):
        return None
    found = {one for number, _ in later for one in json.loads(access.history().partitions(number))}
    return None if "" in found or len(found) > _MOST_PARTITIONS else frozenset(found)


def _archived_since(access: Any, time_ms: int) -> bool:
    """Returns whether Hudi has archived commits since a given time.

    Hudi archives commits in the order of their requested times. So an archived commit can have
    completed later than a commit in the active timeline.
    """
    folder = access.path(str(access.history().client().getArchivePath().toString()))
    files = folder.getFileSystem(access.hadoopConf())
    return bool(files.exists(folder)) and any(
        status.getModificationTime() >= time_ms for status in files.listStatus(folder)
    )


def list_changed(access: Any, instant_ms: int) -> tuple[frozenset[str], str] | None:
    """The folders to which writers may have written since an instant, and the locations in them.

    Returns:
        The folders' URIs, and the locations as JSON in the form of ``access.list()``; None if a
        full listing is necessary.
    """
    # A failure here is harmless, because a full listing follows and succeeds or reports the error.
    try:
        partitions = changed_partitions(access, instant_ms)
        if partitions is None:
            return None
        base = str(access.history().client().getBasePath().toString())
        folders = {one: access.path(f"{base}/{one}") for one in partitions}
        conf = access.hadoopConf()
        there = [one for one, path in folders.items() if path.getFileSystem(conf).exists(path)]
        listed = access.history().listPartitions(there)
    except FAILURES as error:
        log.warning("the changes of a Hudi table are unknown, so all files are listed: %s", error)
        return None
    if listed is None:
        return None
    return frozenset(str(path.toString()) for path in folders.values()), str(listed)


def find_appended(
    access: Any, files: Mapping[int, tuple[int, int, bool]], parts: Mapping[str, str]
) -> frozenset[int]:
    """The slices to which writers have only appended log files with whole records.

    Args:
        files: maps a slice's number in the last listing to an earlier length and time of the slice,
            and to a flag. The flag is true if the index contains all rows that the slice ever had,
            including hidden rows.

    Returns:
        The numbers of the found slices. `frame` can now read only the appended log files of the
        found slices.
    """
    if not files or not takes_whole_records(parts):
        return frozenset()

    def is_appended(of: tuple[int, tuple[int, int, bool]]) -> bool:
        number, (length, mtime, all_rows) = of
        try:
            return _append(access, number, [length, mtime], all_rows=all_rows)
        except FAILURES as error:
            # A failure is harmless, because the build then reads the whole slice, or reports the
            # error.
            log.warning(
                "the appended rows of a slice are unknown, so the whole slice is read: %s", error
            )
            return False

    with ThreadPoolExecutor(_LOG_READERS, "sieve-log-files") as pool:
        found = zip(files, pool.map(is_appended, files.items()), strict=True)
        return frozenset(number for number, appended in found if appended)


def _append(access: Any, number: int, state: list[int], *, all_rows: bool) -> bool:
    slice_now = json.loads(access.history().slice(number))
    if slice_now is None or slice_now["log_bytes"] > _MOST_LOGGED * slice_now["base_bytes"]:
        return False
    before = slice_now["states"][:-1]
    held = next((k for k, s in enumerate(before) if s == state and (k == 0 or all_rows)), None)
    if held is None or not all(
        _holds_whole_records(access.history().logReader(number, k))
        for k in range(held, len(before))
    ):
        return False
    access.history().append(number, held)
    return True


def _holds_whole_records(reader: Any) -> bool:
    try:
        while reader.hasNext():
            block = reader.next()
            headers = {str(key.toString()) for key in block.getLogBlockHeader().keySet()}
            if str(block.getBlockType().toString()) not in _ROW_BLOCKS or headers & _OTHER_HEADERS:
                return False
        return True
    finally:
        reader.close()
