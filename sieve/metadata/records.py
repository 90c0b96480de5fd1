"""Shared records: identities, file references and statistics that several modules exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NewType

IndexUuid = NewType("IndexUuid", str)
"""Identity of an index, a lower-case canonical UUID; names are only for users."""

VersionId = NewType("VersionId", str)
"""Random identity of one version, 32 hex digits. The identity distinguishes two writers of the same
version number."""

RunId = NewType("RunId", str)
"""Random identity of one run, 32 hex digits; also the name of its folder."""

SESSION: Final = "spark_catalog"
"""Name of Spark's session catalog."""

State = Literal["ready", "disabled", "dropped"]
"""State of an index in a version. A version with the state ``dropped`` is a tombstone and has no
successor."""


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """The table for which an index was created.

    Sieve compares identities to detect properties that were copied from another table. Equal
    identities prove nothing.

    Attributes:
        catalog: name of the Spark catalog, such as ``spark_catalog``.
        database: name of the database.
        table: name of the table.
        create_time_ms: the catalog's creation time, milliseconds since the epoch (the Hive
            metastore stores whole seconds); for Iceberg, a number derived from the table's UUID.
        location: absolute qualified URI of the table's folder.
    """

    catalog: str
    database: str
    table: str
    create_time_ms: int
    location: str

    @property
    def namespace(self) -> str:
        """The database; for another catalog than the session catalog, ``catalog.database``."""
        return self.database if self.catalog == SESSION else f"{self.catalog}.{self.database}"

    @property
    def name(self) -> tuple[str, ...]:
        """The parts of the name by which a statement finds the table."""
        parts = (self.database, self.table)
        return parts if self.catalog == SESSION else (self.catalog, *parts)


def identity_from(raw: Mapping[str, Any]) -> TableIdentity:
    """Decodes an identity from the driver's form."""
    return TableIdentity(
        raw["catalog"], raw["database"], raw["table"], raw["create_time_ms"], raw["location"]
    )


def same_table(one: TableIdentity, other: TableIdentity) -> bool:
    """Returns whether two identities denote the same table. Names are case-insensitive."""
    return (one.database.lower(), one.table.lower(), one.create_time_ms, one.location) == (
        other.database.lower(),
        other.table.lower(),
        other.create_time_ms,
        other.location,
    )


@dataclass(frozen=True, slots=True)
class FileRef:
    """An immutable file of an index: name in the folder, length in bytes, and SHA-256."""

    name: str
    length: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a Delta or Iceberg table.

    Attributes:
        table: identity of the table in its log or metadata. In Delta, CREATE OR REPLACE gives the
            table a new identity.
        version: in Delta, the number of the commit, from 0. In Iceberg, the sequence number of the
            snapshot, from 1.
    """

    table: str
    version: int


Range = tuple[int, int]
"""First and last key code or hash, both inclusive."""


@dataclass(frozen=True, slots=True)
class RunFileRef(FileRef):
    """A run file and the ranges of its keys. A look-up outside these ranges does not read the file.

    Attributes:
        codes: ranges of the key codes in its segments, ascending and disjoint.
        hashes: ranges of the hashes in its maps, as signed 64-bit numbers, ascending and disjoint.
    """

    codes: tuple[Range, ...]
    hashes: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class PartRef(FileRef):
    """A Parquet file with a part of a file list, and its number of rows."""

    rows: int


@dataclass(frozen=True, slots=True)
class LocationsRef:
    """The file list of a version.

    Attributes:
        parts: the parts of the list in order; versions share parts. If several parts contain a
            path, the entry of the last such part is valid.
        count: number of files.
    """

    parts: tuple[PartRef, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RunRef:
    """One run of a version: its files and their sizes.

    Attributes:
        id: the run's identity and folder name.
        locations: number of locations that have ordinals in the run, including removed locations.
        encoder: JSON form of the key encoder of the run's codes.
        files: the run files, in order of name.
        segments: number of segments.
        blocks: number of blocks over all segments.
        keys: distinct key codes of each location, summed over locations.
        rows: number of table rows that the run covers.
        bytes: sum of the files' lengths.
    """

    id: RunId
    locations: int
    encoder: Mapping[str, object]
    files: tuple[RunFileRef, ...]
    segments: int
    blocks: int
    keys: int
    rows: int
    bytes: int


VALUE: Final = "value"
"""The kind of expected read whose ``exact`` counts the locations that contain the value itself."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected number of locations that a kind of query reads. All values are means over probes.

    Attributes:
        kind: ``present``, an equality with a key that occurs; ``absent``, an equality with a key
            that does not occur; ``range``, 0.05 % of the domain; ``value``, the same for a column
            in which several values can share a key code. In such a column, the exact numbers of
            ``present`` count rows with the key code, and the exact numbers of ``value`` count rows
            with the value.
        files: number of locations read with the index.
        exact: number of locations with a matching row, the lower bound for any index.
        minmax: number of locations read with min/max statistics of each location.
        bytes: bytes of the locations that are read with the index.
        exact_bytes: bytes of the locations with a matching row.
    """

    kind: str
    files: float
    exact: float
    minmax: float
    bytes: float
    exact_bytes: float


@dataclass(frozen=True, slots=True)
class BuildStats:
    """Statistics of the build of a version.

    Attributes:
        rows: table rows in the version's locations.
        nulls: rows that are NULL in the indexed column.
        nans: rows whose value is NaN.
        column_bytes: uncompressed bytes of the column.
        seconds: wall-clock duration of the build.
        expected: expected reads by kind of query, measured when a build last read the whole table;
            empty if the column has no key.
        files_total: number of files of the table at that measurement.
        ranges_total: number of locations at that measurement: files, and ranges of large files.
        bytes_total: bytes of these locations at that measurement.
    """

    rows: int
    nulls: int
    nans: int
    column_bytes: int
    seconds: float
    expected: tuple[Expected, ...]
    files_total: int
    ranges_total: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class CreatedBy:
    """The software that wrote a version."""

    sieve: str
    spark: str
