"""Run files: Parquet with one row a segment, written by Spark, read back by whoever looks up."""

from __future__ import annotations

import hashlib
import io

import pyarrow as pa
import pyarrow.parquet as pq

from sieve.errors import CorruptError
from sieve.layout import run_file
from sieve.lookup import Run, assemble
from sieve.map.lookup import MapSegment
from sieve.map.payload import SHAPE_MAP, decode_map
from sieve.shapes import Entries, decode
from sieve.store import Store
from sieve.types import FileRef, RunRef

SPARK_SCHEMA = (
    "shape STRING, first BIGINT, last BIGINT, keys BIGINT, rows BIGINT, blocks BIGINT, "
    "payload BINARY"
)
"""Columns of a run file."""


def read_run(store: Store, index_dir: str, run: RunRef, n_locations: int) -> Run:
    """A run in memory, all its files verified against their lengths and checksums.

    Raises:
        CorruptError: a file is not what the manifest says it is.
        UnavailableError: a file cannot be read (GoneError: it is not there).
    """
    segments: list[Entries] = []
    maps: list[MapSegment] = []
    for file in run.files:
        data = verified(store, run_file(index_dir, run.id, file), file)
        for payload in _column(data, "payload", file):
            if payload[:1] == bytes([SHAPE_MAP]):
                maps.append(decode_map(payload))
            else:
                segments.append(decode(payload))
    return assemble(segments, n_locations, maps)


def verified(store: Store, uri: str, file: FileRef) -> bytes:
    """A file's bytes, if they are the ones the manifest speaks of."""
    data = store.read(uri)
    if len(data) != file.length or hashlib.sha256(data).hexdigest() != file.sha256:
        raise CorruptError(
            "SIEVE_INDEX_CORRUPT",
            f"{uri} is not what was written ({len(data)} bytes, {file.length} expected, or another "
            "checksum); REFRESH SIEVE INDEX ... FULL builds the index again",
        )
    return data


def _column(data: bytes, name: str, file: FileRef) -> list[bytes]:
    try:
        column = pq.read_table(io.BytesIO(data), columns=[name])[name]
    except (pa.ArrowException, OSError, KeyError) as error:
        raise CorruptError("SIEVE_INDEX_CORRUPT", f"{file.name}: {error}") from error
    return list(column.to_pylist())
