"""Pruner: finds the files that a scan can skip.

``prune(PruneRequest) -> PruneAnswer`` is a pipeline of these steps, which are the stages 4 to 9 in
``docs/architecture.md``:

- `select`: the indexes on the columns that the predicate names.
- `Bulkhead.blocked`: excludes indexes on which too many scans are blocked.
- `Pruner._resolve`: the versions of an index that can answer this scan, or the reason why the scan
  cannot use the index.
- `FileNumberings.of`: one numbering of all files that the chosen versions list.
- `might_match`: evaluates the predicate over the versions, and returns one flag for each file.
- `Pruner._needed`: for a scan with ORDER BY and LIMIT, the files that can hold one of the first
  rows.

An index that Sieve cannot read, or must not read, excludes no file. The scan reads each file that
no index covers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import Encoder
from sieve.errors import RootRefusedError
from sieve.index_key import expression_of
from sieve.metadata.registration import Registration
from sieve.predicate.evaluate import evaluate
from sieve.predicate.parse_predicate import (
    And,
    Column,
    Constant,
    Exists,
    NullTest,
    Or,
    Predicate,
    Unknown,
    columns,
    not_understood,
)
from sieve.reader.bulkhead import Bulkhead
from sieve.reader.file_numbering import (
    FileNumbering,
    FileNumberings,
    NumberedVersions,
    UnreadableIndexError,
)
from sieve.reader.lru_cache import FileCache
from sieve.reader.reason import Reason
from sieve.reader.request import PartialVisibility, PruneAnswer, PruneRequest, Skip
from sieve.reader.top_k import BOUNDING_ANY_TIME, Present
from sieve.reader.usable_version import reason_of, why_unusable
from sieve.reader.version_cache import VersionCache, Versions
from sieve.reader.version_reader import OpenVersion
from sieve.storage.interface import Store


@dataclass(slots=True)
class _Unused:
    """Counts, by reason, the indexes and the parts of a predicate that a scan does not use."""

    reasons: dict[Reason, int] = field(default_factory=dict)
    detail: str = ""
    functions: tuple[str, ...] = ()

    def add(self, reason: Reason, detail: str = "", count: int = 1) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.detail = detail or self.detail

    def answer(self, skip: Skip | None = None) -> PruneAnswer:
        reasons = self.reasons
        if skip is None and not reasons:
            reasons = {Reason.NO_PREDICATE: 1}
        return PruneAnswer(skip, reasons, self.detail, self.functions)


class Pruner:
    """Answers the requests of scans; caches index versions in the front end's memory.

    Args:
        open_store: opens the store to which a URI belongs.
        cache_bytes: initial maximum size of the cache of index files; each scan can change it.
    """

    def __init__(self, open_store: Callable[[str], Store], cache_bytes: int) -> None:
        self.cache = FileCache(cache_bytes)
        self._versions = VersionCache(open_store, self.cache)
        self._bulkhead = Bulkhead()
        self._numberings = FileNumberings(self.cache)

    def invalidate(self, directory: str) -> None:
        """Forgets the cached state of an index, because a statement has changed the index.

        The next scan reads the index again.
        """
        self._versions.invalidate(directory)
        self._bulkhead.invalidate(directory)

    def numbering(self, name: str) -> FileNumbering:
        """The numbered files to which the flags of an answer refer.

        Raises:
            UnsupportedError: numberings of other tables have replaced this numbering; the scan then
                sends a new request.
        """
        return self._numberings.by_name(name)

    def prune(self, request: PruneRequest) -> PruneAnswer:
        """Returns the files that a scan can skip, and why the scan does not use some indexes."""
        # All sessions share one cache, so the setting of the latest scan determines the maximum
        # size.
        self.cache.resize(request.cache_bytes)
        ordered = frozenset(order.column for order in request.orders)
        selected = select(request.predicate, request.registrations, ordered)
        unused = _Unused()
        blocked = self._bulkhead.blocked(
            [one for one in selected if one is not None], request.timeout_s
        )
        if blocked:
            roots = "; ".join(f"{one.root} does not answer other scans either" for one in blocked)
            unused.add(Reason.ERROR, roots, len(blocked))
        usable: dict[Column, Versions] = {}
        serving: list[Registration] = []
        for registration in selected:
            if registration in blocked:
                continue
            versions = self._resolve(registration, request, unused)
            if versions and registration is not None:
                usable[versions[0].manifest.column] = versions
                serving.append(registration)
        others = self._versions.in_memory(
            [one for one in request.registrations if one not in blocked], request
        )
        while usable:
            try:
                with self._bulkhead.waiting(serving):
                    return self._answer(usable, others, request, unused)
            except UnreadableIndexError as failed:
                # If one version of an index is unreadable, the scan can still use other versions
                # and other indexes.
                column, broken = failed.manifest.column, failed.manifest.id
                left = tuple(one for one in usable.pop(column) if one.manifest.id != broken)
                if left:
                    usable[column] = left
                else:
                    unused.add(reason_of(failed.cause), str(failed.cause))
        return unused.answer()

    def _resolve(
        self, registration: Registration | None, request: PruneRequest, unused: _Unused
    ) -> Versions:
        """The versions of an index that can answer a scan.

        If no version can answer the scan, the result is empty, and the method adds the reason to
        `unused`.
        """
        if registration is None:
            unused.add(Reason.NO_INDEX, "the registration is not readable")
            return ()
        with self._bulkhead.waiting([registration]):
            try:
                # Each session has its own list of allowed roots, so the code checks the root for
                # every scan.
                request.check_root(registration.root)
            except RootRefusedError as error:
                unused.add(Reason.ROOT_REFUSED, error.message)
                return ()
            newest = self._versions.newest(registration, request.ttl_s)
            if newest.index is None:
                unused.add(newest.reason or Reason.ERROR, newest.detail)
                return ()
            versions = self._versions.versions_for(newest.index, request)
        if not versions:
            reason = why_unusable(newest.index.manifest, request.table, request.fingerprints)
            unused.add(reason or Reason.ERROR, newest.detail)
        return versions

    def _answer(
        self,
        usable: Mapping[Column, Versions],
        others: Mapping[Column, OpenVersion],
        request: PruneRequest,
        unused: _Unused,
    ) -> PruneAnswer:
        """Evaluates the predicate with the usable indexes; adds the reasons of unused indexes.

        Raises:
            UnreadableIndexError: a version is damaged, deleted or unreachable.
        """
        predicate = request.predicate
        unused = _Unused(dict(unused.reasons), unused.detail)
        indexed = frozenset(map(_name, usable))
        unused_parts = [
            part for part in not_understood(predicate) if not indexed.isdisjoint(part.names)
        ]
        if unused_parts:
            unused.add(Reason.UNSUPPORTED_PREDICATE, count=len(unused_parts))
            unused.functions = tuple(dict.fromkeys(part.why for part in unused_parts))
        ordered = frozenset(order.column for order in request.orders)
        wanted = columns(predicate) | ordered
        by_column = {column: usable[column] for column in wanted if column in usable}
        if not by_column:
            return unused.answer()
        also = [(index,) for column, index in others.items() if column not in usable]
        files = self._numberings.of(
            list(chain(*by_column.values())), list(chain(*usable.values(), *also))
        )
        groups = {column: by_encoder(versions) for column, versions in by_column.items()}
        keep, used = might_match(predicate, groups, files, partial=False)
        narrowed = narrows(predicate, used)
        if request.present is not None:
            needed = self._needed(request, request.present, by_column, files)
            if needed is None:
                unused.add(Reason.UNBOUNDED)
            else:
                keep, used, narrowed = keep & needed, used | ordered, True
        if not used and not ordered:
            return unused.answer()
        partial = None
        if request.partially_visible:
            hidden, _ = might_match(predicate, groups, files, partial=True)
            known = [
                NumberedVersions(group, files, partial=True).knows_all_rows()
                for column in used
                for group in groups[column]
            ]
            every = files.files.every
            partial = PartialVisibility(every(~hidden), every(np.any(known, axis=0)))
        names = tuple(
            f"{version.manifest.name}@{version.manifest.version}"
            for column in sorted(used)
            for version in by_column[column]
        )
        skip, parts = files.files.skipped(keep)
        return unused.answer(Skip(files.name, skip, parts, names, narrowed, partial))

    @staticmethod
    def _needed(
        request: PruneRequest,
        present: Present,
        by_column: Mapping[Column, Versions],
        files: FileNumbering,
    ) -> Flags | None:
        """The ranges of files that a scan with ORDER BY and LIMIT, MIN or MAX needs.

        Returns None if the needed ranges are unknown, for example at an earlier instant of a Hudi
        table. Also returns None if the scan's files refer to another numbering.

        Raises:
            UnreadableIndexError: a version is damaged, deleted or unreachable.
        """
        formats = {version.manifest.format_name for own in by_column.values() for version in own}
        earlier = request.instant is not None and not formats <= BOUNDING_ANY_TIME
        if earlier or present.numbering != files.name:
            return None
        over = {
            column: NumberedVersions(versions[:1], files, partial=False)
            for column, versions in by_column.items()
        }
        groups, keep = files.files.to_ranges(present.groups), np.zeros(files.n, np.bool_)
        shown = files.files.to_ranges(present.hide.astype(np.int64)) == 0
        for order in request.orders:
            if order.column not in over:
                return None
            sure = shown & ~evaluate(order.against, over, files.n).keep
            needed = over[order.column].needed(order, groups, sure)
            if needed is None:
                return None
            keep |= needed
        return keep


def select(
    predicate: Predicate,
    registrations: Sequence[Registration | None],
    ordered: AbstractSet[Column] = frozenset(),
) -> list[Registration | None]:
    """Returns the registrations of indexes on columns that the predicate or ORDER BY names.

    The result also contains all unreadable registrations. The pruner opens only the selected
    indexes, so a scan never waits for an index that it does not need.
    """
    named = columns(predicate) | ordered
    names = {column[0] for column in named if expression_of(column) is None}
    names.update(name for part in not_understood(predicate) for name in part.names)
    return [
        one
        for one in registrations
        if one is None or one.column in named or _name(one.column) in names
    ]


def _name(column: Column) -> str:
    """Returns the name that an `Unknown` part of a predicate uses for a column or expression."""
    return expression_of(column) or column[0]


def narrows(predicate: Predicate, used: AbstractSet[Column]) -> bool:
    """Returns whether indexes on these columns evaluate any part of a predicate except IS NOT NULL.

    IS NOT NULL alone does not count, because Spark adds it even to filters that no index can
    evaluate.
    """
    if isinstance(predicate, And):
        return any(narrows(arg, used) for arg in predicate.args)
    if isinstance(predicate, Or):
        return all(narrows(arg, used) for arg in predicate.args)
    if isinstance(predicate, Constant | Unknown):
        return False
    if isinstance(predicate, Exists):
        return narrows(predicate.arg, used)
    is_not_null = isinstance(predicate, NullTest) and predicate.negated
    return not is_not_null and predicate.column in used


def by_encoder(versions: Versions) -> list[Versions]:
    """Groups versions that have the same encoder; newer versions come first."""
    groups: dict[Encoder, list[OpenVersion]] = {}
    for version in reversed(versions):
        groups.setdefault(version.encoder, []).append(version)
    return [tuple(group) for group in groups.values()]


def might_match(
    predicate: Predicate,
    groups: Mapping[Column, Sequence[Versions]],
    files: FileNumbering,
    *,
    partial: bool,
) -> tuple[Flags, frozenset[Column]]:
    """The ranges of a table's files that may contain a row that satisfies a predicate.

    Each group of versions evaluates the predicate. If one group excludes a range, the scan need not
    read the range.

    Args:
        groups: for each column that the predicate names, the versions of its index, grouped by
            encoder.
        files: the numbering of the table's files.
        partial: whether the scan returns rows that other queries hide.

    Returns:
        bool[n], False only for ranges without a matching row; and the columns whose indexes the
        function used.
    """
    found: list[Flags] = []
    used = frozenset[Column]()
    for turn in range(max(map(len, groups.values()))):
        over = {
            column: NumberedVersions(group[min(turn, len(group) - 1)], files, partial)
            for column, group in groups.items()
        }
        verdict = evaluate(predicate, over, files.n)
        found.append(verdict.keep)
        used |= verdict.used
    return found[0] if len(found) == 1 else np.logical_and.reduce(found), used
