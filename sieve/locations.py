"""The list of locations of a version: which files, as they were when they were read.

It is stored in parts, one laid over the other, so that a version writes what it changes.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, count
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sieve.errors import CorruptError

Counts = npt.NDArray[np.int64]

UNPROVEN: Final = -1
"""In place of a length: the file was read and proves nothing, such as one without rows."""

UNSETTLED: Final = -2
"""In place of a length: the file was too young, or of a time to come, to be read at all."""

GONE: Final = -3
"""In place of a length, in a part of a list: the version has no such location any more."""

_SCHEMA = pa.schema(
    [("root", pa.int32()), ("path", pa.string())]
    + [(name, pa.int64()) for name in ("length", "mtime", "rows", "nulls", "nans", "slot")]
)

COLUMNS: Final = ("lengths", "mtimes", "rows", "nulls", "nans", "slots")
"""The columns of numbers of `Locations`, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class Locations:
    """All locations of a version; a location's ordinal is its place in these columns.

    Attributes:
        paths: absolute qualified paths, as Spark's listing writes them.
        lengths: int64[n], bytes; `UNPROVEN` or `UNSETTLED` for a file that is always read.
        mtimes: int64[n], modification times, ms since the epoch.
        rows: int64[n], rows of the file.
        nulls: int64[n], rows whose value is NULL.
        nans: int64[n], rows whose value is NaN.
        slots: int64[n], place among the locations of all the version's runs, laid end to end; -1
            for a file of no run, which has no keys.
    """

    paths: tuple[str, ...]
    lengths: Counts
    mtimes: Counts
    rows: Counts
    nulls: Counts
    nans: Counts
    slots: Counts

    @property
    def nbytes(self) -> int:
        """Bytes that the list takes in memory."""
        columns: list[Counts] = [getattr(self, name) for name in COLUMNS]
        return bytes_of(self.paths) + sum(column.nbytes for column in columns)

    def chosen(self, which: npt.NDArray[np.bool_]) -> Locations:
        """Those that are flagged, bool[n]."""
        paths = tuple(compress(self.paths, which.tolist()))
        return Locations(paths, *(getattr(self, name)[which] for name in COLUMNS))


_NONE: Final = np.zeros(0, np.int64)
NO_LOCATIONS: Final = Locations((), _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)


def together(*lists: Locations) -> Locations:
    """The locations of all, those of the first list first."""
    columns = (np.concatenate([_NONE, *(getattr(one, name) for one in lists)]) for name in COLUMNS)
    return Locations(tuple(chain.from_iterable(one.paths for one in lists)), *columns)


def laid_over(parts: Sequence[Locations]) -> Locations:
    """The list that parts make: of each path what the last part says that has it."""
    told: list[Locations] = []
    later: set[str] = set()
    for part in reversed(parts):
        last = np.array([path not in later for path in part.paths], np.bool_)
        told.append(part.chosen(last & (part.lengths != GONE)))
        if part is not parts[0]:
            # Of the first, which is the longest, nobody asks.
            later.update(part.paths)
    return together(*reversed(told))


def what_differs(before: Locations, now: Locations) -> Locations:
    """The part that makes one list another when it is laid over it; the order aside."""
    places = dict(zip(before.paths, count(), strict=False))
    # Spark lists a file twice whose folder two partitions have: a part tells all of it or nothing.
    for path in _repeated(before.paths) | _repeated(now.paths):
        places.pop(path, None)
    place = np.array([places.get(path, -1) for path in now.paths], np.int64)
    same = place >= 0
    for name in COLUMNS:
        same[same] = getattr(before, name)[place[same]] == getattr(now, name)[same]
    there = set(now.paths)
    lost = before.chosen(np.array([path not in there for path in before.paths], np.bool_))
    return together(now.chosen(~same), replace(lost, lengths=np.full_like(lost.lengths, GONE)))


def _repeated(paths: Sequence[str]) -> set[str]:
    if len(set(paths)) == len(paths):
        return set()
    return {path for path, times in Counter(paths).items() if times > 1}


def bytes_of(paths: tuple[str, ...]) -> int:
    """Bytes that paths take in memory."""
    return sys.getsizeof(paths) + sum(map(sys.getsizeof, paths))


def render_locations(locations: Locations, roots: Sequence[str]) -> bytes:
    """The Parquet file of a part of a list, its paths relative to the longest root that fits."""
    order = sorted(range(len(roots)), key=lambda k: -len(roots[k]))
    places = [_relative(path, roots, order) for path in locations.paths]
    table = pa.table(
        [
            pa.array([root for root, _ in places], pa.int32()),
            pa.array([path for _, path in places], pa.string()),
            *(pa.array(getattr(locations, name), pa.int64()) for name in COLUMNS),
        ],
        schema=_SCHEMA,
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _relative(path: str, roots: Sequence[str], order: Sequence[int]) -> tuple[int, str]:
    for k in order:
        prefix = roots[k].rstrip("/") + "/"
        if path.startswith(prefix):
            return k, path[len(prefix) :]
    raise ValueError(f"{path} lies below none of {list(roots)}")


def parse_locations(data: bytes, roots: Sequence[str], rows: int) -> Locations:
    """The part of a list in a locations file.

    Args:
        data: its bytes.
        roots: what its paths are relative to.
        rows: how many it has.

    Raises:
        CorruptError: the file is not such a part, or not of so many rows.
    """
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", f"list of locations: {error}") from error
    empty = any(column.null_count for column in table.columns)
    if empty or table.schema.remove_metadata() != _SCHEMA or table.num_rows != rows:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations has another form")
    bases = [root.rstrip("/") + "/" for root in roots]
    numbers = table["root"].to_pylist()
    if not all(0 <= number < len(bases) for number in numbers):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown root")
    paths = tuple(
        bases[number] + path
        for number, path in zip(numbers, table["path"].to_pylist(), strict=True)
    )
    return Locations(paths, *(table[name].to_numpy() for name in _SCHEMA.names[2:]))


def check_list(listed: Locations, number: int, slots: int) -> None:
    """Raise CorruptError unless a list has ``number`` locations, all in the version's ``slots``."""
    if len(listed.paths) != number:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", f"list is not of {number} locations")
    if number and not (listed.slots.min() >= -1 and listed.slots.max() < slots):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown place")
