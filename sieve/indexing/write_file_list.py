"""Writes the file list of a version: a new part, which adds to parts of the previous list.

Each part has at least four times as many rows as the next part. A list of n files therefore has
about log4(n) parts, and versions rewrite each row only a few times. If earlier parts are too small
for this rule, the new part replaces them. If the new part replaces all earlier parts, it is the
whole list. Log-structured merge trees also use this logarithmic method of Bentley and Saxe.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sieve.errors import UnavailableError
from sieve.metadata.file_list import (
    NO_LOCATIONS,
    Locations,
    diff,
    merge,
    render_locations,
)
from sieve.metadata.manifest import MAX_ROOTS, Manifest
from sieve.metadata.paths import locations_file
from sieve.metadata.pending_writes import note_file_list
from sieve.metadata.records import LocationsRef, PartRef
from sieve.reader.version_reader import read_parts, whole_list
from sieve.storage.interface import Store

STEP: Final = 4
"""A part has at least this many times as many rows as the next part."""


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The stored file list of a version.

    Attributes:
        refs: the manifest's references to the list's parts.
        parts: the decoded parts of the list.
        roots: the folders to which paths in the parts are relative.
        whole: the whole list, merged from the parts.
    """

    refs: tuple[PartRef, ...]
    parts: tuple[Locations, ...]
    roots: tuple[str, ...]
    whole: Locations


NOTHING_STORED: Final = Stored((), (), (), NO_LOCATIONS)


def read_list(store: Store, index_dir: str, version: Manifest) -> Stored:
    """Reads and verifies the file list of a version.

    Raises CorruptError or UnavailableError.
    """
    parts = read_parts(store, index_dir, version)
    return Stored(version.locations.parts, parts, version.roots, whole_list(version, parts))


def store_list(
    store: Store,
    index_dir: str,
    locations: Locations,
    roots: Sequence[str],
    before: Stored,
) -> tuple[LocationsRef, tuple[str, ...]]:
    """Writes the file list of a version.

    Args:
        before: the list of the previous version, whose parts the new list can reuse.

    Returns:
        The reference to the list, and the folders to which paths in its parts are relative.

    Raises:
        UnavailableError: the store cannot write the list.
    """
    part, refs = _part_over(before, locations)
    # Parts refer to roots by number, so an unused root remains until a version writes the whole
    # list again.
    had = set(before.roots)
    joined = (*before.roots, *(root for root in roots if root not in had))
    if len(joined) > MAX_ROOTS:
        part, refs = locations, ()
    if refs:
        roots = joined
    written = _store_part(store, index_dir, part, roots)
    return LocationsRef((*refs, written), len(locations.paths)), tuple(roots)


def _part_over(before: Stored, now: Locations) -> tuple[Locations, tuple[PartRef, ...]]:
    """Returns the new part, and the earlier parts that remain in the list."""
    part, left = diff(before.whole, now), len(before.refs)
    rows = len(part.paths)
    while left and before.refs[left - 1].rows < STEP * max(1, rows):
        left -= 1
        rows += before.refs[left].rows
    if left < len(before.refs):
        part = diff(merge(before.parts[:left]), now)
    return part, before.refs[:left]


def _store_part(store: Store, index_dir: str, part: Locations, roots: Sequence[str]) -> PartRef:
    data = render_locations(part, roots)
    name = f"{secrets.token_hex(16)}.parquet"
    uri = locations_file(index_dir, name)
    note_file_list(store, index_dir, name)
    if not store.create(uri, data):
        raise UnavailableError(
            "SIEVE_NAME_TAKEN", f"{uri} is there already; run the statement again"
        )
    return PartRef(name, len(data), hashlib.sha256(data).hexdigest(), len(part.paths))
