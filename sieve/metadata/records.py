"""Ids and small records that several parts of Sieve pass to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NewType

IndexUuid = NewType("IndexUuid", str)
"""Identity of an index, a lower-case canonical UUID; names are only for people."""

VersionId = NewType("VersionId", str)
"""Random identity of one version, 32 hex digits: two writers of number n differ in it."""

RunId = NewType("RunId", str)
"""Random identity of one run, 32 hex digits; also the name of its folder."""

State = Literal["ready", "disabled", "dropped"]
"""What a version says of its index; a dropped one is a tombstone and has no successor."""


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """Which table an index was made for: a hint against copied properties, never a proof.

    Attributes:
        catalog: name of the Spark catalog, such as ``spark_catalog``.
        database: name of the database.
        table: name of the table.
        create_time_ms: the catalog's creation time, milliseconds since the epoch (the Hive
            metastore keeps whole seconds).
        location: absolute qualified URI of the table's folder.
    """

    catalog: str
    database: str
    table: str
    create_time_ms: int
    location: str


def identity_from(raw: Mapping[str, Any]) -> TableIdentity:
    """The identity in the form in which the driver sends it."""
    return TableIdentity(
        raw["catalog"], raw["database"], raw["table"], raw["create_time_ms"], raw["location"]
    )


def same_table(one: TableIdentity, other: TableIdentity) -> bool:
    """Whether an index of one table is an index of the other: the names without case."""
    return (one.database.lower(), one.table.lower(), one.create_time_ms, one.location) == (
        other.database.lower(),
        other.table.lower(),
        other.create_time_ms,
        other.location,
    )


@dataclass(frozen=True, slots=True)
class FileRef:
    """One immutable file of an index: its name in its folder, length in bytes, SHA-256 in hex."""

    name: str
    length: int
    sha256: str


Range = tuple[int, int]
"""First and last of some key codes or hashes, both included."""


@dataclass(frozen=True, slots=True)
class RunFileRef(FileRef):
    """A run file, and where its keys lie: a look-up elsewhere need not read it.

    Attributes:
        codes: ranges of the key codes in its segments, ascending and apart.
        hashes: likewise of the hashes in its maps, as signed 64-bit numbers.
    """

    codes: tuple[Range, ...]
    hashes: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class PartRef(FileRef):
    """A Parquet file with a part of a list of locations, and how many rows it has."""

    rows: int


@dataclass(frozen=True, slots=True)
class LocationsRef:
    """The list of a version's locations.

    Attributes:
        parts: that make it, in order; versions share them. What a part says of a path stands
            instead of what those before it say of it.
        count: how many locations there are.
    """

    parts: tuple[PartRef, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RunRef:
    """One run of a version: where its segments are and how large they are.

    Attributes:
        id: the run's identity and folder name.
        locations: how many locations its ordinals count, those included that the table has lost.
        encoder: JSON form of the key encoder that the run's codes were made with.
        files: run files, in order of name.
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


@dataclass(frozen=True, slots=True)
class Expected:
    """Files that a kind of query is expected to read, means over probes.

    Attributes:
        kind: ``present``, an equality with a key that occurs; ``absent``, with one that does not;
            ``range``, 0.05 % of the domain.
        files: with the index.
        exact: that hold a matching row, so that no index reads fewer.
        minmax: by each file's least and greatest key.
    """

    kind: str
    files: float
    exact: float
    minmax: float


@dataclass(frozen=True, slots=True)
class BuildStats:
    """What the build of a version saw and took.

    Attributes:
        rows: table rows in the version's locations.
        nulls: how many of them are NULL in the indexed column.
        nans: how many of them are NaN.
        column_bytes: uncompressed bytes of the column.
        seconds: wall-clock duration of the build.
        expected: what queries are expected to read, by kind; empty where there is no key. Measured
            when all of the table was read last.
        files_total: number of locations that it was measured over.
    """

    rows: int
    nulls: int
    nans: int
    column_bytes: int
    seconds: float
    expected: tuple[Expected, ...]
    files_total: int


@dataclass(frozen=True, slots=True)
class CreatedBy:
    """The software that wrote a version."""

    sieve: str
    spark: str
