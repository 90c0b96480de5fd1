"""Contents: the output of a build. A refresh replaces this part of a version as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sieve.metadata.options import IndexOptions
from sieve.metadata.records import BuildStats, Commit, LocationsRef, RunRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The indexed data of a version.

    Attributes:
        instant: time of the indexed snapshot, ISO 8601 in UTC with milliseconds.
        type: the column's Catalyst type in the form of ``DataType.simpleString``.
        options: the options of the build.
        format_name: the table's file format: parquet, orc, csv or json.
        null_proof: whether NULL counts can rule a file out; false for text formats.
        fingerprint: SHA-256, in hex, of ``fingerprint_parts``. The hash identifies the reader that
            the build used.
        fingerprint_parts: the input of the hash, stored so that a mismatch can be explained.
        runs: index data over disjoint sets of locations.
        locations: the file list, which gives the position of each location in its run.
        roots: absolute qualified URIs of the folders to which location paths are relative.
        stats: statistics of the build.
        commit: the indexed commit of a Delta table, or None for other tables.
    """

    instant: str
    type: str
    options: IndexOptions
    format_name: str
    null_proof: bool
    fingerprint: str
    fingerprint_parts: Mapping[str, str]
    runs: tuple[RunRef, ...]
    locations: LocationsRef
    roots: tuple[str, ...]
    stats: BuildStats
    commit: Commit | None = None

    def members(self) -> dict[str, Any]:
        """The attributes of the contents by name, to construct a version."""
        return {field.name: getattr(self, field.name) for field in fields(Contents)}
