"""Version reader: looks up key ranges in one version of an index, and finds locations.

A version consists of a file list and, like an LSM tree, of runs. A look-up finds ordinals of
locations in each run. The slots in the file list map the ordinals of each run to the version's
locations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Counts, Flags
from sieve.encoding.encoder import Encoder
from sieve.errors import UnsupportedError
from sieve.metadata.file_list import Locations, check_list, merge, parse_locations
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import locations_file
from sieve.metadata.records import PartRef
from sieve.predicate.key_ranges import KeyRanges
from sieve.reader.extents import Extents, concat_ends, ends_of, extents
from sieve.reader.lru_cache import FileCache
from sieve.reader.placement import Placement, place
from sieve.reader.run_reader import Run
from sieve.reader.verified_file import verified
from sieve.storage.interface import Store

MOST_EXTENT_BYTES: Final = 512 << 10
"""If a version's run files are larger than this limit, a scan with ORDER BY and LIMIT uses only
each location's least and greatest key. Decoding all entries would take longer than a scan waits."""

_NO_FLAGS: Final = np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """The verified bytes of one part of a file list; a few bytes for each file."""

    data: bytes

    @property
    def nbytes(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True, eq=False)
class OpenVersion:
    """An open version of an index. Look-ups read only the files that they need.

    The version's files are in memory only as long as `cache` contains them.
    """

    store: Store
    directory: str
    manifest: Manifest
    encoder: Encoder
    runs: tuple[Run, ...]
    cache: FileCache

    @property
    def null_proof(self) -> bool:
        """Returns whether every query may rely on the counts of NULLs in the file list."""
        return self.manifest.null_proof

    def locations(self) -> Locations:
        """Verifies and decodes the file list at each call; raises the errors of `open_version`."""
        roots = self.manifest.roots
        return merge(
            [
                parse_locations(self._part(part).data, roots, part.rows)
                for part in self.manifest.locations.parts
            ]
        )

    def placement(self) -> Placement:
        """The part of the file list that look-ups need. Raises the errors of `open_version`."""
        placed: Placement = self.cache.get(
            # Two versions can have the same parts and different roots, so the cache key contains
            # the roots, too.
            (self.directory, self.manifest.locations.parts, self.manifest.roots),
            lambda: place(self.locations()),
        )
        return placed

    def counts(self) -> FileRanges:
        """How many rows each location has, for queries with ORDER BY and LIMIT.

        Raises the errors of `open_version`.
        """
        counts: FileRanges = self.cache.get(
            (self.directory, self.manifest.locations.parts), lambda: self.locations().every_range
        )
        return counts

    def merged_slices(self) -> tuple[Counts, Counts]:
        """The positions of Hudi slices with log files, and of Hudi slices in several runs.

        The method returns two arrays, int64[k] each, which are empty for table formats other than
        Hudi.

        Raises the errors of `open_version`.
        """
        if self.manifest.format_name != "hudi":
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        logged: Counts = self.cache.get(
            (self.directory, self.manifest.locations.parts, "logged"),
            lambda: np.flatnonzero(self.locations().mtimes),
        )
        return logged, np.flatnonzero(self.placement().all_rows.flags())

    def _part(self, part: PartRef) -> _Stored:
        stored: _Stored = self.cache.get(
            (locations_file(self.directory, part.name), part.sha256),
            lambda: _Stored(verified_part(self.store, self.directory, part)),
        )
        return stored

    def keep(self, key_ranges: KeyRanges) -> Flags:
        """Returns bool[m]: True for each location that can contain a value in the key ranges.

        Raises:
            CorruptError, UnavailableError: a file that the look-up needs is damaged, missing or
                unreachable.
            UnsupportedError: a later release of Sieve wrote the file.
        """
        placed = self.placement()
        if self._every_key(key_ranges):
            keep = placed.keys.flags()
        else:
            found = [self._found(run, key_ranges) for run in self.runs]
            one = len(found) == 1
            keep = placed.of_slots(found[0] if one else np.concatenate([_NO_FLAGS, *found]))
            if placed.bounds is not None:
                some = np.flatnonzero(keep)
                keep[some] = placed.bounds.meet(key_ranges.intervals, some)
        if key_ranges.null:
            keep |= placed.nulls.flags()
        if key_ranges.nan:
            keep |= placed.nans.flags()
        return keep

    def extents(self, *, descending: bool) -> Extents | None:
        """The extents of all locations; None if computing the extents would take too long.

        If the version has many entries, the method uses only the locations' key bounds. In this
        case, the key bounds of all locations must be known.

        Args:
            descending: whether the query's sort order is descending.

        Raises:
            CorruptError, UnavailableError, UnsupportedError: see `keep`.
        """
        if not self._has_extents():
            return None
        found: Extents = self.cache.get(
            (self.directory, self.manifest.id, descending), lambda: self._extents(descending)
        )
        return found

    def _has_extents(self) -> bool:
        """Returns whether there are few entries, or the key bounds of all locations are known."""
        if not self._has_many_entries():
            return True
        placed = self.placement()
        return placed.bounds is not None and not np.any(placed.keys.flags() & ~placed.bounds.known)

    def _has_many_entries(self) -> bool:
        return sum(run.entry_bytes for run in self.runs) > MOST_EXTENT_BYTES

    def _extents(self, descending: bool) -> Extents:
        listed = self.locations()
        slots, counts, bounds = listed.range_slots, listed.every_range, listed.key_bounds
        keyed = counts.rows - counts.nulls - counts.nans
        if descending:
            bounds = bounds.falling()
        if self._has_many_entries():
            return extents(ends_of(bounds), keyed, bounds)
        in_runs = np.flatnonzero(slots >= 0)
        # Some ordinals of a run can belong to locations that the version no longer has.
        location = np.full(sum(run.locations for run in self.manifest.runs), -1, np.int64)
        location[slots[in_runs]] = in_runs
        first, segments, places = 0, [], []
        for run, ref in zip(self.runs, self.manifest.runs, strict=True):
            for segment in run.ends():
                segments.append(segment)
                places.append(location[first + segment.location])
            first += ref.locations
        ends = concat_ends(segments, places)
        return extents(ends.falling() if descending else ends, keyed, bounds)

    def _found(self, run: Run, key_ranges: KeyRanges) -> Flags:
        if key_ranges.signature is not None:
            return run.locations_signed(key_ranges.signature)
        found = run.locations_in(key_ranges.intervals)
        if run.has_maps and key_ranges.hashes is not None and found.any():
            found &= run.locations_of(key_ranges.hashes)
        return found

    def retry(self) -> None:
        """Tries again to read the run files that an earlier look-up could not read."""
        for run in self.runs:
            run.retry()

    def _every_key(self, key_ranges: KeyRanges) -> bool:
        """Returns whether key ranges include every key; if so, a look-up need not search runs."""
        if key_ranges.hashes is not None or key_ranges.signature is not None:
            return False
        if len(key_ranges.intervals) != 1:
            return False
        first, last = key_ranges.intervals[0].tolist()
        spans = (run.span for run in self.runs)
        return all(first <= least and greatest <= last for least, greatest in spans)


