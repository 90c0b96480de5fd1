"""Builds index versions on disk without Spark.

The module also contains a store that records its reads.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sieve.encoding.encoder import Encoder
from sieve.metadata.file_list import Locations, render_locations, states_of
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import LocationsRef, PartRef, RunId, RunRef
from sieve.reader.run_file import describe_run
from sieve.segments.hash_map.format import build_map
from sieve.segments.intervals.plan_segments import Segment
from sieve.storage.interface import READ_LIMIT, base_name
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE

RUN = RunId("ab" * 16)
ROOT = "file:/t"
PARTS = {"format": "parquet x"}
"""The parts of the reader's fingerprint."""

Row = tuple[str, int, int, int, int, int, bytes]
"""A run file's row for one segment: shape, first, last, keys, rows, blocks, payload."""


def row(segment: Segment) -> Row:
    """The row in which a run file stores a segment of the shape `intervals` or `runs`."""
    told = (segment.first, segment.last, segment.keys, segment.rows, segment.blocks)
    return (segment.shape, *told, segment.payload)


def map_row(
    hashes: Sequence[int], locations: Sequence[int], n_locations: int, bits: int = 8
) -> Row:
    """The row in which a run file stores a hash map. The signed hashes must ascend."""
    keys = np.array(hashes, np.int64).view(np.uint64)
    payload = build_map(keys, np.array(locations, np.int32), n_locations, bits)
    return ("map", hashes[0], hashes[-1], 0, 0, 0, payload)


def write_run(
    folder: Path,
    files: Sequence[Sequence[Row]],
    encoder: Encoder,
    locations: int,
    run_id: RunId = RUN,
) -> RunRef:
    """Writes the run files of a run that covers `locations` locations.

    Each element of `files` contains the segments of one run file.
    """
    written = []
    (folder / "runs" / run_id).mkdir(parents=True)
    for number, rows in enumerate(files):
        data = run_file_bytes(rows)
        name = f"part-{number:05d}.parquet"
        (folder / "runs" / run_id / name).write_bytes(data)
        written.append((name, data))
    run = describe_run(run_id, locations, encoder, written)
    assert run is not None
    return run


def run_file_bytes(rows: Sequence[Row]) -> bytes:
    """The contents of a run file, as bytes."""
    names = ("shape", "first", "last", "keys", "rows", "blocks")
    columns = [[row[k] for row in rows] for k in range(7)]
    types = [pa.string(), *[pa.int64()] * 5, pa.binary()]
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays, names=[*names, "payload"]), sink, compression="zstd")
    return sink.getvalue()


def write_version(folder: Path, runs: Sequence[RunRef], locations: Locations) -> Manifest:
    """Writes a version with the given runs and locations. Paths of locations are below `ROOT`."""
    data = render_locations(locations, (ROOT,))
    path = folder / "locations" / f"{'cd' * 16}.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    n = len(locations.paths)
    part = PartRef(path.name, len(data), hashlib.sha256(data).hexdigest(), n)
    return dataclasses.replace(
        SAMPLE,
        column=("v",),
        type="bigint",
        fingerprint_parts=PARTS,
        table=dataclasses.replace(SAMPLE.table, location=ROOT),
        runs=tuple(runs),
        roots=(ROOT,),
        locations=LocationsRef((part,), n),
    )


def plain_locations(n: int) -> Locations:
    """A list of files with ten rows each, without NULL or NaN."""
    ones = np.ones(n, np.int64)
    paths = tuple(f"{ROOT}/{k}" for k in range(n))
    return Locations(paths, states_of(n), ones, ones, ones * 10, ones * 0, ones * 0, np.arange(n))


@dataclass(frozen=True, slots=True)
class CountingStore(LocalStore):
    """A local store that records the name of each file that it reads, in order."""

    read_names: list[str] = field(default_factory=list)

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
        """Reads a file, and records the file's name."""
        self.read_names.append(base_name(uri))
        return LocalStore.read(self, uri, limit)
