"""Writes the file list of a version: one new part, merged onto the previous version's parts.

Each part has at least four times the rows of the next part. So a list of n locations has about
log4(n) parts, and each row is rewritten only a few times. The new part absorbs each earlier part
that is too small for this rule. If even the first part is too small, the new part is the whole
list. This is the logarithmic method of Bentley and Saxe, as used by log-structured merge trees.
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
"""A part has at least this many times the rows of the next part."""


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The stored file list of a version.

    Attributes:
        refs: references to the list's parts.
        parts: the decoded parts of the list.
        roots: the folders to which the paths in the parts are relative.
        whole: the merged list.
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
        before: a list whose parts the new list can reuse.

    Returns:
        The reference to the list, and the roots to which paths in its parts are relative.

    Raises:
        UnavailableError: the list cannot be written.
    """
    part, refs = _part_over(before, locations)
    # Parts refer to roots by number, so an unused root remains until the whole list is written
    # again.
    had = set(before.roots)
    joined = (*before.roots, *(root for root in roots if root not in had))
    if len(joined) > MAX_ROOTS:
        part, refs = locations, ()
    if refs:
        roots = joined
    written = _store_part(store, index_dir, part, roots)
    return LocationsRef((*refs, written), len(locations.paths)), tuple(roots)


def _part_over(before: Stored, now: Locations) -> tuple[Locations, tuple[PartRef, ...]]:
    """Returns the part to write and the parts that remain; or the whole list and no parts."""
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
