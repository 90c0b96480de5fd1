"""CHECK: reads data files again, and verifies that the index finds the file of each key.

Executors read the column as a build does. The driver sends run files to the executors, which look
up each key with the code that queries use. The result has one row per file.
"""

from __future__ import annotations

import contextlib
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.arrays.dtypes import Counts
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.environment import Environment
from sieve.errors import CorruptError
from sieve.index_key import LONG_GRAM_BYTES, SUBSTRING, kind_of
from sieve.indexing import check_task
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.check_rounds import Round, by_runs, ordinals_in, shared_rounds
from sieve.indexing.check_signatures import (
    MISSING_BITS,
    bits_of,
    find_missing_bits,
    segments_of,
    signature_rounds,
)
from sieve.indexing.reuse import runs_of
from sieve.indexing.tiling import Tiling
from sieve.indexing.value_columns import column_values
from sieve.metadata.paths import run_file
from sieve.metadata.records import RunRef
from sieve.operations.registered_index import Usable
from sieve.reader.lru_cache import FileCache
from sieve.reader.verified_file import verified
from sieve.reader.version_reader import OpenVersion, open_version
from sieve.tables.column import Column
from sieve.tables.file_status import FileStatus, file_statuses
from sieve.tables.table import LOCATION, SIGNATURE, CatalogTable

OK, STALE, GONE, LOST = "ok", "stale", "gone", "missing key"
"""The possible results for a file. `OK`: the index finds each key of the file. `STALE`: CHECK did
not read the file, because queries always read the file. `GONE`: the table no longer contains the
file. `LOST`: some query for a row of the file would skip the file."""

CHANGED: Final = "changed since the index was built"
OTHER_READER: Final = "the index was built for another reader, so this session reads every file"
OUTDATED: Final = "an earlier release built the index, so every file is read; REFRESH builds it"
_WHY: Final[Mapping[FileStatus, str]] = {
    "same": "",
    "new": "new since the index was built",
    "racy": "too young to be relied on when the index was built",
    "unproven": "proved nothing when the index was built, as a file without rows or with a damaged "
    "record does",
    "changed": CHANGED,
}
"""Maps each status of a file to the reason why queries always read the file. If queries can skip
the file, the reason is empty."""
_NAMED: Final = 10
"""The maximum number of files that an error message about lost rows names."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """CHECK's result for one file: the index's name, the file's path, the status and details."""

    index: str
    file: str
    status: str
    detail: str


@dataclass(slots=True)
class _Seen:
    """What CHECK counted in a location: rows, NULLs, NaNs, missed keys and damaged records.

    ``missed`` counts the rows for which a look-up of the row's key did not find the row's location.
    ``lacks_bits`` says whether the location's signature lacks a bit of its texts.
    """

    rows: int = 0
    nulls: int = 0
    nans: int = 0
    missed: int = 0
    damaged: int = 0
    key: str | None = None
    least: int = GREATEST
    greatest: int = LEAST
    lacks_bits: bool = False


def check_index(
    table: CatalogTable,
    index: Usable,
    percent: float,
    environment: Environment,
    draw: Callable[[Sequence[int], int], Sequence[int]] = random.sample,
) -> list[CheckedFile]:
    """Looks up every key of the chosen files, and reports the keys that the index lacks.

    Args:
        percent: the percentage, above 0, of the files that CHECK reads. Stale files do not count.
            If any file is not stale, CHECK reads at least one file.
        draw: chooses the files that CHECK reads; all files are candidates except stale files.

    Returns:
        The results, sorted by path. Each file that CHECK read, each stale file, and each indexed
        file that the table no longer contains has one result.

    Raises:
        UnsupportedError: a later release of Sieve wrote the index.
        CorruptError, UnavailableError: a file of the index is damaged, or the store does not
            answer.
        Py4JJavaError: Spark cannot read a data file; the message names the file.
    """
    manifest = index.manifest
    files = table.files()
    if manifest.is_outdated or manifest.changed_parts(table.info.fingerprint_parts):
        why = OUTDATED if manifest.is_outdated else OTHER_READER
        return [CheckedFile(manifest.name, file.path, STALE, why) for file in files]
    opened = open_version(index.store, index.directory, manifest, FileCache(sys.maxsize))
    where = opened.locations()
    places = {path: place for place, path in enumerate(where.paths)}
    stale = {number: _WHY[status] for number, status in enumerate(file_statuses(where, files))}
    usable = [number for number, why in stale.items() if not why]
    chosen = sorted(draw(usable, math.ceil(len(usable) * percent / 100)))
    at = np.array([places[files[number].path] for number in chosen], np.int64)
    ranges = where.every_range
    tiling = Tiling(where.lengths[at], ranges.cuts_of(at), ranges.footers[at])
    seen = _read(table, opened, chosen, tiling, where.places[at], environment)
    details = [""] * len(chosen)
    for k, owner, one in zip(ranges.positions(at), tiling.owners.tolist(), seen, strict=True):
        details[owner] = details[owner] or _loss(opened, int(k), one)
    # A writer may have replaced a file during CHECK, so the code lists the files again.
    now = {f.path: f for f in table.files()} if any(details) else {f.path: f for f in files}
    checked: list[CheckedFile] = []
    for number, detail in zip(chosen, details, strict=True):
        path = files[number].path
        if detail and now.get(path) != files[number]:
            checked.append(CheckedFile(manifest.name, path, STALE, CHANGED))
        else:
            checked.append(CheckedFile(manifest.name, path, LOST if detail else OK, detail))
    checked += [CheckedFile(manifest.name, files[n].path, STALE, w) for n, w in stale.items() if w]
    listed = {file.path for file in files}
    gone = (path for path in where.paths if path not in listed)
    checked += [CheckedFile(manifest.name, path, GONE, "no file of the table") for path in gone]
    return sorted(checked, key=lambda one: one.file)


