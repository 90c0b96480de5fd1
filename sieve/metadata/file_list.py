"""File list: the data files of a version, with their states, lengths, times and row counts.

The list is stored in parts, which a reader merges in order. A later build writes only the changed
entries, as a further part.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sieve.arrays.dtypes import Counts, States
from sieve.errors import CorruptError
from sieve.metadata.file_ranges import (
    COUNTED,
    FOOTER,
    STORED,
    FileRanges,
    concat_ranges,
    parse_ranges,
    range_lists,
    whole_files,
)
from sieve.metadata.key_bounds import STORED_BOUNDS, KeyBounds, parse_bounds, with_bounds
from sieve.metadata.path_list import PathList, concat_paths


class FileState(IntEnum):
    """The state of a file in a version.

    A stored list contains a file's length instead of the state `READ`.
    """

    READ = 0
    """The build read the whole file, and the list contains this file's length and time."""
    UNPROVEN = -1
    """The build opened the file, but every query must read it. Example: the file has no rows."""
    RACY = -2
    """The build did not read the file: its modification time was too recent or in the future."""
    REMOVED = -3
    """The version no longer contains this file. This state occurs only in parts of a list."""


_SCHEMA = pa.schema(
    [("root", pa.int32()), ("path", pa.string())]
    + [(name, pa.int64()) for name in ("length", "mtime", "rows", "nulls", "nans", "slot")]
)
_WITH_ALSO = _SCHEMA.append(pa.field("also", pa.list_(pa.int64())))
_WITH_RANGES = pa.schema(
    [*_SCHEMA, (FOOTER, pa.int64()), *((name, pa.list_(pa.int64())) for name in STORED)]
)

_FORMS: Final = (_SCHEMA, _WITH_ALSO, _WITH_RANGES)
"""The possible schemas of a stored list. The columns of `STORED_BOUNDS` can follow the columns of
each schema."""

_LISTS: Final = dict(zip(("cuts", *COUNTED), STORED, strict=True))
"""The columns with a list for each file, by short name. The list describes the file's ranges."""

MOST_ALSO: Final = 64
"""A location can be in at most this number of further runs after its first run."""

COLUMNS: Final = ("states", "lengths", "mtimes", "rows", "nulls", "nans", "slots")
"""The numeric columns of `Locations`, in order."""

_STORED: Final = ("stored_lengths", "mtimes", "rows", "nulls", "nans", "slots")
"""The numeric columns of a part."""


