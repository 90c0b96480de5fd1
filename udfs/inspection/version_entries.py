"""Reads all entries of an index's current version."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sieve.encoding.encoder import Encoder
from sieve.metadata.file_list import Locations
from sieve.metadata.manifest import Manifest
from sieve.operations.registered_index import Usable
from sieve.reader.run_file import SIGNATURE
from sieve.reader.version_reader import read_locations
from sieve.segments.entries import Entries
from sieve.segments.payload import decode
from udfs.segments import stored_segments


@dataclass(frozen=True, slots=True, eq=False)
class VersionEntries:
    """All entries of an index's current version.

    Attributes:
        encoder: the encoder of the version's keys.
        entries: the entries of all runs; each entry's location is a position in `names`.
        names: the paths of the locations. If a file has several ranges, each name also contains the
            range's offset in the file.
        has_maps: whether hash maps answer ``=`` and IN. `entries` does not contain the hash maps.
    """

    manifest: Manifest
    encoder: Encoder
    entries: Entries
    names: tuple[str, ...]
    has_maps: bool


def read_entries(index: Usable) -> VersionEntries:
    """Reads all entries of an index's current version.

    Raises:
        UnsupportedError: a later release of Sieve wrote the index.
        CorruptError, UnavailableError: a file of the index is damaged, or the store does not
            answer.
    """
    manifest = index.manifest
    listed = read_locations(index.store, index.directory, manifest)
    encoder, parts, maps = Encoder(manifest.type), [], 0
    for coded, slot, segment in stored_segments(index.store, index.directory, manifest):
        encoder = coded
        if segment["shape"] in ("map", SIGNATURE):
            maps += segment["shape"] == "map"
        else:
            part = decode(segment["payload"])
            parts.append(Entries(part.low, part.high, part.location + np.int32(slot)))
    none = np.empty(0, np.int64)
    slots = np.concatenate([none, *(part.location for part in parts)])
    # A file that is no longer in the file list keeps its slot in a run. The code omits the entries
    # of files outside the file list.
    ordinal = np.full(sum(run.locations for run in manifest.runs), -1, np.int32)
    places = listed.places if listed.ranges is None else listed.range_slots[:, np.newaxis]
    location, _ = np.nonzero(places >= 0)
    ordinal[places[places >= 0]] = location
    there = ordinal[slots] >= 0
    entries = Entries(
        np.concatenate([none, *(part.low for part in parts)])[there],
        np.concatenate([none, *(part.high for part in parts)])[there],
        ordinal[slots][there],
    )
    return VersionEntries(manifest, encoder, entries, _names(listed), maps > 0)


def _names(listed: Locations) -> tuple[str, ...]:
    if listed.ranges is None:
        return tuple(listed.paths)
    owners, starts = listed.ranges.owners.tolist(), listed.ranges.starts.tolist()
    several = (listed.ranges.counts > 1).tolist()
    return tuple(
        f"{listed.paths[owner]} from byte {start:,}" if several[owner] else listed.paths[owner]
        for owner, start in zip(owners, starts, strict=True)
    )
