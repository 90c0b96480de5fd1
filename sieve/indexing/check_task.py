"""Executor tasks of CHECK: they look up each key of a file as queries do, and need no PySpark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sieve.arrays.dtypes import Codes, Flags, Integers
from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing.batches import Batches, together
from sieve.indexing.check_rounds import Round
from sieve.metadata.records import Range
from sieve.reader.lru_cache import FileCache
from sieve.reader.run_reader import Run
from sieve.storage.interface import READ_LIMIT

SEEN: Final = pa.schema(
    [("location", pa.int32())]
    + [(name, pa.int64()) for name in ("rows", "nulls", "nans", "missed", "damaged")]
    + [("key", pa.string()), ("least", pa.int64()), ("greatest", pa.int64())]
)

# The tasks of a worker process share this cache of run files and decoded chunks.
_HELD = FileCache(256 << 20)
_SHOWN_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class FilesInMemory:
    """A store that holds run files in memory, as a mapping from URI to contents."""

    files: Mapping[str, bytes]

    def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:  # noqa: ARG002 - a store's
        """Returns the contents of a file."""
        return self.files[uri]


def look_up_keys(
    encoder: Encoder,
    rounds: Sequence[Round],
    index_dir: str,
    ordinals: Sequence[Sequence[int]],
    files: Callable[[], Mapping[str, bytes]],
) -> Callable[[Batches], Batches]:
    """Returns a step that looks up the keys of rows (value, location, hash); it yields `SEEN` rows.

    For a corrupt record, the input has a row whose location column is -1 minus the location's
    number; see `LOCATION`. A key is lost if no run finds its location. The rows need hashes only if
    codes are inexact and the rounds look up hashes.

    Args:
        rounds: one round for each run that contains rows of the locations; can be empty.
        ordinals: for each run, the ordinal of each location; -1 if the run does not contain the
            location.
        files: returns the rounds' run files, as a mapping from URI to contents.
    """

    def run(batches: Batches) -> Batches:
        opened = _open(rounds, index_dir, files())
        for batch in batches:
            for location, part in together(batch, 1):
                if location < 0:
                    yield _line(-1 - location, (0, 0, 0, 0, part.num_rows), None, (None, None))
                    continue
                own = [of_run[location] for of_run in ordinals]
                yield _seen(part, encoder, rounds, opened, location, own)

    return run


def _open(rounds: Sequence[Round], index_dir: str, files: Mapping[str, bytes]) -> list[Run]:
    # This function is at module level, so it refers to the cache of the executor's own process.
    return [Run(FilesInMemory(files), index_dir, one.run, _HELD) for one in rounds]


def _seen(
    part: pa.RecordBatch,
    encoder: Encoder,
    rounds: Sequence[Round],
    opened: Sequence[Run],
    location: int,
    ordinals: Sequence[int],
) -> pa.RecordBatch:
    """Returns the output row for input rows of a location: counts, a lost key, extreme codes."""
    values = part.column(0)
    encoded = encoder.encode(values)
    keys = np.flatnonzero(encoded.valid & ~encoded.nan)
    codes = encoded.codes[keys]
    missed = np.ones(len(keys), np.bool_)
    for one, run, ordinal in zip(rounds, opened, ordinals, strict=True):
        hashes = None
        if one.hashes is not None:
            hashes = (
                hash_codes(codes).view(np.int64)
                if encoder.exact
                else part.column(2).to_numpy()[keys]
            )
        missed &= _missed_by(one, run, ordinal, codes, hashes)
    lost = keys[missed]
    nulls, nans = np.count_nonzero(~encoded.valid), np.count_nonzero(encoded.nan)
    counts = (len(values), int(nulls), int(nans), len(lost), 0)
    ends = (int(codes.min()), int(codes.max())) if len(codes) else (None, None)
    return _line(location, counts, _shown(values[int(lost[0])]) if len(lost) else None, ends)


def _line(
    location: int, counts: Sequence[int], key: str | None, ends: tuple[int | None, int | None]
) -> pa.RecordBatch:
    line = (location, *counts, key, *ends)
    return pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in zip(line, SEEN, strict=True)],
        schema=SEEN,
    )


def _missed_by(
    wanted: Round, run: Run, ordinal: int, codes: Codes, hashes: Integers | None
) -> Flags:
    """Returns, for each key (code and hash), whether the run fails to find its location."""
    missed = _lost(codes, wanted.codes, lambda some: run.holds_codes(some, ordinal))
    if hashes is not None:
        missed |= _lost(
            hashes, wanted.hashes, lambda some: run.holds_hashes(some.view(np.uint64), ordinal)
        )
    return missed


def _lost(words: Integers, judged: Range | None, holds: Callable[[Integers], Flags]) -> Flags:
    """Returns bool[n]: True for each word in the range `judged` for which `holds` is False."""
    if judged is None:
        return np.zeros(len(words), np.bool_)
    distinct = np.unique(words)
    distinct = distinct[(distinct >= judged[0]) & (distinct <= judged[1])]
    lost = distinct[~holds(distinct)]
    return np.isin(words, lost) if len(lost) else np.zeros(len(words), np.bool_)


def _shown(value: pa.Scalar) -> str:
    """Returns a value as text, with bytes in hexadecimal; truncates a long text."""
    if pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type):
        text = value.as_py().hex()
    elif pa.types.is_timestamp(value.type):
        # The text contains no time zone. Arrow needs a time zone database to write a time with a
        # zone, and this database can be missing.
        text = str(pc.cast(pc.cast(value, pa.timestamp("us")), pa.string()))
    else:
        text = str(pc.cast(value, pa.string()))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
