"""What a scan asks of a table's indexes, and their answer, as typed records.

The wire form of both is in ``sql_ext/frontend/pruning.py``; inside `sieve` no dict travels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.metadata.records import TableIdentity
from sieve.metadata.registration import Registration
from sieve.predicate.tree import Predicate
from sieve.reader.reason import Reason

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class PruneRequest:
    """One scan of one table.

    Attributes:
        table: the table.
        registrations: its indexes by its properties; None stands for one that is not readable.
        fingerprints: of the reader, under the settings of the relation's session and under those
            of the executing one. Each must be the version's.
        predicate: what a row must satisfy.
        instant: the earlier instant that the scan sees, ISO 8601; None for now.
        partially_visible: whether the reader passes over what was logged later to a file slice.
        timeout_s: seconds that the scan waits for an answer.
        ttl_s: seconds after which the newest version of an index is looked for again.
        cache_bytes: what the cache of index files may take.
        check_root: raises RootRefusedError unless indexes of this table may lie in a root.
    """

    table: TableIdentity
    registrations: tuple[Registration | None, ...]
    fingerprints: tuple[str, ...]
    predicate: Predicate
    instant: str | None
    partially_visible: bool
    timeout_s: float
    ttl_s: float
    cache_bytes: int
    check_root: Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class PartialVisibility:
    """What an answer says besides of file slices that a scan sees in part.

    Attributes:
        skip: bool[n], files that hold no match even in the rows that are hidden.
        known: bool[n], files of which some version knows all rows that were ever written.
    """

    skip: Flags
    known: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """Which files a scan may skip.

    Attributes:
        numbering: identity of the numbering of the table's files.
        skip: bool[n], True for files that cannot match.
        used: the versions that had a part in it, as ``name@version``.
        narrows: whether they took more of the predicate than IS NOT NULL.
        partial: for scans that see file slices in part.
    """

    numbering: str
    skip: Flags
    used: tuple[str, ...]
    narrows: bool
    partial: PartialVisibility | None


@dataclass(frozen=True, slots=True, eq=False)
class PruneAnswer:
    """The answer to a scan.

    Attributes:
        skip: what may be skipped; None: read all files.
        reasons: how many indexes, or parts of the predicate, were not used, by reason.
        detail: more of the last reason, in words.
    """

    skip: Skip | None
    reasons: Mapping[Reason, int]
    detail: str