def refuse_losses(label: str, checked: Sequence[CheckedFile]) -> None:
    """Raises CorruptError if CHECK found rows that queries lose; the error names files and keys.

    Args:
        label: the table's name in messages.
        checked: the results of CHECK for one or more indexes of the table.
    """
    lost = [one for one in checked if one.status == LOST]
    if not lost:
        return
    losses = "; ".join(
        f"index {one.index} loses {one.detail} of {one.file}" for one in lost[:_NAMED]
    )
    more = f"; and so on, in {len(lost)} files" if len(lost) > _NAMED else ""
    names = dict.fromkeys(one.index for one in lost)
    rebuild = "; ".join(f"REFRESH SIEVE INDEX {name} ON {label} FULL" for name in names)
    raise CorruptError(
        "SIEVE_FALSE_NEGATIVE",
        f"queries of {label} can lose rows: {losses}{more}. Report this fault of Sieve, and "
        f"rebuild: {rebuild}. Until then, disable the index: ALTER SIEVE INDEX ... DISABLE",
    )


def _read(
    table: CatalogTable,
    index: OpenVersion,
    numbers: Sequence[int],
    tiling: Tiling,
    places: Counts,
    environment: Environment,
) -> list[_Seen]:
    """Reads files range by range; ``places`` contains each file's slots in the index's runs."""
    runs = index.manifest.runs
    column = Column(index.manifest.column, index.manifest.type)
    begins = np.cumsum([0, *(run.locations for run in runs)])
    seen = [_Seen() for _ in tiling.owners]
    for own, numbers_of_runs in by_runs(runs_of(places, runs)):
        some = tiling.chosen(own)
        ranges = np.flatnonzero(np.isin(tiling.owners, own)).tolist()
        firsts = [ordinals_in(places[own], begins[k], begins[k + 1]) for k in numbers_of_runs]
        ordinals = [
            np.where(first[some.owners] < 0, -1, first[some.owners] + some.within).tolist()
            for first in firsts
        ]
        # A file without keys is in no run. If no file has a key, the index has no run.
        for rounds in shared_rounds([runs[k] for k in numbers_of_runs]):
            files = len(own)
            environment.describe_job(f"checking {index.manifest.name}, {files} files")
            frame = table.frame([numbers[k] for k in own], column, cuts=some.cuts, whole_texts=True)
            values = column_values(frame, column)
            for location, *counts, missed, damaged, key, least, greatest in _lines(
                values, index, rounds, ordinals
            ):
                one = seen[ranges[location]]
                if least is not None and greatest is not None:
                    one.least = min(one.least, least)
                    one.greatest = max(one.greatest, greatest)
                one.rows, one.nulls, one.nans = counts
                one.missed += missed
                one.damaged = damaged
                one.key = one.key or key
        for location in _missing_bits(
            table, index, column, [numbers[k] for k in own], some, numbers_of_runs, ordinals
        ):
            seen[ranges[location]].lacks_bits = True
    return seen


