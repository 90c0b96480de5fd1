"""Tasks on executors that build hash maps from Arrow record batches; they need no PySpark.

Each row packs the pairs (hash, location) of one task and one range of hashes into two byte arrays.
If each pair were a row of its own, Spark would take about twenty times as long as numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.arrays.dtypes import Flags, Hashes, Ordinals
from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing.batches import Batches, together
from sieve.indexing.domain_sample import DomainSample
from sieve.indexing.segment_tasks import run_row
from sieve.segments.hash_map.format import build_map

PACKED: Final = pa.schema(
    [("part", pa.int32()), ("pairs", pa.int64())]
    + [(name, pa.binary()) for name in ("hashes", "locations", "smallest")]
)
SKETCHES: Final = pa.schema([("pairs", pa.int64()), ("smallest", pa.binary())])
SKETCH: Final = 4_096
"""A sketch keeps this many of the smallest hashes. The error of its estimate of the number of
distinct hashes is 1.6 %."""
_HELD: Final = 1 << 20
"""When a task has buffered this many pairs (12 MB), it packs the pairs."""
_SIGN: Final = np.uint64(1 << 63)


def pack_hashes(
    encoder: Encoder, domain_sample: DomainSample | None, parts: int, proves: Flags | None
) -> Callable[[Batches], Batches]:
    """Returns a step that converts rows of key and location to packed pairs, with few duplicates.

    If the encoder is exact, the key is the value; otherwise, the key is the JVM's hash of the
    value. Keys can be NULL. If the key is a hash and there is a domain sample, a third column
    contains the value.

    Args:
        domain_sample: the windows of the domain that the index covers; None for the whole domain.
        parts: number of hash ranges, which have equal lengths and are in the order of signed
            numbers.
        proves: bool[n], the locations whose pairs the step yields; None for all.
    """

    def run(batches: Batches) -> Batches:
        packer = PairPacker(parts)
        for batch in batches:
            for location, rows in together(batch, 1):
                if location < 0 or (proves is not None and not proves[location]):
                    continue
                yield from packer.add(_hashes(encoder, domain_sample, rows), location)
        yield from packer.finish()

    return run


class PairPacker:
    """Buffers pairs of hash and location, and packs them.

    Args:
        parts: number of hash ranges, which have equal lengths and are in the order of signed
            numbers.
    """

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._buffered: list[tuple[Hashes, Ordinals]] = []
        self._n = 0

    def add(self, hashes: Hashes, location: int) -> Batches:
        """Adds hashes of a location; if the buffer is full, yields its pairs as in `finish`."""
        self._buffered.append((hashes, np.full(len(hashes), location, np.int32)))
        self._n += len(hashes)
        if self._n >= _HELD:
            yield from self.finish()

    def finish(self) -> Batches:
        """Yields all pairs in the buffer as rows of `PACKED`, and clears the buffer."""
        if self._n:
            yield packed(*_joined(self._buffered), self._parts)
            self._buffered, self._n = [], 0


def hashed_once(hashes: pa.Array) -> Hashes:
    """Returns the distinct values, except NULL, of a column of hashes from the JVM."""
    return _once(np.sort(hashes.drop_null().to_numpy())).view(np.uint64)


def _hashes(encoder: Encoder, domain_sample: DomainSample | None, rows: pa.RecordBatch) -> Hashes:
    if encoder.exact:
        encoded = encoder.encode(rows.column(0))
        keys = encoded.valid & ~encoded.nan
        if domain_sample is not None:
            keys &= domain_sample.within(encoded.codes)
        return hash_codes(_once(np.sort(encoded.codes[keys])))
    hashes = rows.column(0)
    if domain_sample is not None:
        # The codes of NULLs are undefined. The hash of a NULL is NULL, and `hashed_once` drops NULL
        # hashes.
        hashes = hashes.filter(domain_sample.within(encoder.encode(rows.column(2)).codes))
    return hashed_once(hashes)


def _once(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Removes duplicates from sorted words, ten times as fast as numpy's `unique`."""
    return words[np.append(True, words[1:] != words[:-1])] if len(words) else words


def _joined(buffered: list[tuple[Hashes, Ordinals]]) -> tuple[Hashes, Ordinals]:
    return np.concatenate([one for one, _ in buffered]), np.concatenate(
        [one for _, one in buffered]
    )


