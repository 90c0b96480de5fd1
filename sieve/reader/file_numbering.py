"""The files that a table's indexes know, in one numbering, and asking an index in it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.encoding.encoder import Encoder
from sieve.errors import SieveError
from sieve.metadata.file_list import bytes_of
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import VersionId
from sieve.predicate.key_ranges import Requirement
from sieve.reader.version_reader import OpenIndex

Flags = npt.NDArray[np.bool_]


class UnreadableIndexError(Exception):
    """An index could not answer: which one, and, as the cause, why."""

    def __init__(self, manifest: Manifest, cause: SieveError) -> None:
        super().__init__(manifest, cause)
        self.manifest = manifest
        self.cause = cause


@contextlib.contextmanager
def _blaming(index: OpenIndex) -> Iterator[None]:
    try:
        yield
    except SieveError as error:
        raise UnreadableIndexError(index.manifest, error) from error


@dataclass(frozen=True, slots=True, eq=False)
class TableFiles:
    """The files that versions of a table's indexes know, and where each has them.

    A path is there once for each length and time that some version has it with.
    """

    paths: tuple[str, ...]
    lengths: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    places: Mapping[VersionId, npt.NDArray[np.int64]]
    """By version: for each file of the table its ordinal there, -1 where it is unknown."""

    @property
    def nbytes(self) -> int:
        """Bytes that the list takes in memory."""
        arrays = (self.lengths, self.times, *self.places.values())
        return bytes_of(self.paths) + sum(array.nbytes for array in arrays)


@dataclass(frozen=True, slots=True, eq=False)
class OverTable:
    """Versions of an index that code values alike, asked in the numbering of the whole table.

    Attributes:
        versions: one or more; what one of them rules out is ruled out.
        files: the numbering.
        in_part: whether rows may be seen that are hidden from other queries.
    """

    versions: tuple[OpenIndex, ...]
    files: TableFiles
    in_part: bool

    @property
    def encoder(self) -> Encoder:
        """How the index codes the values of its column."""
        return self.versions[0].encoder

    @property
    def null_proof(self) -> bool:
        """Whether NULL counts hold for every query."""
        return all(version.null_proof for version in self.versions)

    def keep(self, requirement: Requirement) -> Flags:
        """bool[n]: which of the table's files may hold a value that is asked for.

        Raises:
            UnreadableIndexError: a file that the answer lies in cannot be read.
        """
        keep = np.ones(len(self.files.paths), np.bool_)
        for version in self.versions:
            with _blaming(version):
                found = version.keep(requirement)
                if self.in_part:
                    found |= ~version.locations().all_rows
            keep &= self._of_table(version, found, unknown=True)
        return keep

    def knows_all_rows(self) -> Flags:
        """bool[n]: of which files some version knows the rows that are hidden, too.

        Raises:
            UnreadableIndexError: the list of a version cannot be read.
        """
        knows = np.zeros(len(self.files.paths), np.bool_)
        for version in self.versions:
            with _blaming(version):
                all_rows = version.locations().all_rows
            knows |= self._of_table(version, all_rows, unknown=False)
        return knows

    def _of_table(self, version: OpenIndex, flags: Flags, *, unknown: bool) -> Flags:
        # The extra last place stands for files that the version does not know.
        return np.append(flags, unknown)[self.files.places[version.manifest.id]]


def in_order(indexes: Iterable[OpenIndex]) -> tuple[OpenIndex, ...]:
    """The order in which indexes are united."""
    return tuple(sorted(indexes, key=lambda index: index.manifest.id))


def dictionary_id(indexes: Sequence[OpenIndex]) -> str:
    """The identity of what `unite` makes of these indexes, 64 hex digits."""
    ids = json.dumps([index.manifest.id for index in indexes])
    return hashlib.sha256(ids.encode()).hexdigest()


def unite(indexes: Sequence[OpenIndex]) -> TableFiles:
    """The files of several versions, of one index or more.

    Raises:
        UnreadableIndexError: the list of an index cannot be read.
    """
    numbers: dict[tuple[str, int, int], int] = {}
    own: dict[VersionId, npt.NDArray[np.int64]] = {}
    for index in indexes:
        with _blaming(index):
            where = index.locations()
        facts = zip(where.paths, where.lengths.tolist(), where.mtimes.tolist(), strict=True)
        number = (numbers.setdefault(fact, len(numbers)) for fact in facts)
        own[index.manifest.id] = np.fromiter(number, np.int64, len(where.paths))
    lengths, times = np.array([fact[1:] for fact in numbers], np.int64).reshape(-1, 2).T
    places = {version: _inverse(number, len(numbers)) for version, number in own.items()}
    return TableFiles(tuple(path for path, _, _ in numbers), lengths, times, places)


def _inverse(number: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """int64[n]: where each number stands, -1 where it does not."""
    place = np.full(n, -1, np.int64)
    place[number] = np.arange(len(number))
    return place
