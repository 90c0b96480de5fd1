"""Contents: the part of a version that a build makes and that a refresh replaces as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import BuildStats, Commit, LocationsRef, RunRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The result of a build: a version's index data, and how the build read the table.

    Attributes:
        instant: the time of the indexed snapshot of the table, ISO 8601 in UTC with milliseconds.
        type: the column's Catalyst type in the form of ``DataType.simpleString``.
        options: the options of the build.
        format_name: the table's format: parquet, orc, csv, json, hudi, delta or iceberg.
        null_proof: whether a query can skip files by their NULL counts; false for text formats.
        fingerprint: SHA-256, in hex, of ``fingerprint_parts``. The hash identifies how the build
            read the table.
        fingerprint_parts: the parts of the fingerprint, stored so that Sieve can name the parts
            that differ at a scan.
        runs: the runs of the index; each run has the data for a different set of locations.
        locations: the file list, which also contains the position of each location in its run.
        roots: absolute qualified URIs of folders. Each path in the file list is relative to one of
            the folders.
        stats: the statistics of the build.
        commit: the indexed commit of a Delta or Iceberg table, or None for other tables.
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
        """Returns the attributes of the contents by name, for the constructor of a version."""
        return {field.name: getattr(self, field.name) for field in fields(Contents)}
