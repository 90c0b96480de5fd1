"""Scan history: the filters and sort orders of drivers' scans, in files in ``<root>/history/``.

Each driver has one file, ``<driver>-<number>.json``. Files never change, so a reader never sees an
incomplete file. To record new scans, a driver creates a file with a higher number, then deletes its
previous file. The driver also deletes every file that is older than `AGE_MS`. If more than `FILES`
files remain, the driver deletes the oldest files.

A user with write permission for a root can create any file in the folder. Readers ignore invalid
files, and report how many files they ignored. A forged record affects only Sieve's advice about
indexes, not the results of queries.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sieve.errors import CorruptError, SieveError
from sieve.metadata.paths import TEMPORARY
from sieve.metadata.retention import HOUR_MS
from sieve.storage.interface import Entry, GoneError, Store, join
from sieve.workload.driver_record import ScanRecord, encode_record, parse_record

FILE_BYTES: Final = 1 << 18
"""Maximum size of a file in bytes. If a record is longer, the driver omits the scans that read the
fewest bytes.
"""
FILES: Final = 64
"""Maximum number of files in a root's history; older files are deleted."""
AGE_MS: Final = 30 * 24 * HOUR_MS
"""Maximum age of a file, in ms. Readers ignore older files, and writers delete them."""

_FOLDER = "history"
_FILE = re.compile(r"([0-9a-f]{32})-(\d{1,15})\.json", re.ASCII)


@dataclass(frozen=True, slots=True)
class SavedRecords:
    """The scan records that other drivers have saved.

    Attributes:
        records: one record for each driver.
        ignored: the number of files that are not valid records or cannot be read.
    """

    records: tuple[ScanRecord, ...] = ()
    ignored: int = 0


def save_record(store: Store, root: str, record: ScanRecord, now_ms: int) -> None:
    """Replaces the file of one driver, and deletes old files of other drivers.

    Args:
        root: the folder that contains indexes; it is created if it is missing.
        record: the record of the driver. The driver's id must be a UUID in hexadecimal digits.
        now_ms: the current time, in milliseconds since the epoch.

    Raises:
        UnavailableError: the store refuses a request, or does not answer.
    """
    folder = join(root, _FOLDER)
    store.mkdirs(folder)
    entries = store.list(folder)
    own = [one for one in entries if _named(one)[0] == record.driver]
    number = max([now_ms, *(_named(one)[1] + 1 for one in own)])
    data = encode_record(record, FILE_BYTES)
    store.create(join(folder, f"{record.driver}-{number}.json"), data)
    others = [one for one in _newest_first(entries) if one not in own]
    left_over = [one for one in entries if TEMPORARY.fullmatch(one.name)]
    for one in (*own, *others[FILES - 1 :], *_too_old([*others, *left_over], now_ms)):
        # If the file belongs to another user, the store may refuse to delete it.
        with contextlib.suppress(SieveError):
            store.delete(join(folder, one.name))


def saved_records(store: Store, root: str, but: str, now_ms: int) -> SavedRecords:
    """Returns the scan records of all drivers except one.

    Args:
        root: the folder that contains indexes.
        but: the driver whose record is left out.
        now_ms: the current time, in milliseconds since the epoch.

    Raises:
        UnavailableError: the store refuses to list the folder, or does not answer.
    """
    folder = join(root, _FOLDER)
    try:
        entries = store.list(folder)
    except GoneError:
        return SavedRecords()
    ignored = sum(not _named(one)[0] and not TEMPORARY.fullmatch(one.name) for one in entries)
    found: dict[str, ScanRecord] = {}
    for one in _newest_first(entries)[:FILES]:
        driver, _ = _named(one)
        if driver == but or driver in found or one in _too_old([one], now_ms):
            continue
        try:
            record = parse_record(store.read(join(folder, one.name), FILE_BYTES))
            if record.driver != driver:
                raise CorruptError("SIEVE_RECORD_CORRUPT", f"{one.name} has another's record")
            found[driver] = record
        except GoneError:
            # After the listing, the file's driver replaced the file, or another driver deleted it.
            continue
        except SieveError:
            ignored += 1
    return SavedRecords(tuple(found.values()), ignored)


def _named(entry: Entry) -> tuple[str, int]:
    """Returns the driver and the number in a file's name; "" and 0 if it is not a driver's file."""
    match = _FILE.fullmatch(entry.name)
    return ("", 0) if match is None or entry.is_dir else (match.group(1), int(match.group(2)))


def _newest_first(entries: Sequence[Entry]) -> list[Entry]:
    """Returns the drivers' files, newest first.

    Among files with the same time, the file with the highest number comes first.
    """
    files = [one for one in entries if _named(one)[0]]
    return sorted(files, key=lambda one: (one.mtime_ms, _named(one)[1]), reverse=True)


def _too_old(entries: Sequence[Entry], now_ms: int) -> list[Entry]:
    return [one for one in entries if one.mtime_ms < now_ms - AGE_MS]
