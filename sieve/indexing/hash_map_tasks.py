"""The tasks that build hash maps on executors, on Arrow record batches; no PySpark here.

Pairs of hash and location are packed: one row holds the pairs of a task in one range of hashes, as
two byte arrays. With a row per pair, Spark would take about twenty times as long to receive, sort
and return them as numpy does.
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

PACKED_SCHEMA: Final = (
    "part INT, pairs BIGINT, hashes BINARY, locations BINARY, smallest ARRAY<BIGINT>"
)
_PACKED = pa.schema(
    [
        ("part", pa.int32()),
        ("pairs", pa.int64()),
        ("hashes", pa.binary()),
        ("locations", pa.binary()),
        ("smallest", pa.list_(pa.int64())),
    ]
)
SKETCH: Final = 4_096
"""Number of smallest hashes in the distinct-count sketch, which is then accurate to 1.6 %."""
_HELD: Final = 1 << 20
"""Pairs buffered before they are packed: 12 MB."""
_SIGN: Final = np.uint64(1 << 63)


def pack_hashes(
    encoder: Encoder, domain_sample: DomainSample | None, parts: int, proves: Flags | None
) -> Callable[[Batches], Batches]:
    """A step from (key, location) rows to packed pairs, mostly without duplicates.

    The key is the value where the encoder is exact, else the JVM's hash of it; or NULL. With a
    domain sample, rows of the second kind have the value in a third column.

    Args:
        encoder: the column's.
        domain_sample: the windows of the domain to index; None: the whole domain.
        parts: number of ranges of hashes of equal length, in signed order.
        proves: bool[n], locations to take; None: all.
    """

    def run(batches: Batches) -> Batches:
        held: list[tuple[Hashes, Ordinals]] = []
        n = 0
        for batch in batches:
            for location, rows in together(batch, 1):
                if location < 0 or (proves is not None and not proves[location]):
                    continue
                hashes = _hashes(encoder, domain_sample, rows)
                held.append((hashes, np.full(len(hashes), location, np.int32)))
                n += len(hashes)
            if n >= _HELD:
                yield packed(*_joined(held), parts)
                held, n = [], 0
        if n:
            yield packed(*_joined(held), parts)

    return run


def _hashes(encoder: Encoder, domain_sample: DomainSample | None, rows: pa.RecordBatch) -> Hashes:
    if encoder.exact:
        encoded = encoder.encode(rows.column(0))
        keys = encoded.valid & ~encoded.nan
        if domain_sample is not None:
            keys &= domain_sample.within(encoded.codes)
        return hash_codes(_once(np.sort(encoded.codes[keys])))
    hashes = rows.column(0)
    if domain_sample is not None:
        # The codes of NULLs are undefined, but so are their hashes.
        hashes = hashes.filter(domain_sample.within(encoder.encode(rows.column(2)).codes))
    return _once(np.sort(hashes.drop_null().to_numpy())).view(np.uint64)


def _once(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Removes duplicates from sorted words; numpy's `unique` takes ten times as long."""
    return words[np.append(True, words[1:] != words[:-1])] if len(words) else words


def _joined(held: list[tuple[Hashes, Ordinals]]) -> tuple[Hashes, Ordinals]:
    return np.concatenate([one for one, _ in held]), np.concatenate([one for _, one in held])


def packed(hashes: Hashes, locations: Ordinals, parts: int) -> pa.RecordBatch:
    """Rows of `PACKED_SCHEMA`, one for each range with hashes; at least one pair is required."""
    order = np.argsort(hashes.view(np.int64))
    hashes, locations = hashes[order], locations[order]
    upper = (hashes ^ _SIGN) >> np.uint64(32)
    part = ((upper * np.uint64(parts)) >> np.uint64(32)).astype(np.int32)
    starts = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
    ends = np.append(starts[1:], len(part))
    cuts = list(zip(starts.tolist(), ends.tolist(), strict=True))
    smallest = _smallest(hashes).view(np.int64)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(part[starts]),
            pa.array(ends - starts),
            pa.array([hashes[a:b].tobytes() for a, b in cuts], pa.binary()),
            pa.array([locations[a:b].tobytes() for a, b in cuts], pa.binary()),
            pa.array([smallest, *([[]] * (len(cuts) - 1))], pa.list_(pa.int64())),
        ],
        schema=_PACKED,
    )


def _smallest(hashes: Hashes) -> Hashes:
    """The `SKETCH` smallest of sorted hashes, each once, or twice if it occurs more than once."""
    third = np.append([False, False], hashes[2:] == hashes[:-2])[: len(hashes)]
    at_most_twice: Hashes = hashes[~third]
    first = np.append(True, at_most_twice[1:] != at_most_twice[:-1])
    return at_most_twice[np.cumsum(first) <= SKETCH]


def distinct(pairs: int, found: int, greatest: int, times: int) -> int:
    """Estimated number of distinct hashes.

    It is exact if no hash of the sketch occurs twice, as with unique keys: an error of one part in
    a hundred would stand for keys in several locations, which take several times the bytes.

    Args:
        pairs: number of all pairs.
        found: number of the `SKETCH` smallest hashes that exist.
        greatest: the greatest of these.
        times: how often the most frequent of these occurs.

    Source: Bar-Yossef et al., "Counting Distinct Elements in a Data Stream" (k minimum values).
    """
    if found < SKETCH:
        return found
    if times == 1:
        return pairs
    return int((found - 1) * 2.0**64 / (greatest + 2.0**63))


def write_maps(n_locations: int, fingerprint_bits: int) -> Callable[[Batches], Batches]:
    """A step from packed pairs, grouped by range, to one map per range: rows of a run file.

    Args:
        n_locations: of the run.
        fingerprint_bits: of a map.
    """

    def run(batches: Batches) -> Batches:
        held: dict[int, list[tuple[Hashes, Ordinals]]] = {}
        for batch in batches:
            part, hashes, locations = (batch.column(k).to_pylist() for k in (0, 2, 3))
            for number, one, other in zip(part, hashes, locations, strict=True):
                pair = np.frombuffer(one, np.uint64), np.frombuffer(other, np.int32)
                held.setdefault(number, []).append(pair)
        for number in sorted(held):
            yield _map(*_joined(held.pop(number)), n_locations, fingerprint_bits)

    return run


def _map(hashes: Hashes, locations: Ordinals, n_locations: int, bits: int) -> pa.RecordBatch:
    order = np.argsort(hashes.view(np.int64))
    hashes, locations = hashes[order], locations[order]
    payload = build_map(hashes, locations, n_locations, bits)
    ends = [int(hashes.view(np.int64)[k]) for k in (0, -1)]
    return run_row("map", [*ends, 0, 0, 0], payload)