def packed(hashes: Hashes, locations: Ordinals, parts: int) -> pa.RecordBatch:
    """Packs one or more pairs; returns a row of `PACKED` for each range that contains hashes.

    The hashes of a range are not sorted.
    """
    upper = (hashes ^ _SIGN) >> np.uint64(32)
    # numpy sorts 16-bit numbers with radix sort, which is many times as fast as sorting whole
    # hashes.
    number = np.uint16 if parts <= 1 << 16 else np.int32
    part = ((upper * np.uint64(parts)) >> np.uint64(32)).astype(number)
    order = np.argsort(part, kind="stable")
    smallest = _smallest(hashes).tobytes()
    hashes, locations, part = hashes[order], locations[order], part[order].astype(np.int32)
    starts = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
    ends = np.append(starts[1:], len(part))
    cuts = list(zip(starts.tolist(), ends.tolist(), strict=True))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(part[starts]),
            pa.array(ends - starts),
            pa.array([hashes[a:b].tobytes() for a, b in cuts], pa.binary()),
            pa.array([locations[a:b].tobytes() for a, b in cuts], pa.binary()),
            pa.array([smallest, *([b""] * (len(cuts) - 1))], pa.binary()),
        ],
        schema=PACKED,
    )


def _smallest(hashes: Hashes) -> Hashes:
    """Returns the `SKETCH` smallest hash values: repeated hashes twice, all other hashes once."""
    signed, few = hashes.view(np.int64), 4 * SKETCH
    if few < len(signed):
        copies, ranks = _at_most_twice(np.sort(np.partition(signed, few)[:few]))
        if ranks[-1] > SKETCH:
            return copies[ranks <= SKETCH].view(np.uint64)
    copies, ranks = _at_most_twice(np.sort(signed))
    return copies[ranks <= SKETCH].view(np.uint64)


def _at_most_twice(
    hashes: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Given sorted hashes, returns at most two copies of each hash, and the ranks of the copies.

    The rank of a hash is its position among the distinct hashes, from 1.
    """
    third = np.append([False, False], hashes[2:] == hashes[:-2])[: len(hashes)]
    copies = hashes[~third]
    first = np.append(True, copies[1:] != copies[:-1])[: len(copies)]
    return copies, np.cumsum(first)


def merge_sketches(batches: Batches) -> Batches:
    """A step that merges all rows of `SKETCHES` into one row for all pairs."""
    pairs, smallest = 0, np.empty(0, np.uint64)
    for batch in batches:
        pairs += sum(batch.column(0).to_pylist())
        joined = np.frombuffer(
            b"".join([smallest.tobytes(), *batch.column(1).to_pylist()]), np.uint64
        )
        smallest = _smallest(joined)
    columns = [pa.array([pairs]), pa.array([smallest.tobytes()], pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, schema=SKETCHES)


def distinct(pairs: int, smallest: bytes) -> int:
    """Estimates the number of distinct hashes.

    If no hash of the sketch occurs twice, as with unique keys, the result is exactly the number of
    pairs. A result that is one percent too low would suggest that some unique keys are in several
    locations. The build would then plan maps several times as large.

    Args:
        pairs: number of pairs of all tasks.
        smallest: the sketch from `merge_sketches`, as the bytes of a uint64 array.

    Source: Bar-Yossef et al., "Counting Distinct Elements in a Data Stream" (k minimum values).
    """
    hashes = np.frombuffer(smallest, np.int64)
    found = len(_once(hashes))
    if found < SKETCH:
        return found
    if found == len(hashes):
        return pairs
    return int((found - 1) * 2.0**64 / (int(hashes[-1]) + 2.0**63))


def write_maps(n_locations: int, fingerprint_bits: int) -> Callable[[Batches], Batches]:
    """Returns a step that builds hash maps from packed pairs, and yields rows of a run.

    Each distinct number in the column ``part`` gets one map.

    Args:
        n_locations: number of locations of the run.
        fingerprint_bits: number of bits of each fingerprint in a map.
    """

    def run(batches: Batches) -> Batches:
        buffered: dict[int, list[tuple[Hashes, Ordinals]]] = {}
        for batch in batches:
            part, hashes, locations = (batch.column(k).to_pylist() for k in (0, 2, 3))
            for number, one, other in zip(part, hashes, locations, strict=True):
                pair = np.frombuffer(one, np.uint64), np.frombuffer(other, np.int32)
                buffered.setdefault(number, []).append(pair)
        for number in sorted(buffered):
            yield _map(*_joined(buffered.pop(number)), n_locations, fingerprint_bits)

    return run


def _map(hashes: Hashes, locations: Ordinals, n_locations: int, bits: int) -> pa.RecordBatch:
    order = np.argsort(hashes.view(np.int64))
    hashes, locations = hashes[order], locations[order]
    payload = build_map(hashes, locations, n_locations, bits)
    ends = [int(hashes.view(np.int64)[k]) for k in (0, -1)]
    return run_row("map", [*ends, 0, 0, 0], payload)
