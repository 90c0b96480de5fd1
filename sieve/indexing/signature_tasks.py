"""Tasks on executors that make signature segments from Arrow record batches.

They need no PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from sieve.indexing.batches import Batches
from sieve.indexing.segment_tasks import run_row
from sieve.reader.run_file import SIGNATURE
from sieve.segments.signatures import (
    PIECES,
    Image,
    cut,
    encode_signatures,
    first_hash,
    fold,
    last_hash,
    widen,
)

DENSITIES: Final = pa.schema(
    [("location", pa.int32()), ("bytes", pa.int64()), ("bits", pa.int64())]
)
"""For each signature: its location, its size in bytes, and the number of its bits that are set."""
CUT: Final = pa.schema([("piece", pa.int32()), ("location", pa.int32()), ("image", pa.binary())])


def densities(batches: Batches) -> Batches:
    """A step that converts rows of location and signature to rows of `DENSITIES`."""
    for batch in batches:
        places, images = batch.column(0), batch.column(1).to_pylist()
        bits = [int(np.unpackbits(_image(one)).sum()) for one in images]
        sizes = [len(one) for one in images]
        yield pa.RecordBatch.from_arrays(
            [places, pa.array(sizes, pa.int64()), pa.array(bits, pa.int64())], schema=DENSITIES
        )


def cut_signatures(most: int) -> Callable[[Batches], Batches]:
    """Returns a step that divides signatures into pieces, as rows of `CUT`.

    Args:
        most: the maximum size of a signature in bytes; larger signatures are folded.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for place, one in zip(*(column.to_pylist() for column in batch), strict=True):
                images = [piece.tobytes() for piece in cut(fold(_image(one), most))]
                rows = [pa.array(range(PIECES), pa.int32()), pa.array([place] * PIECES, pa.int32())]
                yield pa.RecordBatch.from_arrays([*rows, pa.array(images, pa.binary())], schema=CUT)

    return run


def write_signatures(n_locations: int) -> Callable[[Batches], Batches]:
    """Returns a step that joins pieces, as rows of `CUT`, to segments, as rows of a run.

    Args:
        n_locations: number of locations of the run.
    """

    def run(batches: Batches) -> Batches:
        found: dict[int, dict[int, list[Image]]] = {}
        for batch in batches:
            for piece, location, one in zip(*(column.to_pylist() for column in batch), strict=True):
                found.setdefault(piece, {}).setdefault(location, []).append(_image(one))
        for piece in sorted(found):
            own = found.pop(piece)
            images = [joined(own[k]) if k in own else None for k in range(n_locations)]
            ends = first_hash(piece), last_hash(piece)
            yield run_row(SIGNATURE, [*ends, 0, 0, 0], encode_signatures(piece, images))

    return run


def joined(images: Iterable[Image]) -> Image:
    """Joins the images of a location's parts by OR, each widened to the size of the largest."""
    images = list(images)
    size = max(map(len, images))
    whole: Image = np.bitwise_or.reduce([widen(one, size) for one in images])
    return whole


def _image(stored: bytes) -> Image:
    return np.frombuffer(stored, np.uint8)