@dataclass(frozen=True, slots=True, eq=False)
class Locations:
    """The files of a version; each column has one entry per file, in the same order of files.

    A file is either one location, or consists of several ranges, each of which is a location.

    Attributes:
        paths: the files' absolute qualified paths, as Spark's listing writes them.
        states: int8[n], the `FileState` of each file. Queries always read files whose state is not
            `READ`.
        lengths: int64[n], the size in bytes of each file in the state `READ`; 0 for any other file.
        mtimes: int64[n], the files' modification times, ms since the epoch.
        rows: int64[n], the number of rows of each file.
        nulls: int64[n], the number of each file's rows whose value is NULL.
        nans: int64[n], the number of each file's rows whose value is NaN.
        slots: int64[n], the position of each file among the concatenated locations of all runs. The
            ranges of a file have consecutive positions; the slot is the position of the first
            range. A file without keys is in no run, so its slot is -1.
        also: int64[n, k], the positions of each location in further runs, padded with -1. A further
            run contains rows that were appended to the location after the first run was built. None
            if no location is in a further run.
        ranges: the ranges of the files, or None if each file is one location. If `ranges` is set,
            `also` is None.
        bounds: the key bounds of the m locations, or None if all bounds are unknown.
    """

    paths: Sequence[str]
    states: States
    lengths: Counts
    mtimes: Counts
    rows: Counts
    nulls: Counts
    nans: Counts
    slots: Counts
    also: Counts | None = None
    ranges: FileRanges | None = None
    bounds: KeyBounds | None = None

    @property
    def path_list(self) -> PathList:
        """The paths of the files, as a `PathList`."""
        return PathList.of(self.paths)

    @property
    def every_range(self) -> FileRanges:
        """The ranges of all files; a file that is one location counts as one range."""
        return self.ranges or whole_files(self.rows, self.nulls, self.nans)

    @property
    def range_slots(self) -> Counts:
        """The position of each range, int64[m]; -1 if no run contains the range's file."""
        if self.ranges is None:
            return self.slots
        first = np.repeat(self.slots - self.ranges.firsts, self.ranges.counts)
        slots: Counts = first + np.arange(len(first))
        if self.slots.min(initial=0) < 0:
            slots[np.repeat(self.slots < 0, self.ranges.counts)] = -1
        return slots

    @property
    def range_counts(self) -> Counts:
        """The number of ranges of each file, int64[n]."""
        return np.ones(len(self.paths), np.int64) if self.ranges is None else self.ranges.counts

    @property
    def key_bounds(self) -> KeyBounds:
        """The bounds of the m locations. If `bounds` is None, all bounds are unknown."""
        return self.bounds or KeyBounds.unknown(int(self.range_counts.sum()))

    @property
    def stored_lengths(self) -> Counts:
        """The length of each file in the state `READ`, and the state of other files, int64[n]."""
        return np.where(self.states == FileState.READ, self.lengths, self.states).astype(np.int64)

    @property
    def places(self) -> Counts:
        """All positions of each location in the runs, int64[n, 1 + k], padded with -1."""
        slots = self.slots[:, np.newaxis]
        return slots if self.also is None else np.hstack([slots, self.also])

    @property
    def all_rows(self) -> npt.NDArray[np.bool_]:
        """Whether the index contains all rows of each location, including hidden rows, bool[n].

        The flag is true for a location with several positions. A location gets a second position
        only if every build read all rows that the location had at that time.
        """
        several: npt.NDArray[np.bool_] = np.count_nonzero(self.places >= 0, axis=1) > 1
        return several

    def at_places(self, places: Counts) -> Locations:
        """Returns a copy of the list with the positions ``places`` (see the property)."""
        slots, also = places[:, 0], places[:, 1:]
        return replace(self, slots=slots, also=also if also.size else None)

    def chosen(self, which: npt.NDArray[np.bool_]) -> Locations:
        """Returns the files whose flag in ``which``, bool[n], is true."""
        if which.all():
            return self
        paths = self.path_list.chosen(which)
        columns = (getattr(self, name)[which] for name in COLUMNS)
        also = None if self.also is None else self.also[which]
        ranges = None if self.ranges is None else self.ranges.chosen(which)
        bounds = self.bounds and self.bounds.chosen(np.repeat(which, self.range_counts))
        return replace(_of_columns(paths, columns), also=also, ranges=ranges, bounds=bounds)


_NONE: Final = np.zeros(0, np.int64)
NO_LOCATIONS: Final = Locations((), _NONE.astype(np.int8), _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)


def _of_columns(paths: Sequence[str], columns: Iterable[Counts]) -> Locations:
    """Makes a list from paths and the columns named in `COLUMNS`."""
    states, lengths, mtimes, rows, nulls, nans, slots = columns
    return Locations(paths, states.astype(np.int8), lengths, mtimes, rows, nulls, nans, slots)


def concat(*lists: Locations) -> Locations:
    """Concatenates file lists, in the order of ``lists``."""
    some = (NO_LOCATIONS, *lists)
    columns = (np.concatenate([getattr(one, name) for one in some]) for name in COLUMNS)
    paths = concat_paths([one.path_list for one in lists])
    also = [_none_also(len(one.paths)) if one.also is None else one.also for one in lists]
    several = _stacked(also) if any(one.size for one in also) else None
    ranges = None
    if any(one.ranges is not None for one in lists):
        ranges = concat_ranges([one.every_range for one in lists])
    bounds = None
    if any(one.bounds is not None for one in lists):
        bounds = KeyBounds.concat([one.key_bounds for one in lists])
    return replace(_of_columns(paths, columns), also=several, ranges=ranges, bounds=bounds)


def _none_also(n: int) -> Counts:
    return np.zeros((n, 0), np.int64)