def _missing_bits(
    table: CatalogTable,
    index: OpenVersion,
    column: Column,
    numbers: Sequence[int],
    tiling: Tiling,
    numbers_of_runs: Sequence[int],
    ordinals: Sequence[Sequence[int]],
) -> Iterator[int]:
    """Yields the locations whose signatures lack a bit of their texts."""
    for runs in signature_rounds([index.manifest.runs[k] for k in numbers_of_runs]):
        contents = _contents(index, runs)
        bits = max(bits_of(segments_of(run, index.directory, contents)) for run in runs)
        if not bits:
            continue
        frame = table.frame(numbers, column, cuts=tiling.cuts, signature_bits=bits, folds=False)
        rows = frame.where(sf.col(SIGNATURE).isNotNull()).select(LOCATION, SIGNATURE)
        with _sent(frame, contents) as files:
            step = find_missing_bits(runs, ordinals, index.directory, files)
            yield from (row[0] for row in map_batches(rows, step, MISSING_BITS).collect())


def _lines(
    values: DataFrame, index: OpenVersion, asked: Sequence[Round], ordinals: Sequence[Sequence[int]]
) -> list[tuple[int, int, int, int, int, int, str | None, int | None, int | None]]:
    """Looks up the keys of all rows; returns one row of `check_task.SEEN` for each location."""
    if any(one.hashes is not None for one in asked) and not index.encoder.exact:
        values = values.select("*", sf.xxhash64("v"))
    with _sent(values, _contents(index, [one.run for one in asked])) as files:
        step = check_task.look_up_keys(index.encoder, asked, index.directory, ordinals, files)
        counts = [sf.sum(name) for name in ("rows", "nulls", "nans", "missed", "damaged")]
        lines = map_batches(values, step, check_task.SEEN)
        others = (sf.min("key"), sf.min("least"), sf.max("greatest"))
        return [tuple(r) for r in lines.groupBy("location").agg(*counts, *others).collect()]


def _contents(index: OpenVersion, runs: Sequence[RunRef]) -> dict[str, bytes]:
    """The verified contents of the files of some runs, by their URIs."""
    uris = {run_file(index.directory, run.id, file): file for run in runs for file in run.files}
    return {uri: verified(index.store, uri, file) for uri, file in uris.items()}


@contextlib.contextmanager
def _sent(
    frame: DataFrame, files: Mapping[str, bytes]
) -> Iterator[Callable[[], Mapping[str, bytes]]]:
    """Sends files to executors, which keep them until the block ends."""
    sent = frame.sparkSession.sparkContext.broadcast(files)
    del files
    try:
        yield lambda: sent.value
    finally:
        sent.destroy()


def _loss(index: OpenVersion, place: int, seen: _Seen) -> str:
    """Describes the rows of a location that queries would lose; "" if queries lose no row."""
    if seen.damaged:
        return "the rows of a damaged record, which differ from query to query,"
    if seen.missed:
        return f"key {seen.key} ({seen.missed} rows of such keys)"
    if wrong := _contradiction(index, place, seen):
        return wrong
    where, manifest = index.locations().every_range, index.manifest
    rows, nulls, nans = (int(c[place]) for c in (where.rows, where.nulls, where.nans))
    # If other columns of a query affect which rows are NULL, look-ups do not use the number of
    # NULLs.
    told = [("rows", seen.rows, rows), ("NaN", seen.nans, nans)]
    told += [("NULL", seen.nulls, nulls)] if manifest.null_proof else []
    if kind_of(manifest.column) == SUBSTRING:
        # Each task counts the distinct keys of its own rows, so the sum depends on how Spark
        # divides the rows.
        told = []
    for what, there, listed in told:
        if listed < there:
            return f"{what} ({there} rows in the file, {listed} in the index)"
    if seen.rows > seen.nulls + seen.nans and rows <= nulls + nans:
        return f"every key ({nulls} NULL and {nans} NaN of {rows} rows in the index)"
    return ""


def _contradiction(index: OpenVersion, place: int, seen: _Seen) -> str:
    """Returns a message if a location's signature or bounds contradict its values, else ""."""
    if seen.lacks_bits:
        return f"a sequence of {LONG_GRAM_BYTES} bytes"
    bounds = index.placement().bounds
    if bounds is None or not bounds.known[place]:
        return ""
    least, greatest = int(bounds.least[place]), int(bounds.greatest[place])
    if seen.least < least or seen.greatest > greatest:
        return "keys that are not between the least and the greatest key in the index"
    # Hudi's reader merges log files, so the row with the least or greatest key may no longer exist.
    if index.manifest.format_name != "hudi" and (seen.least, seen.greatest) != (least, greatest):
        return "first rows, because no row has the least or the greatest key in the index,"
    return ""
