"""``sieve_segments`` returns the segments of an index's current version as rows.

Example: ``SELECT * FROM sieve_segments('orders', 'id_sieve')``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sieve.encoding.encoder import Encoder
from sieve.errors import CorruptError
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import run_file
from sieve.metadata.records import FileRef
from sieve.operations.registered_index import Usable
from sieve.reader.verified_file import verified
from sieve.segments.coverage import Coverage
from sieve.segments.hash_map.format import SHAPE_MAP
from sieve.segments.payload import decode
from sieve.segments.signatures import SHAPE_SIGNATURE
from sieve.storage.interface import Store

COLUMNS: Final = (
    ("segment", "BIGINT"),
    ("first_key", "STRING"),
    ("last_key", "STRING"),
    ("shape", "STRING"),
    ("blocks", "BIGINT"),
    ("bytes", "BIGINT"),
    ("expected_files", "DOUBLE"),
)

_STORED: Final = ["first", "last", "shape", "blocks", "payload"]


def segment_rows(index: Usable) -> list[tuple[object, ...]]:
    """Returns a row for each segment, numbered from 1 in the order of keys.

    Hash maps and signatures are last. They store only hashes, so their rows have None for keys and
    expected files.

    Raises:
        UnsupportedError: a later release of Sieve wrote the index.
        CorruptError, UnavailableError: a run file is damaged, or the store does not answer.
    """
    stored = stored_segments(index.store, index.directory, index.manifest)
    rows = [_described(encoder, segment) for encoder, _, segment in stored]
    rows.sort(key=lambda row: row[0])
    return [(number, *row) for number, (_, row) in enumerate(rows, 1)]


def stored_segments(
    store: Store, directory: str, manifest: Manifest
) -> Iterator[tuple[Encoder, int, dict[str, Any]]]:
    """Yields the stored columns of each segment of a version. Raises the errors of `segment_rows`.

    Returns:
        For each segment: the encoder of its keys, the slot of its run's first location, and the
        segment's columns as in the run file.
    """
    slot = 0
    for run in manifest.runs:
        encoder = Encoder.from_json(dict(run.encoder))
        for file in run.files:
            data = verified(store, run_file(directory, run.id, file), file)
            yield from ((encoder, slot, segment) for segment in _segments(data, file))
        slot += run.locations


def _described(
    encoder: Encoder, stored: dict[str, Any]
) -> tuple[tuple[bool, int], tuple[object, ...]]:
    """Returns the sort key of a segment, and the segment's row without its number."""
    payload, blocks = stored["payload"], stored["blocks"]
    if payload[:1] in (bytes([SHAPE_MAP]), bytes([SHAPE_SIGNATURE])):
        return (True, stored["first"]), (None, None, stored["shape"], None, len(payload), None)
    keys = (encoder.decode(stored[end]) for end in ("first", "last"))
    expected = Coverage.of(decode(payload)).mean()
    return (False, stored["first"]), (*keys, stored["shape"], blocks, len(payload), expected)


def _segments(data: bytes, file: FileRef) -> Iterator[dict[str, Any]]:
    try:
        return iter(pq.read_table(io.BytesIO(data), columns=_STORED).to_pylist())
    except (pa.ArrowException, OSError, KeyError) as error:
        raise CorruptError("SIEVE_INDEX_CORRUPT", f"{file.name}: {error}") from error
