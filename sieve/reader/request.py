"""Prune request and answer: a scan's request and its answer, as typed records.

``sql_ext/frontend/pruning.py`` converts the records from and to their wire form, so the package
`sieve` passes no dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sieve.arrays.dtypes import Flags
from sieve.metadata.records import TableIdentity
from sieve.metadata.registration import Registration
from sieve.predicate.tree import Predicate
from sieve.reader.packed_cuts import FileParts
from sieve.reader.reason import Reason
from sieve.reader.top_k import Order, Present


@dataclass(frozen=True, slots=True, eq=False)
class PruneRequest:
    """One scan of one table.

    Attributes:
        registrations: the indexes in the table's properties; None for an unreadable registration.
        fingerprints: parts of the reader's fingerprint, once by the settings of the session that
            made the relation, and once by the settings of the executing session. Both sessions must
            read an index's column as the index's build did.
        instant: the earlier instant at which the scan reads, ISO 8601, or None for the present.
        partially_visible: whether the reader ignores records that were appended to a slice's log
            files after the instant.
        timeout_s: seconds that the scan waits for an answer.
        ttl_s: seconds after which the front end checks whether an index has a newer version.
        cache_bytes: maximum bytes of the cache of index files.
        check_root: raises RootRefusedError if indexes of this table are not allowed in a root.
        orders: sort orders (ORDER BY, MIN or MAX) in which the scan needs only the first rows; if
            empty, the scan needs all rows.
        present: the files that the scan lists, or None if the scan does not know their numbers yet.
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
    """The flags that an answer adds for file slices that are partially visible to a scan.

    Attributes:
        skip: bool[n], files in which no row matches, not even a hidden row.
        known: bool[n], files for which some version indexed all rows ever written.
    """

    skip: Flags
    known: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """The files that a scan is allowed to skip.

    Attributes:
        numbering: identity of the numbering of the table's files.
        skip: bool[n], True for files that cannot match.
        parts: files in which some ranges cannot match.
        used: the versions that the answer is based on, as ``name@version``.
        narrows: whether the versions evaluated more of the predicate than IS NOT NULL.
        partial: flags for partially visible file slices, or None for other scans.
    """

    numbering: str
    skip: Flags
    parts: FileParts
    used: tuple[str, ...]
    narrows: bool
    partial: PartialVisibility | None


@dataclass(frozen=True, slots=True, eq=False)
class PruneAnswer:
    """The answer to a scan.

    Attributes:
        skip: the files that the scan is allowed to skip, or None to read all files.
        reasons: for each reason, the number of indexes, or parts of the predicate, that were not
            used.
        detail: details of the last reason, as text.
        functions: the functions that no index can evaluate, or other causes of an unused part.
    """

    skip: Skip | None
    reasons: Mapping[Reason, int]
    detail: str
    functions: tuple[str, ...] = ()