def _stacked(lists: Sequence[Counts]) -> Counts:
    """Stacks tables vertically; pads each table with -1 to the width of the widest table."""
    width = max(one.shape[1] for one in lists)
    return np.vstack([_widened(one, width) for one in lists])


def _widened(also: Counts, width: int) -> Counts:
    return np.pad(also, ((0, 0), (0, width - also.shape[1])), constant_values=-1)


def merge(parts: Sequence[Locations]) -> Locations:
    """Merges parts to one list; if several parts contain a path, the last entry is valid."""
    latest: list[Locations] = []
    later: list[PathList] = []
    for part in reversed(parts):
        paths = part.path_list
        last = ~paths.within(concat_paths(later)) if later else np.ones(len(paths), np.bool_)
        latest.append(part.chosen(last & (part.states != FileState.REMOVED)))
        later.append(paths)
    return latest[0] if len(latest) == 1 else concat(*reversed(latest))


def diff(before: Locations, now: Locations) -> Locations:
    """Returns the part to merge after ``before`` to get the files of ``now``, in any order."""
    was, paths = before.path_list, now.path_list
    place = paths.places_in(was)
    # If two partitions share a folder, Spark lists each file of the folder twice. For a file that
    # is listed twice, a part must contain both entries or neither.
    place[paths.within(concat_paths([was.repeated(), paths.repeated()]))] = -1
    same = place >= 0
    for name in COLUMNS:
        same[same] = getattr(before, name)[place[same]] == getattr(now, name)[same]
    if before.also is not None or now.also is not None:
        width = max(before.places.shape[1], now.places.shape[1])
        then, are = _widened(before.places, width), _widened(now.places, width)
        same[same] = (then[place[same]] == are[same]).all(axis=1)
    if before.ranges is not None or now.ranges is not None:
        left = np.flatnonzero(same)
        same[left] = now.every_range.same(left, before.every_range, place[left])
    if before.bounds is not None or now.bounds is not None:
        left = np.flatnonzero(same)
        counts, there = now.range_counts[left], before.every_range.positions(place[left])
        here = now.key_bounds.chosen(now.every_range.positions(left))
        same[left] = here.same(before.key_bounds.chosen(there), counts)
    lost = before.chosen(~was.within(paths))
    gone = replace(lost, states=states_of(len(lost.paths), FileState.REMOVED))
    return concat(now.chosen(~same), gone)


def states_of(n: int, state: FileState = FileState.READ) -> States:
    """Returns the states of n files that all have the same state, int8[n]."""
    return np.full(n, state, np.int8)


def render_locations(locations: Locations, roots: Sequence[str]) -> bytes:
    """Encodes a part of a list as Parquet; each path is relative to the longest root above it."""
    order = sorted(range(len(roots)), key=lambda k: -len(roots[k]))
    places = [_relative(path, roots, order) for path in locations.paths]
    columns = [
        pa.array([root for root, _ in places], pa.int32()),
        pa.array([path for _, path in places], pa.string()),
        *(pa.array(getattr(locations, name), pa.int64()) for name in _STORED),
    ]
    schema, encodings = _SCHEMA, {}
    if locations.also is not None:
        if locations.ranges is not None:
            raise ValueError("a list has ranges, or files in several runs, never both")
        columns, schema = [*columns, _lists(locations.also)], _WITH_ALSO
    elif locations.ranges is not None and len(locations.ranges.starts) > len(locations.paths):
        footers = pa.array(locations.ranges.footers, pa.int64())
        columns, schema = [*columns, footers, *range_lists(locations.ranges)], _WITH_RANGES
        # Offsets of a file's ranges ascend, and their row counts are similar, so the difference
        # between two neighbouring numbers takes only a few bits.
        encodings = {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in STORED}
        encodings[FOOTER] = "DELTA_BINARY_PACKED"
    if (bounds := locations.bounds) is not None and bounds.known.any():
        columns, schema = columns + bounds.lists(locations.range_counts), with_bounds(schema)
        encodings |= {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in STORED_BOUNDS}
    sink = io.BytesIO()
    pq.write_table(
        pa.table(columns, schema=schema),
        sink,
        compression="zstd",
        use_dictionary=list(_SCHEMA.names),
        column_encoding=encodings or None,
    )
    return sink.getvalue()


