"""The files that a table's indexes know, in one numbering, and asking an index in it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.errors import SieveError
from sieve.keys import Encoder
from sieve.locations import bytes_of
from sieve.manifest import Manifest
from sieve.opened import OpenIndex
from sieve.requirements import Requirement
from sieve.types import VersionId

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
    """The files that versions of a table's indexes know, each once, and where each has them."""

    paths: tuple[str, ...]
    lengths: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    all_rows: Flags
    """Of which all versions that know them know all that was ever written there."""
    places: Mapping[VersionId, npt.NDArray[np.int64]]
    """By version: for each file of the table its ordinal there, -1 where it is unknown."""

    @property
    def nbytes(self) -> int:
        """Bytes that the list takes in memory."""
        arrays = (self.lengths, self.times, self.all_rows, *self.places.values())
        return bytes_of(self.paths) + sum(array.nbytes for array in arrays)


@dataclass(frozen=True, slots=True, eq=False)
class OverTable:
    """A version of an index, asked in the numbering of the whole table."""

    index: OpenIndex
    places: npt.NDArray[np.int64]

    @property
    def encoder(self) -> Encoder:
        """How the index codes the values of its column."""
        return self.index.encoder

    @property
    def null_proof(self) -> bool:
        """Whether NULL counts hold for every query."""
        return self.index.null_proof

    def keep(self, requirement: Requirement) -> Flags:
        """bool[n]: which of the table's files may hold a value that is asked for.

        Raises:
            UnreadableIndexError: a file that the answer lies in cannot be read.
        """
        with _blaming(self.index):
            found = self.index.keep(requirement)
        # The extra last place stands for files the index does not know: they are kept.
        return np.append(found, True)[self.places]


def newest_first(indexes: Sequence[OpenIndex]) -> tuple[OpenIndex, ...]:
    """The order in which indexes are united."""
    return tuple(sorted(indexes, key=lambda i: (i.manifest.instant, i.manifest.id), reverse=True))


def dictionary_id(indexes: Sequence[OpenIndex]) -> str:
    """The identity of what `unite` makes of these indexes, 64 hex digits."""
    ids = json.dumps([index.manifest.id for index in indexes])
    return hashlib.sha256(ids.encode()).hexdigest()


def unite(indexes: Sequence[OpenIndex]) -> TableFiles:
    """The files of several indexes, newest index first: where two differ on a file, it wins.

    Raises:
        UnreadableIndexError: the list of an index cannot be read.
    """
    lists = []
    for index in indexes:
        with _blaming(index):
            lists.append(index.locations())
    numbers: dict[str, int] = {}
    facts: list[tuple[int, int]] = []
    for where in lists:
        for path, length, mtime in zip(
            where.paths, where.lengths.tolist(), where.mtimes.tolist(), strict=True
        ):
            if path not in numbers:
                numbers[path] = len(facts)
                facts.append((length, mtime))
    lengths, times = np.array(facts, np.int64).reshape(-1, 2).T
    all_rows = np.ones(len(facts), np.bool_)
    places: dict[VersionId, npt.NDArray[np.int64]] = {}
    for index, where in zip(indexes, lists, strict=True):
        number = np.fromiter(map(numbers.__getitem__, where.paths), np.int64, len(where.paths))
        same = (lengths[number] == where.lengths) & (times[number] == where.mtimes)
        place = np.full(len(facts), -1, np.int64)
        place[number[same]] = np.flatnonzero(same)
        all_rows[number[same & ~where.all_rows]] = False
        places[index.manifest.id] = place
    return TableFiles(tuple(numbers), lengths, times, all_rows, places)
