"""The list of locations of a version: which files, as they were when they were read."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
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
        paths = (path for path, flag in zip(self.paths, which.tolist(), strict=True) if flag)
        return Locations(tuple(paths), *(getattr(self, name)[which] for name in COLUMNS))


_NONE: Final = np.zeros(0, np.int64)
NO_LOCATIONS: Final = Locations((), _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)


def together(first: Locations, second: Locations) -> Locations:
    """The locations of both, the first ones first."""
    columns = (np.append(getattr(first, name), getattr(second, name)) for name in COLUMNS)
    return Locations((*first.paths, *second.paths), *columns)


def bytes_of(paths: tuple[str, ...]) -> int:
    """Bytes that paths take in memory."""
    return sys.getsizeof(paths) + sum(map(sys.getsizeof, paths))


def render_locations(locations: Locations, roots: Sequence[str]) -> bytes:
    """The Parquet file that keeps the list, its paths relative to the longest root that fits."""
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


def parse_locations(data: bytes, roots: Sequence[str], count: int, slots: int) -> Locations:
    """The list in a locations file.

    Args:
        data: its bytes.
        roots: what its paths are relative to.
        count: how many locations there are.
        slots: how many the version's runs have together.

    Raises:
        CorruptError: the file is not such a list, or not of so many locations.
    """
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", f"list of locations: {error}") from error
    if table.schema.remove_metadata() != _SCHEMA or table.num_rows != count:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations has another form")
    bases = [root.rstrip("/") + "/" for root in roots]
    numbers = table["root"].to_pylist()
    if any(number is None or not 0 <= number < len(bases) for number in numbers):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown root")
    paths = tuple(
        bases[number] + path
        for number, path in zip(numbers, table["path"].to_pylist(), strict=True)
    )
    listed = Locations(paths, *(table[name].to_numpy() for name in _SCHEMA.names[2:]))
    if paths and not (listed.slots.min() >= -1 and listed.slots.max() < slots):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown place")
    return listed