def _lists(also: Counts) -> pa.ListArray:
    """Returns, for each row of ``also``, the list of the values that are not -1."""
    there = also >= 0
    ends = np.append(0, np.cumsum(there.sum(axis=1)))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(also[there], pa.int64()))


def _table(lists: pa.ListArray) -> Counts:
    """The inverse of `_lists`; raises ValueError if a list is too long or contains a null."""
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    width = int(lengths.max(initial=0))
    values = lists.flatten()
    if width > MOST_ALSO or values.null_count:
        raise ValueError("a location has too many places")
    also = np.full((len(lists), width), -1, np.int64)
    also[np.arange(width) < lengths[:, np.newaxis]] = values.to_numpy()
    return also


def _relative(path: str, roots: Sequence[str], order: Sequence[int]) -> tuple[int, str]:
    for k in order:
        prefix = roots[k].rstrip("/") + "/"
        if path.startswith(prefix):
            return k, path[len(prefix) :]
    raise ValueError(f"{path} lies below none of {list(roots)}")


def parse_locations(data: bytes, roots: Sequence[str], rows: int) -> Locations:
    """Decodes a part of a file list.

    Args:
        data: the bytes of the part.
        roots: the folders to which the part's paths are relative.
        rows: the part's number of rows, as in the manifest.

    Raises:
        CorruptError: the bytes are not a part of a list, or the part has another number of rows.
    """
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        schema = file.schema_arrow.remove_metadata()
        form = next((f for f in _FORMS if schema in (f, with_bounds(f))), None)
        if form is None or file.metadata.num_rows != rows:
            raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations has another form")
        table = _read(file, [name for name in schema.names if name not in STORED])
        also = _table(table["also"].combine_chunks()) if "also" in schema.names else None
        stored, *columns = (table[name].to_numpy() for name in _SCHEMA.names[2:])
        lengths = np.maximum(stored, 0)
        ranges = None
        if form == _WITH_RANGES:
            # A count that is 0 in all files is 0 in all ranges, so the function skips its lists.
            # Decoding lists takes most of the time of this function.
            some = ["cuts", *(name for name in COUNTED if table[name].to_numpy().any())]
            read = _read(file, [stored for name, stored in _LISTS.items() if name in some])
            lists = {name: read[_LISTS[name]].combine_chunks() for name in some}
            ends = np.where(stored < 0, np.iinfo(np.int64).max, stored)
            ranges = parse_ranges(lists, table[FOOTER].to_numpy(), ends, columns[1:4])
        bounds = None
        if schema != form:
            counts = np.ones(rows, np.int64) if ranges is None else ranges.counts
            bounds = parse_bounds(table, counts)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", f"list of locations: {error}") from error
    bases = [root.rstrip("/") + "/" for root in roots]
    numbers = table["root"].combine_chunks()
    of = numbers.to_numpy()
    if of.min(initial=0) < 0 or of.max(initial=-1) >= len(bases):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown root")
    named = table["path"].combine_chunks().cast(pa.large_string())
    folders = pa.array(bases, pa.large_string()).take(numbers)
    paths = PathList(pc.binary_join_element_wise(folders, named, pa.scalar("", pa.large_string())))
    if stored.min(initial=0) < min(FileState):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations has an unknown state")
    states = np.minimum(stored, FileState.READ)
    if also is not None and not also.size:
        also = None
    listed = _of_columns(paths, (states, lengths, *columns))
    return replace(listed, also=also, ranges=ranges, bounds=bounds)


def _read(file: pq.ParquetFile, names: Sequence[str]) -> pa.Table:
    """Reads the columns ``names``; raises CorruptError if a value is missing."""
    table = file.read(names)
    if any(column.null_count for column in table.columns):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations has another form")
    return table


def check_list(listed: Locations, number: int, slots: int) -> None:
    """Raises CorruptError unless a list has ``number`` paths with positions below ``slots``."""
    if len(listed.paths) != number:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", f"list is not of {number} locations")
    last = max(listed.places.max(initial=-1), listed.range_slots.max(initial=-1))
    if number and not (listed.places.min() >= -1 and last < slots):
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown place")
