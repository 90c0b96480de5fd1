"""A version of an index, as scans ask it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.encoding.encoder import Encoder
from sieve.errors import UnsupportedError
from sieve.metadata.file_list import Locations, check_list, merge, parse_locations
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import locations_file
from sieve.metadata.records import PartRef
from sieve.predicate.key_ranges import KeyRanges
from sieve.reader.cache import FileCache
from sieve.reader.run_reader import Run, verified
from sieve.storage.interface import Store

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class OpenIndex:
    """One version of an index, ready for look-ups, which read its files as they come to need them.

    What is read is held in `cache` and nowhere else.
    """

    store: Store
    directory: str
    manifest: Manifest
    encoder: Encoder
    runs: tuple[Run, ...]
    cache: FileCache

    @property
    def null_proof(self) -> bool:
        """Whether NULL counts hold for every query."""
        return self.manifest.null_proof

    def locations(self) -> Locations:
        """The list of locations, verified; raises as `open_version`."""
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
            # Versions may share the file and yet have their table in another place.
            (locations_file(self.directory, part.name), part.sha256, roots),
            lambda: read_part(self.store, self.directory, part, roots),
        )
        return listed

    def keep(self, key_ranges: KeyRanges) -> Flags:
        """bool[n]: which of the version's locations may hold a value that is asked for.

        Raises:
            CorruptError, UnavailableError: a file that the answer lies in is damaged, gone or out
                of reach.
            UnsupportedError: a later release wrote it.
        """
        if self._every_key(key_ranges):
            where = self.locations()
            keep = where.rows > where.nulls + where.nans
        else:
            found = [self._found(run, key_ranges) for run in self.runs]
            # The extra last place stands for files without keys, which are in no run.
            flags, where = np.concatenate([*found, [False]]), self.locations()
            keep = flags[where.slots]
            if where.also is not None:
                keep |= flags[where.also].any(axis=1)
        if key_ranges.null:
            keep |= self.locations().nulls > 0
        if key_ranges.nan:
            keep |= self.locations().nans > 0
        return keep

    def _found(self, run: Run, key_ranges: KeyRanges) -> Flags:
        found = run.locations_in(key_ranges.intervals)
        if run.has_maps and key_ranges.hashes is not None and found.any():
            found &= run.locations_of(key_ranges.hashes)
        return found

    def retry(self) -> None:
        """Try run files again that could not be read when a look-up needed them."""
        for run in self.runs:
            run.retry()

    def _every_key(self, key_ranges: KeyRanges) -> bool:
        """Whether any key will do: which locations have one, their counts of rows tell."""
        if len(key_ranges.intervals) != 1 or key_ranges.hashes is not None:
            return False
        first, last = key_ranges.intervals[0].tolist()
        spans = (run.span for run in self.runs)
        return all(first <= least and greatest <= last for least, greatest in spans)


def open_version(store: Store, index_dir: str, manifest: Manifest, cache: FileCache) -> OpenIndex:
    """A version whose list of locations is there; run files are read when a look-up needs them.

    Args:
        store: where the index lies.
        index_dir: its folder.
        manifest: the version.
        cache: what holds its files; versions and indexes may share one.

    Raises:
        CorruptError, UnavailableError: the list is damaged, gone or out of reach.
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
    """The list of locations of a version, verified. Raises CorruptError or UnavailableError."""
    return whole_list(manifest, read_parts(store, index_dir, manifest))


def read_parts(store: Store, index_dir: str, manifest: Manifest) -> tuple[Locations, ...]:
    """The parts of that list, each verified by itself; raises as `read_locations`."""
    roots = manifest.roots
    return tuple(read_part(store, index_dir, ref, roots) for ref in manifest.locations.parts)


def read_part(store: Store, index_dir: str, ref: PartRef, roots: Sequence[str]) -> Locations:
    """One of them."""
    data = verified(store, locations_file(index_dir, ref.name), ref)
    return parse_locations(data, roots, ref.rows)


def whole_list(manifest: Manifest, parts: Sequence[Locations]) -> Locations:
    """The list that a version's parts make. Raises CorruptError where it is not of that version."""
    listed = merge(parts)
    _check(listed, manifest)
    return listed


def _check(listed: Locations, manifest: Manifest) -> None:
    check_list(listed, manifest.locations.count, sum(run.locations for run in manifest.runs))
