"""Run file: one file of a run, in memory. Look-ups decode only the chunks that they need.

A chunk is one long segment, or several short neighbouring segments. Decoding short segments
together takes fewer numpy calls than decoding them one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sieve.arrays.dtypes import Codes, Places
from sieve.encoding.encoder import Encoder
from sieve.errors import CorruptError
from sieve.metadata.records import FileRef, Range, RunFileRef, RunId, RunRef
from sieve.reader.entry_table import Chunk, assemble
from sieve.reader.packed_chunk import PackedChunk
from sieve.segments.blocks.format import SHAPE_SIEVE
from sieve.segments.entries import Ends
from sieve.segments.hash_map.format import SHAPE_MAP, decode_map
from sieve.segments.hash_map.lookup import MapSegment
from sieve.segments.intervals.format import decode_cells
from sieve.segments.payload import LAYOUT_VERSION, SHAPES, decode, decode_ends
from sieve.segments.signatures import SHAPE_SIGNATURE, SignatureSegment, decode_signatures

SCHEMA: Final = pa.schema(
    [("shape", pa.string())]
    + [(name, pa.int64()) for name in ("first", "last", "keys", "rows", "blocks")]
    + [("payload", pa.binary())]
)
"""The columns of a run file, which is in Parquet format."""
SIGNATURE: Final = "signature"
"""The value of the column `shape` for a signature segment."""

CHUNK_BYTES: Final = 1 << 16
"""The approximate number of payload bytes in a chunk of several segments. The smallest segments of
a large run have about this size.
"""

# The length of the header of each payload: one byte for the shape, one for the layout version, and
# eight bytes each for the first and the last key.
_HEAD_BYTES: Final = 18


@dataclass(frozen=True, slots=True, eq=False)
class RunFile:
    """The segments of one run file.

    Attributes:
        payloads: uint8[b], the payloads of all segments, concatenated.
        begin, end: int64[s], start and end in `payloads` of each segment that is not a hash map.
            The segments are sorted by key.
        chunk: intp[c + 1], chunk i consists of the segments ``chunk[i]:chunk[i + 1]``.
        first, last: int64[c], least and greatest key code of each chunk.
        has_cells: whether all segments that are not hash maps store their entries as cells of a
            grid.
        maps: the hash maps of the file, which share the memory of `payloads`.
        signatures: the signature segments of the file, which share the memory of `payloads`.
    """

    payloads: npt.NDArray[np.uint8]
    begin: Codes
    end: Codes
    chunk: Places
    first: Codes
    last: Codes
    has_cells: bool
    maps: tuple[MapSegment, ...]
    signatures: tuple[SignatureSegment, ...] = ()

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        own = (self.payloads, self.begin, self.end, self.chunk, self.first, self.last)
        return sum(array.nbytes for array in own) + sum(one.lists.nbytes for one in self.maps)

    def decoded(self, number: int) -> Chunk:
        """Decodes one chunk.

        Raises:
            CorruptError: a payload of the chunk is damaged.
        """
        return assemble(map(decode, self._payloads(slice(number, number + 1))))

    def packed(self, number: int | None) -> PackedChunk | Chunk:
        """Decodes one chunk, or all chunks if ``number`` is None; packs the result if possible.

        Raises the errors of `decoded`.
        """
        payloads = self._payloads(slice(None) if number is None else slice(number, number + 1))
        cells = decode_cells(payloads) if self.has_cells else None
        packed = None if cells is None else PackedChunk.of(cells)
        return packed or assemble(map(decode, payloads))

    def ends(self) -> Iterator[Ends]:
        """Yields the `Ends` of each segment; raises the errors of `decoded`."""
        for begin, end in zip(self.begin.tolist(), self.end.tolist(), strict=True):
            yield decode_ends(self._payload(begin, end))

    def _payloads(self, chunks: slice) -> list[bytes]:
        """The payloads of some chunks, in ascending order of keys."""
        begin, end = self.chunk[:-1][chunks], self.chunk[1:][chunks]
        segments = slice(int(begin[0]), int(end[-1]))
        ends = zip(self.begin[segments].tolist(), self.end[segments].tolist(), strict=True)
        return [self._payload(*one) for one in ends]

    def _payload(self, begin: int, end: int) -> bytes:
        return self.payloads[begin:end].tobytes()


def parse_run_file(data: bytes, file: RunFileRef) -> RunFile:
    """Parses the verified bytes of a run file.

    Raises:
        CorruptError: the file violates the format of run files, or it has keys outside the ranges
            in the manifest.
        UnsupportedError: a later release of Sieve wrote the file.
    """
    payloads, offsets = _payloads_of(data, file)
    begin, end = offsets[:-1], offsets[1:]
    if np.any(end - begin < _HEAD_BYTES):
        raise _corrupt(file, "has a segment that is too short")
    shape, first, last = _heads(payloads, begin)
    of_map = shape == SHAPE_MAP
    signed = shape == SHAPE_SIGNATURE
    known = of_map | signed | (np.isin(shape, SHAPES) & (payloads[begin + 1] == LAYOUT_VERSION))
    for k in np.flatnonzero(~known).tolist():
        # `decode` raises the right error: either the payload is damaged, or a later release wrote
        # its shape or layout.
        decode(payloads[begin[k] : end[k]].tobytes())
    # Each decoded hash map shares the memory of its payload.
    maps = tuple(
        decode_map(payloads.data[begin[k] : end[k]]) for k in np.flatnonzero(of_map).tolist()
    )
    _check_within(first[of_map], last[of_map], file.hashes, file)
    signatures = tuple(
        decode_signatures(payloads[begin[k] : end[k]]) for k in np.flatnonzero(signed).tolist()
    )
    _check_within(first[signed], last[signed], file.signatures, file)
    order = np.flatnonzero(~of_map & ~signed)
    order = order[np.argsort(first[order], kind="stable")]
    begin, end, first, last = begin[order], end[order], first[order], last[order]
    _check_within(first, last, file.codes, file)
    if np.any(first[1:] <= last[:-1]):
        raise _corrupt(file, "has segments that overlap")
    chunk = _chunks(end - begin)
    has_cells = not np.any(shape == SHAPE_SIEVE)
    ends = first[chunk[:-1]], last[chunk[1:] - 1]
    return RunFile(payloads, begin, end, chunk, *ends, has_cells, maps, signatures)


def describe_run(
    run: RunId, locations: int, encoder: Encoder, files: Iterable[tuple[str, bytes]]
) -> RunRef | None:
    """The manifest's record of a run, or None if no file of the run has a segment.

    Args:
        run: the run's id.
        files: names and contents of the run's files, sorted by name. The record omits files without
            rows.
    """
    found: list[FileRef] = []
    tables: list[pa.Table] = []
    columns = [name for name in SCHEMA.names if name != "payload"]
    for name, data in files:
        table = pq.read_table(pa.BufferReader(data), columns=columns)
        if table.num_rows:
            tables.append(table.append_column("file", pa.repeat(len(found), len(table))))
            found.append(FileRef(name, len(data), hashlib.sha256(data).hexdigest()))
    if not found:
        return None
    segments = pa.concat_tables(tables)
    of_map, signed = (pc.equal(segments["shape"], shape) for shape in ("map", SIGNATURE))
    codes = _ranges_of_files(segments.filter(pc.invert(pc.or_(of_map, signed))), len(found))
    hashes = _ranges_of_files(segments.filter(of_map), len(found))
    signatures = _ranges_of_files(segments.filter(signed), len(found))
    return RunRef(
        run,
        locations,
        encoder.to_json(),
        tuple(
            RunFileRef(file.name, file.length, file.sha256, *ranges)
            for file, *ranges in zip(found, codes, hashes, signatures, strict=True)
        ),
        segments=len(segments),
        blocks=pc.sum(segments["blocks"]).as_py(),
        keys=pc.sum(segments["keys"]).as_py(),
        rows=pc.sum(segments["rows"]).as_py(),
        bytes=sum(file.length for file in found),
    )


def _ranges_of_files(segments: pa.Table, count: int) -> list[tuple[Range, ...]]:
    """Returns for each file the key ranges that its segments cover, in ascending order.

    Neighbouring segments of the same file share a range, so each file has few ranges.
    """
    segments = segments.sort_by("first")
    file, first, last = (segments[name].to_numpy() for name in ("file", "first", "last"))
    begin = np.flatnonzero(np.append(True, file[1:] != file[:-1])[: len(file)])
    end = np.append(begin[1:], len(file))[: len(begin)] - 1
    ranges: list[list[Range]] = [[] for _ in range(count)]
    for number, low, high in zip(file[begin], first[begin], last[end], strict=True):
        ranges[number].append((int(low), int(high)))
    return [tuple(some) for some in ranges]


def _payloads_of(data: bytes, file: RunFileRef) -> tuple[npt.NDArray[np.uint8], Codes]:
    """Returns all payloads in one array, each payload's offset, and the last payload's end."""
    try:
        table = pq.read_table(pa.BufferReader(data), columns=["payload"], use_threads=False)
        column = table["payload"].combine_chunks()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise CorruptError("SIEVE_INDEX_CORRUPT", f"{file.name}: {error}") from error
    if not pa.types.is_binary(column.type) or column.null_count or len(column) == 0:
        raise _corrupt(file, "is no run file")
    _, places, values = column.buffers()
    offsets = np.frombuffer(places, np.int32, len(column) + 1, 4 * column.offset)
    return np.frombuffer(values or b"", np.uint8), offsets.astype(np.int64)


def _heads(
    payloads: npt.NDArray[np.uint8], begin: Codes
) -> tuple[npt.NDArray[np.uint8], Codes, Codes]:
    """Returns each payload's shape, first key and last key.

    The keys of a hash map are hashes, as int64.
    """
    image = np.ascontiguousarray(payloads[begin[:, None] + np.arange(2, _HEAD_BYTES)])
    ends = image.view("<i8").astype(np.int64, copy=False)
    return payloads[begin], ends[:, 0], ends[:, 1]


def _check_within(first: Codes, last: Codes, listed: tuple[Range, ...], file: RunFileRef) -> None:
    """Raises CorruptError for a segment outside the manifest's ranges; look-ups would miss it."""
    ranges = np.array(listed, np.int64).reshape(-1, 2)
    place = np.searchsorted(ranges[:, 0], first, side="right") - 1
    if np.any(first > last) or np.any(place < 0) or np.any(last > ranges[place, 1]):
        raise _corrupt(file, "holds keys that the version does not tell of")


def _chunks(sizes: Codes) -> Places:
    """Groups segments into chunks by size.

    Returns the position of each chunk's first segment, then the number of segments.
    """
    window = (np.cumsum(sizes) - sizes) // CHUNK_BYTES
    begin = np.flatnonzero(np.append(True, window[1:] != window[:-1])[: len(sizes)])
    return np.append(begin, len(sizes))


def _corrupt(file: RunFileRef, problem: str) -> CorruptError:
    return CorruptError(
        "SIEVE_CORRUPT_RUN", f"{file.name} {problem}; REFRESH SIEVE INDEX ... FULL builds it again"
    )
