"""Version reader: one opened version of an index, which evaluates key ranges to locations.

A version consists of runs, like an LSM tree, and a file list. A look-up asks each run and
translates the runs' ordinals to the version's locations by slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import Encoder
from sieve.errors import UnsupportedError
from sieve.metadata.file_list import Locations, check_list, merge, parse_locations
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import locations_file
from sieve.metadata.records import PartRef
from sieve.predicate.key_ranges import KeyRanges
from sieve.reader.cache import FileCache
from sieve.reader.extents import Extents, concat_ends, extents
from sieve.reader.run_reader import Run, verified
from sieve.storage.interface import Store

MOST_EXTENT_BYTES: Final = 512 << 10
"""Bytes of run files up to which extents are found out, for which all entries are decoded: some
hundred thousand, which take a fraction of the time that a scan waits."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenIndex:
    """One version of an index; look-ups read its files lazily.

    The files are held in `cache` only.
    """

    store: Store
    directory: str
    manifest: Manifest
    encoder: Encoder
    runs: tuple[Run, ...]
    cache: FileCache

    @property
    def null_proof(self) -> bool:
        """Whether NULL counts are valid for every query."""
        return self.manifest.null_proof

    def locations(self) -> Locations:
        """The file list, verified; raises as `open_version`."""
        parts, roots = self.manifest.locations.parts, self.manifest.roots
        if len(parts) == 1:
            return self._part(parts[0])
        whole: Locations = self.cache.get(
            (self.directory, parts, roots), lambda: merge([self._part(part) for part in parts])
        )
        return whole

    def _part(self, part: PartRef) -> Locations:
        roots = self.manifest.roots
        listed: Locations = self.cache.get(
            # Versions may share the file although their tables have different roots.
            (locations_file(self.directory, part.name), part.sha256, roots),
            lambda: read_part(self.store, self.directory, part, roots),
        )
        return listed

    def keep(self, key_ranges: KeyRanges) -> Flags:
        """bool[m]: which of the version's locations, ranges of large files, may hold a value.

        Raises:
            CorruptError, UnavailableError: a file that the answer needs is damaged, missing or
                unreachable.
            UnsupportedError: a later release wrote it.
        """
        if self._every_key(key_ranges):
            counts = self.locations().every_range
            keep = counts.rows > counts.nulls + counts.nans
        else:
            found = [self._found(run, key_ranges) for run in self.runs]
            # The extra last element is for locations without keys, which are in no run.
            flags, where = np.concatenate([*found, [False]]), self.locations()
            keep = flags[where.range_slots]
            if where.also is not None:
                keep |= flags[where.also].any(axis=1)
        if key_ranges.null:
            keep |= self.locations().every_range.nulls > 0
        if key_ranges.nan:
            keep |= self.locations().every_range.nans > 0
        return keep

    def extents(self, *, descending: bool) -> Extents | None:
        """Where the keys of each location begin and end; None if that takes too long to find out.

        Args:
            descending: whether the greatest key is the first.

        Raises:
            CorruptError, UnavailableError, UnsupportedError: as `keep`.
        """
        if sum(run.entry_bytes for run in self.runs) > MOST_EXTENT_BYTES:
            return None
        found: Extents = self.cache.get(
            (self.directory, self.manifest.id, descending), lambda: self._extents(descending)
        )
        return found

    def _extents(self, descending: bool) -> Extents:
        slots, counts = self.locations().range_slots, self.locations().every_range
        in_runs = np.flatnonzero(slots >= 0)
        # A run may have ordinals that no location has any more.
        location = np.full(sum(run.locations for run in self.manifest.runs), -1, np.int64)
        location[slots[in_runs]] = in_runs
        first, segments, places = 0, [], []
        for run, ref in zip(self.runs, self.manifest.runs, strict=True):
            for segment in run.ends():
                segments.append(segment)
                places.append(location[first + segment.location])
            first += ref.locations
        ends = concat_ends(segments, places)
        keyed = counts.rows - counts.nulls - counts.nans
        return extents(ends.falling() if descending else ends, keyed)

    def _found(self, run: Run, key_ranges: KeyRanges) -> Flags:
        found = run.locations_in(key_ranges.intervals)
        if run.has_maps and key_ranges.hashes is not None and found.any():
            found &= run.locations_of(key_ranges.hashes)
        return found

    def retry(self) -> None:
        """Reads run files again that could not be read by an earlier look-up."""
        for run in self.runs:
            run.retry()

    def _every_key(self, key_ranges: KeyRanges) -> bool:
        """Whether the key ranges include every key, so that row counts give the answer."""
        if len(key_ranges.intervals) != 1 or key_ranges.hashes is not None:
            return False
        first, last = key_ranges.intervals[0].tolist()
        spans = (run.span for run in self.runs)
        return all(first <= least and greatest <= last for least, greatest in spans)


def open_version(store: Store, index_dir: str, manifest: Manifest, cache: FileCache) -> OpenIndex:
    """Opens a version and reads its file list; look-ups read its run files lazily.

    Args:
        store: the store of the index.
        index_dir: its folder.
        manifest: the version.
        cache: holds its files; versions and indexes may share a cache.

    Raises:
        CorruptError, UnavailableError: the file list is damaged, missing or unreachable.
        UnsupportedError: a later release wrote it.
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
    index = OpenIndex(store, index_dir, manifest, encoder, runs, cache)
    _check(index.locations(), manifest)
    return index


def read_locations(store: Store, index_dir: str, manifest: Manifest) -> Locations:
    """The file list of a version, verified. Raises CorruptError or UnavailableError."""
    return whole_list(manifest, read_parts(store, index_dir, manifest))


def read_parts(store: Store, index_dir: str, manifest: Manifest) -> tuple[Locations, ...]:
    """The parts of a version's file list, each verified; raises as `read_locations`."""
    roots = manifest.roots
    return tuple(read_part(store, index_dir, ref, roots) for ref in manifest.locations.parts)


def read_part(store: Store, index_dir: str, ref: PartRef, roots: Sequence[str]) -> Locations:
    """One verified part of a file list."""
    data = verified(store, locations_file(index_dir, ref.name), ref)
    return parse_locations(data, roots, ref.rows)


def whole_list(manifest: Manifest, parts: Sequence[Locations]) -> Locations:
    """Merges the parts of a version's file list. Raises CorruptError if they do not match it."""
    listed = merge(parts)
    _check(listed, manifest)
    return listed


def _check(listed: Locations, manifest: Manifest) -> None:
    check_list(listed, manifest.locations.count, sum(run.locations for run in manifest.runs))
