"""File numbering: common numbers for all files and ranges that several index versions list.

Each version numbers its own locations by ordinals. A scan can use several versions, so the front
end numbers the files of all these versions together. The driver caches the list of files, so an
answer needs only one bit for each numbered file or range. Example: version A lists the files x and
y, and version B lists y and z. The numbers are x=0, y=1 and z=2, and B's ordinals for these numbers
are -1, 0 and 1.

Two versions can cut a large file at different offsets. The numbering cuts the file at the offsets
of all versions, and gives each resulting range a number. A version that excludes one of its own
ranges also excludes each part of this range.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Counts, Flags
from sieve.encoding.encoder import Encoder
from sieve.errors import SieveError, UnsupportedError
from sieve.metadata.manifest import Manifest
from sieve.metadata.path_list import concat_paths
from sieve.metadata.records import VersionId
from sieve.predicate.key_ranges import KeyRanges
from sieve.reader.flag_slices import Gather, gather
from sieve.reader.lru_cache import FileCache
from sieve.reader.packed_files import Files, PackedFiles
from sieve.reader.top_k import BOUNDING_FORMATS, Order, needed
from sieve.reader.version_reader import OpenVersion

MAX_NUMBERINGS = 256
_TWO_ZEROS: Final = frozenset(("float", "double"))
"""Types in which 0.0 and -0.0 have the same key code, although the codes of other values are
exact."""


class UnreadableIndexError(Exception):
    """A version of an index is unreadable; this error contains the manifest of the version."""

    def __init__(self, manifest: Manifest, cause: SieveError) -> None:
        super().__init__(manifest, cause)
        self.manifest = manifest
        self.cause = cause


@contextlib.contextmanager
def _blaming(index: OpenVersion) -> Iterator[None]:
    try:
        yield
    except SieveError as error:
        raise UnreadableIndexError(index.manifest, error) from error


@dataclass(frozen=True, slots=True, eq=False)
class FileNumbering:
    """Numbers all files that several versions list; each file has one number for all versions.

    If versions list a path with different lengths or times, each pair of length and time has its
    own number.

    Attributes:
        name: the name that identifies the numbering, 64 hex digits.
        files: the compressed list of files, in the order of their numbers. Each range has a number,
            too.
        ordinals: for each version and each range, the position of the version's location that
            contains the range; -1 if the version does not list the file.
    """

    name: str
    files: PackedFiles
    ordinals: Mapping[VersionId, Gather]

    @property
    def n(self) -> int:
        """Number of ranges of all files. A file without cuts is one range."""
        return self.files.n_ranges

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return self.files.nbytes + sum(one.nbytes for one in self.ordinals.values())


@dataclass(frozen=True, slots=True, eq=False)
class NumberedVersions:
    """Versions of an index that have the same encoder, and the common numbering of their files.

    Attributes:
        versions: one or more versions; the scan skips a file if at least one version excludes the
            file.
        files: the numbering of the versions' files.
        partial: whether the scan returns rows that queries of the table's current state hide.
    """

    versions: tuple[OpenVersion, ...]
    files: FileNumbering
    partial: bool

    @property
    def encoder(self) -> Encoder:
        """The encoder that all versions have."""
        return self.versions[0].encoder

    @property
    def null_proof(self) -> bool:
        """Returns whether every query may rely on the counts of NULLs in the file lists."""
        return all(version.null_proof for version in self.versions)

    def keep(self, key_ranges: KeyRanges) -> Flags:
        """Returns bool[n]: True for each numbered range that can contain a value in the key ranges.

        Raises:
            UnreadableIndexError: an index file that the answer needs is unreadable.
        """
        found = [self._keep(version, key_ranges) for version in self.versions]
        return found[0] if len(found) == 1 else np.logical_and.reduce(found)

    def _keep(self, version: OpenVersion, key_ranges: KeyRanges) -> Flags:
        with _blaming(version):
            found = version.keep(key_ranges)
            if self.partial:
                found |= ~version.placement().all_rows.flags()
        return self._renumbered(version, found, unknown=True)

    def knows_all_rows(self) -> Flags:
        """Returns bool[n]: for each range, whether a version indexed all rows, even hidden rows.

        Raises:
            UnreadableIndexError: a version's file list is unreadable.
        """
        knows = np.zeros(self.files.n, np.bool_)
        for version in self.versions:
            with _blaming(version):
                all_rows = version.placement().all_rows.flags()
            knows |= self._renumbered(version, all_rows, unknown=False)
        return knows

    def needed(self, order: Order, groups: Counts, sure: Flags) -> Flags | None:
        """Returns the numbered ranges that can contain one of the first k rows of a sort order.

        Args:
            order: the sort order, and the number k of first rows.
            groups: int64[n], group of each range, from 0; -1 for a range of a file that the
                scan does not list.
            sure: bool[n], whether the scan returns all rows of the range, except rows that the
                query ignores.

        Returns:
            bool[n], or None if the first version cannot determine the needed ranges.

        Raises:
            UnreadableIndexError: an index file that the answer needs is unreadable.
        """
        version = self.versions[0]
        ordinals = self.files.ordinals[version.manifest.id].positions()
        with _blaming(version):
            counts = version.counts()
            extents = version.extents(descending=order.descending)
            logged, several = version.merged_slices()
        if extents is None or version.manifest.format_name not in BOUNDING_FORMATS:
            return None
        known = ordinals >= 0
        # If another version cuts a location of this version into ranges, the location has several
        # numbers.
        own = np.full(len(counts.rows), -1, np.int64)
        own[ordinals[known]] = groups[known]
        of_sure = np.ones(len(counts.rows), np.bool_)
        of_sure[ordinals[known & ~sure]] = False
        # Hudi's reader merges log files, so it can return fewer rows of a slice than the index
        # counts.
        of_sure[logged] = False
        # If a slice is in several runs, its extents describe only its rows in the first run.
        own[several] = -1
        one_value = version.encoder.exact and version.manifest.type not in _TWO_ZEROS
        found = needed(order, extents, counts, own, of_sure, one_value=one_value)
        return None if found is None else self._renumbered(version, found, unknown=True)

    def _renumbered(self, version: OpenVersion, flags: Flags, *, unknown: bool) -> Flags:
        return self.files.ordinals[version.manifest.id].take(flags, absent=unknown)


class FileNumberings:
    """The numberings that scans use, sorted by the time of last use.

    Args:
        cache: keeps the numberings; the next scan rebuilds an evicted numbering.
    """

    def __init__(self, cache: FileCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        # The versions of each numbering. The versions remain here even if the cache evicts the
        # numbering.
        self._versions: OrderedDict[str, tuple[OpenVersion, ...]] = OrderedDict()

    def of(self, used: Sequence[OpenVersion], known: Sequence[OpenVersion]) -> FileNumbering:
        """Returns a numbering that includes all files that the used versions list.

        The method reuses the latest numbering that contains all used versions. So the driver's list
        of files stays valid if another index of the table gets a new version.

        Args:
            used: the versions that the scan uses.
            known: the used versions, and other versions of indexes on the same table.

        Raises:
            UnreadableIndexError: the file list of a used version is unreadable.
        """
        wanted = {index.manifest.id for index in used}
        name, versions = self._latest(wanted, known)
        try:
            return self._load(name, versions)
        except UnreadableIndexError as failed:
            if failed.manifest.id in wanted:
                raise
        # The scan does not use the index of the unreadable version; the index was perhaps dropped.
        # So the code numbers only the files of the used versions.
        own = _in_order(used)
        with self._lock:
            self._versions.pop(name, None)
            name = _name_of(own)
            self._versions[name] = own
        return self._load(name, own)

    def by_name(self, name: str) -> FileNumbering:
        """Returns the numbering with a name that an earlier answer gave to the driver.

        Raises:
            UnsupportedError: newer numberings have replaced this numbering.
            SieveError: the file list of one of the numbering's versions is unreadable.
        """
        with self._lock:
            versions = self._versions.get(name)
        if versions is None:
            raise UnsupportedError(
                "SIEVE_DICTIONARY_GONE", "the list of files was replaced meanwhile"
            )
        try:
            return self._load(name, versions)
        except UnreadableIndexError as failed:
            raise failed.cause from failed

    def _load(self, name: str, versions: Sequence[OpenVersion]) -> FileNumbering:
        found: FileNumbering = self._cache.get(name, lambda: _number(name, versions))
        return found

    def _latest(
        self, wanted: AbstractSet[VersionId], otherwise: Sequence[OpenVersion]
    ) -> tuple[str, tuple[OpenVersion, ...]]:
        with self._lock:
            name = next(
                (
                    name
                    for name, indexes in reversed(self._versions.items())
                    if wanted <= {index.manifest.id for index in indexes}
                ),
                None,
            )
            if name is None:
                indexes = _in_order(otherwise)
                name = _name_of(indexes)
                self._versions[name] = indexes
            self._versions.move_to_end(name)
            while len(self._versions) > MAX_NUMBERINGS:
                self._versions.popitem(last=False)
            return name, self._versions[name]


def _in_order(indexes: Iterable[OpenVersion]) -> tuple[OpenVersion, ...]:
    """Sorts versions into the order in which a numbering numbers their files."""
    return tuple(sorted(indexes, key=lambda index: index.manifest.id))


def _name_of(indexes: Sequence[OpenVersion]) -> str:
    """The name that identifies the numbering of these versions, 64 hex digits."""
    ids = json.dumps([index.manifest.id for index in indexes])
    return hashlib.sha256(ids.encode()).hexdigest()


def _number(name: str, indexes: Sequence[OpenVersion]) -> FileNumbering:
    """Numbers the files of several versions, which belong to one or more indexes.

    Raises:
        UnreadableIndexError: the file list of a version is unreadable.
    """
    packed = []
    for index in indexes:
        with _blaming(index):
            packed.append(index.placement().files)
    ids = [index.manifest.id for index in indexes]
    if packed[0].is_distinct and all(files.same(packed[0]) for files in packed):
        # Usually, all versions list the same files.
        every = gather(np.arange(packed[0].n_ranges))
        return FileNumbering(name, packed[0], dict.fromkeys(ids, every))
    lists = [files.unpacked() for files in packed]
    numbers, first = _numbers(lists)
    paths = concat_paths([files.paths for files in lists])
    lengths, times = (_joined([getattr(f, key) for f in lists]) for key in ("lengths", "times"))
    own = np.split(numbers, np.cumsum([len(files.paths) for files in lists])[:-1])
    ranges = _every_range(
        [
            np.stack([number[files.range_owners], files.range_starts])
            for number, files in zip(own, lists, strict=True)
        ]
    )
    footers = np.zeros(len(first), np.int64)
    for number, files in zip(own, lists, strict=True):
        footers[number] = np.maximum(footers[number], files.footers)
    files = Files(
        paths.at(first),
        lengths[first],
        times[first],
        np.bincount(ranges[0], minlength=len(first)) - 1,
        footers,
        ranges[1][ranges[1] > 0],
    )
    ordinals = {
        version: gather(_containing(ranges, number, of))
        for version, number, of in zip(ids, own, lists, strict=True)
    }
    return FileNumbering(name, files.packed(), ordinals)


def _joined(columns: Sequence[Counts]) -> Counts:
    return np.concatenate([np.zeros(0, np.int64), *columns])


def _numbers(lists: Sequence[Files]) -> tuple[Counts, Counts]:
    """Returns the number of each file in the lists, and the first occurrence of each number.

    Files that have the same path, length and time have the same number. The numbers follow the
    order in which files first occur.
    """
    paths = concat_paths([files.paths for files in lists]).numbered()
    facts = np.stack(
        [
            _joined([files.times for files in lists]),
            _joined([files.lengths for files in lists]),
            paths,
        ]
    )
    order = np.lexsort(facts)
    differs = (facts[:, order[1:]] != facts[:, order[:-1]]).any(axis=0)
    begins = np.flatnonzero(np.append(True, differs)[: len(order)])
    # The sort is stable, so the first element of each group of equal files is the first occurrence.
    found = order[begins]
    ranks = np.empty(len(found), np.int64)
    ranks[np.argsort(found)] = np.arange(len(found))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.repeat(ranks, np.diff(begins, append=len(order)))
    return numbers, np.sort(found)


def _every_range(starts: Sequence[Counts]) -> Counts:
    """Returns int64[2, n]: file and start of each range; all versions' offsets cut the files."""
    every = np.hstack(starts)
    every = every[:, np.lexsort(every[::-1])]
    differs = (every[:, 1:] != every[:, :-1]).any(axis=0)
    return every[:, np.append(True, differs)[: every.shape[1]]]


def _containing(ranges: Counts, files: Counts, of: Files) -> Counts:
    """Returns int64[n]: for each range, the version's location that contains the range, or -1.

    Args:
        ranges: int64[2, n], the result of `_every_range`.
        files: int64[k], the common number of each file of the version.
        of: the files of the version.
    """
    if not len(files):
        return np.full(ranges.shape[1], -1, np.int64)
    starts = of.range_starts
    owner, n = files[of.range_owners], len(starts)
    # The order is by file and offset. A location comes before the ranges that begin in the
    # location.
    file, start = np.append(owner, ranges[0]), np.append(starts, ranges[1])
    order = np.lexsort((np.arange(len(file)) >= n, start, file))
    latest = np.maximum.accumulate(np.where(order < n, np.arange(len(order)), 0))
    wanted = order >= n
    place = np.empty(ranges.shape[1], np.int64)
    place[order[wanted] - n] = order[latest[wanted]]
    place[place >= n] = -1
    place[owner[place] != ranges[0]] = -1
    return place
