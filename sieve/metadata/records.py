"""Shared records: the ids, file references and statistics that several modules use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NewType

IndexUuid = NewType("IndexUuid", str)
"""The unique id of an index: a canonical UUID in lower case."""

VersionId = NewType("VersionId", str)
"""The random id of one version, 32 hex digits. If two writers write the same version number, their
versions have different ids."""

RunId = NewType("RunId", str)
"""The random id of one run, 32 hex digits; the run's folder has this name."""

SESSION: Final = "spark_catalog"
"""The name of Spark's session catalog."""

State = Literal["ready", "disabled", "dropped"]
"""The state of an index, as of one version. A version with the state ``dropped`` is a tombstone: no
version follows it."""


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """Identifies the table for which an index was created.

    Sieve compares identities to detect index properties that were copied from another table. If the
    identities differ, the tables differ. Two different tables can have equal identities.

    Attributes:
        catalog: name of the table's Spark catalog, such as ``spark_catalog``.
        database: name of the database.
        table: name of the table.
        create_time_ms: the table's creation time in the catalog, in milliseconds since the epoch
            (the Hive metastore stores whole seconds). In Iceberg, the attribute is a number derived
            from the table's UUID.
        location: absolute qualified URI of the table's folder.
    """

    catalog: str
    database: str
    table: str
    create_time_ms: int
    location: str

    @property
    def namespace(self) -> str:
        """``database`` in the session catalog; ``catalog.database`` in any other catalog."""
        return self.database if self.catalog == SESSION else f"{self.catalog}.{self.database}"

    @property
    def name(self) -> tuple[str, ...]:
        """The parts of the table's name in statements, without the session catalog's name."""
        parts = (self.database, self.table)
        return parts if self.catalog == SESSION else (self.catalog, *parts)


def identity_from(raw: Mapping[str, Any]) -> TableIdentity:
    """Decodes an identity from the JSON form that the driver sends."""
    return TableIdentity(
        raw["catalog"], raw["database"], raw["table"], raw["create_time_ms"], raw["location"]
    )


def same_table(one: TableIdentity, other: TableIdentity) -> bool:
    """Returns whether two identities are of the same table; the case of names does not matter."""
    return (one.database.lower(), one.table.lower(), one.create_time_ms, one.location) == (
        other.database.lower(),
        other.table.lower(),
        other.create_time_ms,
        other.location,
    )


@dataclass(frozen=True, slots=True)
class FileRef:
    """An immutable file of an index: its name in its folder, length in bytes, and SHA-256."""

    name: str
    length: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a Delta or Iceberg table.

    Attributes:
        table: the table's id in the Delta log or in Iceberg's metadata. In Delta, CREATE OR REPLACE
            gives the table a new id.
        version: in Delta, the commit's version number, from 0. In Iceberg, the snapshot's sequence
            number, from 1.
    """

    table: str
    version: int


Range = tuple[int, int]
"""A range of key codes or of hashes: its first and its last member, both inclusive."""


@dataclass(frozen=True, slots=True)
class RunFileRef(FileRef):
    """A run file and the ranges of its keys.

    A look-up of a key outside the ranges does not read the run file.

    Attributes:
        codes: the ranges of key codes that the file's segments contain, ascending and disjoint.
        hashes: the ranges of hashes that the file's hash maps contain, as signed 64-bit numbers,
            ascending and disjoint.
        signatures: the ranges of hashes of long grams whose bits the file contains, ascending and
            disjoint.
    """

    codes: tuple[Range, ...]
    hashes: tuple[Range, ...]
    signatures: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class PartRef(FileRef):
    """A Parquet file that contains a part of a file list, and the file's number of rows."""

    rows: int


@dataclass(frozen=True, slots=True)
class LocationsRef:
    """The file list of a version.

    Attributes:
        parts: the parts of the list in order. Successive versions can share parts. If several parts
            contain a path, the last of these parts has the path's valid entry.
        count: the number of files in the merged list.
    """

    parts: tuple[PartRef, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RunRef:
    """One run of a version: its files and their sizes.

    Attributes:
        id: the run's id, which is also the name of its folder.
        locations: the number of locations that the run covers, including locations that a later
            version removed.
        encoder: the JSON form of the encoder that computed the run's key codes.
        files: the run's files, sorted by name.
        segments: the number of segments in the run.
        blocks: the total number of blocks of the run's segments.
        keys: the number of distinct key codes of each location, summed over the locations.
        rows: the number of table rows in the run's locations.
        bytes: the total length of the run's files.
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
"""The kind of query for which ``exact`` counts only the locations that contain the value itself."""


SIGNED: Final = "signature"
"""The kind of `Expected` for one bit of a signature; `files` counts the locations with this bit."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected number of locations and bytes that queries of one kind read.

    Each number is a mean over sampled queries (probes).

    Attributes:
        kind: the kind of query. ``present`` is an equality with a key of the table, ``absent`` is
            an equality with a missing key, and ``range`` is a range of 0.05 % of the domain. If
            values can share a key code, ``exact`` and ``exact_bytes`` of ``present`` count the
            locations of all rows with the value's key code. A column with shared key codes also has
            the kind ``value``, with the same queries as ``present``. For the kind ``value``,
            ``exact`` and ``exact_bytes`` count only the locations of the value itself.
        files: the number of locations that the query reads with the index.
        exact: the number of locations with a matching row, which is the lower bound for any index.
        minmax: the number of locations that the query would read with min/max statistics of each
            location.
        bytes: the total size of the locations that the query reads with the index.
        exact_bytes: the total size of the locations with a matching row.
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
        rows: the number of table rows in the version's locations.
        nulls: the number of rows whose value in the indexed column is NULL.
        nans: the number of rows whose value in the indexed column is NaN.
        column_bytes: the uncompressed size of the indexed column in bytes.
        seconds: wall-clock duration of the build.
        expected: the expected reads of each kind of query, measured when a build last read the
            whole table. The tuple is empty if all values of the column are NULL or NaN.
        files_total: the number of the table's files when ``expected`` was measured.
        ranges_total: the number of locations when ``expected`` was measured; a location is a file
            or a range of a large file.
        bytes_total: the total size of all locations when ``expected`` was measured.
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
    """The releases of Sieve and Spark that wrote a version."""

    sieve: str
    spark: str