def open_version(store: Store, index_dir: str, manifest: Manifest, cache: FileCache) -> OpenVersion:
    """Opens a version and reads its file list. Later look-ups read the run files that they need.

    Args:
        cache: keeps the version's files in memory; several versions and indexes can share a cache.

    Raises:
        CorruptError, UnavailableError: the file list is damaged, missing or unreachable.
        UnsupportedError: a later release of Sieve wrote the file list.
    """
    encoders = {Encoder.from_json(dict(run.encoder)) for run in manifest.runs}
    if len(encoders) > 1:
        raise UnsupportedError(
            "SIEVE_VERSION_TOO_NEW",
            f"version {manifest.version} of index {manifest.name} codes its runs in different "
            "ways, which this release cannot look up; upgrade Sieve",
        )
    runs = tuple(Run(store, index_dir, run, cache) for run in manifest.runs)
    encoder = encoders.pop() if encoders else Encoder(manifest.type)
    index = OpenVersion(store, index_dir, manifest, encoder, runs, cache)
    index.placement().check(manifest.locations.count, _slots(manifest))
    return index


def read_locations(store: Store, index_dir: str, manifest: Manifest) -> Locations:
    """Reads and verifies a version's file list.

    Raises CorruptError or UnavailableError.
    """
    return whole_list(manifest, read_parts(store, index_dir, manifest))


def read_parts(store: Store, index_dir: str, manifest: Manifest) -> tuple[Locations, ...]:
    """Reads and verifies each part of a file list; raises the errors of `read_locations`."""
    roots = manifest.roots
    return tuple(read_part(store, index_dir, ref, roots) for ref in manifest.locations.parts)


def read_part(store: Store, index_dir: str, ref: PartRef, roots: Sequence[str]) -> Locations:
    """Reads, verifies and decodes one part of a file list."""
    return parse_locations(verified_part(store, index_dir, ref), roots, ref.rows)


def verified_part(store: Store, index_dir: str, ref: PartRef) -> bytes:
    """Reads and verifies one part of a file list; returns the part's bytes."""
    return verified(store, locations_file(index_dir, ref.name), ref)


def whole_list(manifest: Manifest, parts: Sequence[Locations]) -> Locations:
    """Merges the parts of a version's file list.

    Raises CorruptError if the parts contradict the version's manifest.
    """
    listed = merge(parts)
    check_list(listed, manifest.locations.count, _slots(manifest))
    return listed


def _slots(manifest: Manifest) -> int:
    """Returns the total number of locations in the version's runs."""
    return sum(run.locations for run in manifest.runs)
