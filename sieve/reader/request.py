"""Prune request and answer: a scan's request, and the answer to the request, as typed records.

``sql_ext/frontend/pruning.py`` converts between these records and their wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sieve.arrays.dtypes import Flags
from sieve.metadata.records import TableIdentity
from sieve.metadata.registration import Registration
from sieve.predicate.parse_predicate import Predicate
from sieve.reader.packed_cuts import FileParts
from sieve.reader.reason import Reason
from sieve.reader.top_k import Order, Present


@dataclass(frozen=True, slots=True, eq=False)
class PruneRequest:
    """A scan of one table asks which files it can skip.

    Attributes:
        registrations: the registrations in the table's properties; None for each registration that
            is unreadable.
        fingerprints: parts of the reader's fingerprint under the settings of two sessions: the
            session that resolved the table, and the session that runs the query. Under the settings
            of both sessions, the reader must read an index's column as the index's build did.
        instant: the scan reads the table's state at this earlier instant (ISO 8601); None for the
            current state.
        partially_visible: whether the scan ignores records that writers appended to a Hudi slice's
            log files after the instant.
        timeout_s: the time in seconds that the scan waits for an answer.
        ttl_s: the time in seconds after which the front end checks whether an index has a newer
            version.
        cache_bytes: maximum size of the cache of index files in bytes.
        check_root: raises RootRefusedError if a root must not contain indexes of this table.
        orders: the sort orders of ORDER BY with LIMIT, MIN or MAX. The scan needs only the first
            rows of each order, or all rows if `orders` is empty.
        present: the files that the scan lists; None if the scan does not know the files' numbers
            yet.
    """

    table: TableIdentity
    registrations: tuple[Registration | None, ...]
    fingerprints: tuple[Mapping[str, str], ...]
    predicate: Predicate
    instant: str | None
    partially_visible: bool
    timeout_s: float
    ttl_s: float
    cache_bytes: int
    check_root: Callable[[str], None]
    orders: tuple[Order, ...] = ()
    present: Present | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PartialVisibility:
    """Additional flags for scans that see only some records of a Hudi slice's log files.

    Attributes:
        skip: bool[n], True if a file has no matching row, even among the rows that other queries
            hide.
        known: bool[n], True if at least one version indexed all rows that were ever written to the
            file.
    """

    skip: Flags
    known: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """The files and ranges that a scan is allowed to skip.

    Attributes:
        numbering: the name of the numbering of the table's files.
        skip: bool[n], True for each file that contains no matching row.
        parts: the files in which only some ranges can contain a matching row.
        used: the versions on which the answer is based, as ``name@version``.
        narrows: whether the versions evaluated any part of the predicate except IS NOT NULL.
        partial: additional flags for a request with ``partially_visible``; None for other requests.
    """

    numbering: str
    skip: Flags
    parts: FileParts
    used: tuple[str, ...]
    narrows: bool
    partial: PartialVisibility | None


@dataclass(frozen=True, slots=True, eq=False)
class PruneAnswer:
    """The answer to a scan's request.

    Attributes:
        skip: the files that the scan is allowed to skip; None if the scan must read all files.
        reasons: for each reason, the number of indexes or parts of the predicate that the answer
            does not use.
        detail: details of the last reason, as text.
        functions: why the answer ignores parts of the predicate; usually the names of functions
            that no index can evaluate.
    """

    skip: Skip | None
    reasons: Mapping[Reason, int]
    detail: str
    functions: tuple[str, ...] = ()
