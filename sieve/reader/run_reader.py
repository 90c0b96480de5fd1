"""Run reader: looks up keys in a run. Reads, decodes and caches only files that look-ups need.

As in an LSM tree, a run's files never change, and several versions can share them. Before the
reader first uses a file, it compares the file's length and SHA-256 with the manifest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from sieve.arrays.dtypes import CodeIntervals, Codes, Flags, Hashes, Integers
from sieve.arrays.interval_set import meeting, merge
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import CorruptError, SieveError
from sieve.metadata.paths import run_file
from sieve.metadata.records import Range, RunRef
from sieve.reader.entry_table import Chunk
from sieve.reader.lru_cache import FileCache
from sieve.reader.packed_chunk import PackedChunk
from sieve.reader.run_file import RunFile, parse_run_file
from sieve.reader.verified_file import verified
from sieve.segments.entries import Ends
from sieve.storage.interface import Reader

_DECODED: Final = 6
"""The decoded entries of a long segment have at least this many bytes for each stored byte."""

_MANY: Final = 2
"""If a look-up in a large run needs more than the fraction ``1 / _MANY`` of a file's chunks, it
decodes the whole file as one chunk."""


class Run:
    """A run of a version. A look-up reads and decodes only files that can contain the wanted keys.

    If a file is unreadable, only the look-ups that need the file fail. The reader keeps the error.
    Until a call of `retry`, later look-ups raise the same error and do not read the file again.

    Args:
        run: the manifest's record of the run.
        cache: keeps run files and decoded chunks in memory.
    """

    def __init__(self, store: Reader, index_dir: str, run: RunRef, cache: FileCache) -> None:
        self._store = store
        self._files = run.files
        self._uris = [run_file(index_dir, run.id, file) for file in run.files]
        self._n_locations = run.locations
        self._cache = cache
        self._codes = _Ranges([file.codes for file in run.files])
        self._hashes = _Ranges([file.hashes for file in run.files])
        self._signatures = _Ranges([file.signatures for file in run.files])
        self._decoded_bytes = self.entry_bytes * _DECODED
        self._failed: dict[int, SieveError] = {}

    @property
    def has_maps(self) -> bool:
        """Whether the run has hash maps, in which look-ups can find single keys."""
        return len(self._hashes.first) > 0

    @property
    def span(self) -> Range:
        """A range of codes that includes all keys.

        If there is no key, the range is empty: its first code is above its last.
        """
        return self._codes.span

    def locations_in(self, intervals: CodeIntervals) -> Flags:
        """Returns the locations that can contain a key in at least one of the intervals.

        Args:
            intervals: int64[k, 2], first and last key code of each interval, both included, in any
                order. An interval whose first code is above its last is empty.

        Returns:
            bool[locations of the run]: True for all locations with a key in the intervals, and
            possibly for other locations. A more precise index has fewer false positives: locations
            without a key in the intervals.

        Raises:
            CorruptError: a file contradicts the manifest.
            UnavailableError: the store cannot read a file. The subclass GoneError means that the
                file does not exist.
            UnsupportedError: a later release of Sieve wrote the file.
        """
        wanted = merge(intervals)
        found = np.zeros(self._n_locations, np.bool_)
        for number in self._codes.files_of(wanted):
            if self._is_large() and self._cache.peek(self._whole_key(number)) is not None:
                self._whole(number).mark(wanted, found)
                continue
            file = self._file(number)
            start, stop = meeting(wanted, file.first, file.last)
            meets = np.flatnonzero(start < stop).tolist()
            if len(meets) * _MANY > len(start) > 1 and self._is_large():
                self._whole(number).mark(wanted, found)
                continue
            for k in meets:
                self._chunk(number, file, k).mark(wanted[start[k] : stop[k]], found)
        return found

    def locations_of(self, hashes: Hashes) -> Flags:
        """Returns the locations that can contain a key with one of the hashes. Requires hash maps.

        Args:
            hashes: uint64[q], hashes of keys, in any order.

        Returns:
            bool[locations of the run]. The method raises the errors of `locations_in`.
        """
        found = np.zeros(self._n_locations, np.bool_)
        for number in self._hashes.files_of(_points(np.sort(hashes.view(np.int64)))):
            for one in self._file(number).maps:
                self._check(number, one.n_locations)
                found[: one.n_locations] |= one.locations_of(hashes)
        return found

    def locations_signed(self, hashes: Integers) -> Flags:
        """Returns the locations whose signatures have the bits of all hashes.

        If the run has no signature for a location, the result includes the location.

        Args:
            hashes: int64[q], hashes of long grams, in any order.

        Returns:
            bool[locations of the run]. The method raises the errors of `locations_in`.
        """
        found = np.ones(self._n_locations, np.bool_)
        for value in np.unique(hashes).tolist():
            for number in self._signatures.files_of(np.array([[value, value]], np.int64)):
                for one in self._file(number).signatures:
                    if one.first <= value <= one.last:
                        self._check(number, one.n_locations)
                        found[: one.n_locations] &= one.locations_with(value)
        return found

    def locations_in_each(self, intervals: CodeIntervals) -> Flags:
        """Returns for each interval the locations that can contain a key in this interval.

        The method decodes each chunk of the run only once.

        Args:
            intervals: int64[k, 2], as in `locations_in`.

        Returns:
            bool[k, locations of the run]. The method raises the errors of `locations_in`.
        """
        found = np.zeros((len(intervals), self._n_locations), np.bool_)
        for number in self._codes.files_of(merge(intervals)):
            file = self._file(number)
            for k, (first, last) in enumerate(zip(file.first, file.last, strict=True)):
                meets = (intervals[:, 0] <= last) & (intervals[:, 1] >= first)
                if meets.any():
                    chunk = self._chunk(number, file, k)
                    for wanted in np.flatnonzero(meets).tolist():
                        chunk.mark(merge(intervals[wanted : wanted + 1]), found[wanted])
        return found

    def locations_of_each(self, hashes: Hashes) -> Flags:
        """Returns for each hash the locations that can contain a key with this hash.

        Requires hash maps.

        Args:
            hashes: uint64[q], hashes of keys, in any order.

        Returns:
            bool[q, locations of the run]. The method raises the errors of `locations_in`.
        """
        found = np.zeros((len(hashes), self._n_locations), np.bool_)
        for number in self._hashes.files_of(_points(np.sort(hashes.view(np.int64)))):
            for one in self._file(number).maps:
                self._check(number, one.n_locations)
                found[one.matches(hashes)] = True
        return found

    def holds_codes(self, codes: Codes, location: int) -> Flags:
        """Returns for each code whether `locations_in` finds the location for this code alone.

        Args:
            codes: int64[k], distinct and ascending.
            location: the ordinal of a location in the run.

        Returns:
            bool[k]; raises the errors of `locations_in`.
        """
        may_hold = np.zeros(len(codes), np.bool_)
        points = _points(codes)
        for number in self._codes.files_of(points):
            file = self._file(number)
            start, stop = meeting(points, file.first, file.last)
            for k in np.flatnonzero(start < stop).tolist():
                part = slice(start[k], stop[k])
                may_hold[part] |= self._chunk(number, file, k).holds(codes[part], location)
        return may_hold

    def holds_hashes(self, hashes: Hashes, location: int) -> Flags:
        """Returns for each hash whether `locations_of` finds the location for this hash alone.

        Args:
            hashes: uint64[q], distinct. Interpreted as signed numbers, the hashes are ascending.
            location: the ordinal of a location in the run.

        Returns:
            bool[q]; raises the errors of `locations_in`.
        """
        may_hold = np.zeros(len(hashes), np.bool_)
        for number in self._hashes.files_of(_points(hashes.view(np.int64))):
            for one in self._file(number).maps:
                self._check(number, one.n_locations)
                may_hold |= one.holds(hashes, location)
        return may_hold

    @property
    def entry_bytes(self) -> int:
        """Total size of the files that `ends` reads, in bytes."""
        return sum(file.length for file in self._files if file.codes)

    def ends(self) -> Iterator[Ends]:
        """Yields the `Ends` of each segment of the run.

        Raises the errors of `locations_in`.
        """
        for number, ref in enumerate(self._files):
            if ref.codes:
                file = self._file(number)
                with self._remembered(number):
                    for segment in file.ends():
                        self._check(number, int(segment.location.max()) + 1)
                        yield segment

    def retry(self) -> None:
        """Tries again to read the files that were unreadable."""
        for number in tuple(self._failed):
            # Until this read succeeds, other look-ups raise the cached error and do not wait for
            # the read.
            with contextlib.suppress(SieveError):
                self._read(number)
                self._failed.pop(number, None)

    def _file(self, number: int) -> RunFile:
        with self._remembered(number):
            return self._read(number)

    def _read(self, number: int) -> RunFile:
        ref, uri = self._files[number], self._uris[number]
        file: RunFile = self._cache.get(
            (uri, ref.sha256), lambda: parse_run_file(verified(self._store, uri, ref), ref)
        )
        return file

    def _is_large(self) -> bool:
        """Returns whether a cache exists and is too small for all decoded entries of the run."""
        # Packed chunks have no advantage without a cache.
        return 0 < (self._cache.max_bytes or 0) < self._decoded_bytes

    def _chunk(self, number: int, file: RunFile, k: int) -> Chunk | PackedChunk:
        """Returns one decoded chunk of a file."""
        key = (self._uris[number], self._files[number].sha256, k)
        decode = file.packed if self._is_large() else file.decoded
        with self._remembered(number):
            chunk: Chunk | PackedChunk = self._cache.get(key, lambda: decode(k))
        self._check(number, chunk.n_locations)
        return chunk

    def _whole(self, number: int) -> Chunk | PackedChunk:
        """Returns the entries of all chunks of a file as one chunk.

        As long as the cache contains this chunk, look-ups do not need the file itself.
        """
        with self._remembered(number):
            chunk: Chunk | PackedChunk = self._cache.get(
                self._whole_key(number), lambda: self._file(number).packed(None)
            )
        self._check(number, chunk.n_locations)
        return chunk

    def _whole_key(self, number: int) -> tuple[str, str, None]:
        return self._uris[number], self._files[number].sha256, None

    @contextlib.contextmanager
    def _remembered(self, number: int) -> Iterator[None]:
        """Caches a file's error; until `retry`, look-ups that need the file raise this error."""
        failed = self._failed.get(number)
        if failed is not None:
            # Raise a new error object, because a raised error keeps its stack frames alive.
            raise type(failed)(failed.condition, failed.message)
        try:
            yield
        except SieveError as error:
            self._failed[number] = type(error)(error.condition, error.message)
            raise

    def _check(self, number: int, named: int) -> None:
        """Raises CorruptError if a file names a location outside the run."""
        if named > self._n_locations:
            raise CorruptError(
                "SIEVE_CORRUPT_RUN",
                f"{self._uris[number]} names location {named - 1} of {self._n_locations}; REFRESH "
                "the index FULL",
            )


def _points(codes: Codes) -> CodeIntervals:
    """Returns intervals of one code each, given ascending codes."""
    return np.stack([codes, codes], axis=1)


class _Ranges:
    """The key ranges of all files of a run, each with the number of its file."""

    def __init__(self, files: Sequence[tuple[Range, ...]]) -> None:
        ranges = np.array([range_ for file in files for range_ in file], np.int64).reshape(-1, 2)
        self.first = np.ascontiguousarray(ranges[:, 0])
        self.last = np.ascontiguousarray(ranges[:, 1])
        self.span = int(self.first.min(initial=GREATEST)), int(self.last.max(initial=LEAST))
        self._file = np.repeat(np.arange(len(files)), [len(file) for file in files])

    def files_of(self, wanted: CodeIntervals) -> list[int]:
        """The numbers of the files that can contain a key in one of the intervals."""
        start, stop = meeting(wanted, self.first, self.last)
        numbers: list[int] = np.unique(self._file[start < stop]).tolist()
        return numbers
