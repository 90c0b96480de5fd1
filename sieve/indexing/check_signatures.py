"""CHECK of signatures: computes the signatures of texts again, and compares them with an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from sieve.indexing.batches import Batches
from sieve.indexing.check_rounds import ROUND_BYTES
from sieve.indexing.signature_tasks import joined
from sieve.metadata.paths import run_file
from sieve.metadata.records import RunRef
from sieve.reader.run_file import parse_run_file
from sieve.segments.signatures import PIECE_BITS, Image, SignatureSegment, cut, fold

MISSING_BITS: Final = pa.schema([("location", pa.int32())])


def signature_rounds(runs: Sequence[RunRef], limit: int = ROUND_BYTES) -> Iterator[list[RunRef]]:
    """Divides runs into rounds: yields the runs with only some of their signature files.

    In each round, the files of all runs contain the same hashes. Yields nothing if any run has no
    signatures, because then no location can lack bits.
    """
    signed = [[file for file in run.files if file.signatures] for run in runs]
    if not signed or not all(signed):
        return
    if sum(file.length for files in signed for file in files) <= limit or len(runs) > 1:
        yield [replace(run, files=tuple(own)) for run, own in zip(runs, signed, strict=True)]
        return
    for file in signed[0]:
        yield [replace(runs[0], files=(file,))]


def bits_of(segments: Sequence[SignatureSegment]) -> int:
    """The binary logarithm of the size in bits of the largest signature; 0 if there is none."""
    most = max((int(one.bits.max()) for one in segments), default=-1)
    return 0 if most < 0 else most + PIECE_BITS


def segments_of(
    run: RunRef, index_dir: str, contents: Mapping[str, bytes]
) -> list[SignatureSegment]:
    """The signature segments in a run's files, given each file's content by its URI."""
    return [
        one
        for file in run.files
        for one in parse_run_file(contents[run_file(index_dir, run.id, file)], file).signatures
    ]


def find_missing_bits(
    runs: Sequence[RunRef],
    ordinals: Sequence[Sequence[int]],
    index_dir: str,
    files: Callable[[], Mapping[str, bytes]],
) -> Callable[[Batches], Batches]:
    """Returns a step that yields the locations whose signatures lack a bit of their texts.

    The input has rows of location and signature.

    Args:
        runs: the runs of the locations, with some of their signature files.
        ordinals: for each run, the ordinal of each location; -1 if the run does not contain it.
        files: returns the contents of the runs' files, by their URIs.
    """

    def run(batches: Batches) -> Batches:
        contents = files()
        opened = [segments_of(one, index_dir, contents) for one in runs]
        stored = list(zip(opened, ordinals, strict=True))
        for batch in batches:
            for location, one in zip(*(column.to_pylist() for column in batch), strict=True):
                own = [(segments, of_run[location]) for segments, of_run in stored]
                if lacks_bits(cut(np.frombuffer(one, np.uint8)), own):
                    column = pa.array([location], pa.int32())
                    yield pa.RecordBatch.from_arrays([column], schema=MISSING_BITS)

    return run


def lacks_bits(
    pieces: Sequence[Image], stored: Sequence[tuple[Sequence[SignatureSegment], int]]
) -> bool:
    """Returns whether a bit of `pieces` is not set in the stored signatures of the location.

    Args:
        pieces: the pieces of the location's signature, computed from its texts.
        stored: for each run of the location, segments and the location's ordinal.
    """
    stored = [(segments, ordinal) for segments, ordinal in stored if ordinal >= 0]
    own: dict[int, list[Image | None]] = {}
    for segments, ordinal in stored:
        for one in segments:
            own.setdefault(one.piece, []).append(one.of(ordinal))
    for piece, images in own.items():
        there = [image for image in images if image is not None]
        if len(there) < len(stored):
            continue
        whole = joined(there)
        if np.any(fold(pieces[piece], len(whole)) & ~whole):
            return True
    return False
