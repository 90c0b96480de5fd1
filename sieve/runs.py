"""Run files: Parquet with one row a segment, written by Spark, read back by whoever looks up."""

from __future__ import annotations

import hashlib
import io

import pyarrow as pa
import pyarrow.parquet as pq

from sieve.blocks import Segment, decode_segment
from sieve.errors import CorruptError
from sieve.layout import run_file
from sieve.lookup import Run, assemble
from sieve.store import Store
from sieve.types import FileRef, RunRef

SPARK_SCHEMA = (
    "first BIGINT, last BIGINT, keys BIGINT, rows BIGINT, blocks BIGINT, weight BIGINT, "
    "payload BINARY"
)
"""Columns of a run file; weight is the sum over blocks of rows times locations."""


def read_run(store: Store, index_dir: str, run: RunRef, n_locations: int) -> Run:
    """A run in memory, all its files verified against their lengths and checksums.

    Raises:
        CorruptError: a file is not what the manifest says it is.
        UnavailableError: a file cannot be read (GoneError: it is not there).
    """
    segments: list[Segment] = []
    for file in run.files:
        data = verified(store, run_file(index_dir, run.id, file), file)
        payloads = _column(data, "payload", file)
        segments.extend(decode_segment(payload) for payload in payloads)
    segments.sort(key=lambda segment: segment.first)
    return assemble(segments, n_locations)


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
