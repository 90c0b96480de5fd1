"""CHECK: read data files again and look every key of theirs up; none may be missed.

Executors read the column as a build does and look its keys up by the code of queries, in run files
that are sent to them. What comes back is a line a file.
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
from sieve.environment import Environment
from sieve.errors import CorruptError
from sieve.indexing import check_task
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.check_rounds import Round, by_runs, ordinals_in, shared_rounds
from sieve.indexing.reuse import runs_of
from sieve.metadata.paths import run_file
from sieve.operations.registered_index import Usable
from sieve.reader.cache import FileCache
from sieve.reader.run_reader import verified
from sieve.reader.version_reader import OpenIndex, open_version
from sieve.tables.file_status import FileStatus, file_statuses
from sieve.tables.table import LOCATION, CatalogTable, Column

OK, STALE, GONE, LOST = "ok", "stale", "gone", "missing key"
"""What a file is to an index: every key is found; always read, so not checked; no longer of the
table; or it would be skipped though it holds what is asked for."""

CHANGED: Final = "changed since the index was built"
OTHER_READER: Final = "the index was built for another reader, so this session reads every file"
OUTDATED: Final = (
    "an earlier release built the index by one column of each record, so every file is read"
)
_WHY: Final[Mapping[FileStatus, str]] = {
    "same": "",
    "new": "new since the index was built",
    "unsettled": "too young to be relied on when the index was built",
    "unproven": "proved nothing when the index was built, as a file without rows or with a damaged "
    "record does",
    "changed": CHANGED,
}
"""Why a query reads a file whatever it asks for; empty if the index may rule the file out."""
_NAMED: Final = 10
"""Files that the error for a loss names at most."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """What was found of a file: the index's name, its path, one of the words above, and why."""

    index: str
    file: str
    status: str
    detail: str


@dataclass(slots=True)
class _Seen:
    """What a file holds: rows, those whose keys look-ups miss, one such key, damaged records."""

    rows: int = 0
    nulls: int = 0
    nans: int = 0
    missed: int = 0
    damaged: int = 0
    key: str | None = None


def check_index(
    table: CatalogTable,
    index: Usable,
    percent: float,
    environment: Environment,
    draw: Callable[[Sequence[int], int], Sequence[int]] = random.sample,
) -> list[CheckedFile]:
    """Look up every key of the table's files that an index may skip.

    Args:
        table: the table, as it is now.
        index: the index.
        percent: share of these files to be read, above 0; one at least.
        environment: the means.
        draw: some of them.

    Returns:
        By path, one for each file that was read, that needs no check, or that is gone.

    Raises:
        UnsupportedError: a later release wrote it.
        CorruptError, UnavailableError: a file of the index is damaged or out of reach.
        Py4JJavaError: a data file cannot be read; Spark's message names it.
    """
    manifest = index.manifest
    files = table.files()
    if manifest.fingerprint != table.info.fingerprint:
        outdated = manifest.is_outdated
        why = OUTDATED if outdated else OTHER_READER
        return [CheckedFile(manifest.name, file.path, STALE, why) for file in files]
    opened = open_version(index.store, index.directory, manifest, FileCache(sys.maxsize))
    where = opened.locations()
    places = {path: place for place, path in enumerate(where.paths)}
    stale = {number: _WHY[status] for number, status in enumerate(file_statuses(where, files))}
    usable = [number for number, why in stale.items() if not why]
    chosen = sorted(draw(usable, math.ceil(len(usable) * percent / 100)))
    at = np.array([places[files[number].path] for number in chosen], np.intp)
    seen = _read(table, opened, chosen, where.places[at], environment)
    details = [_loss(opened, int(k), one) for k, one in zip(at, seen, strict=True)]
    # A file that was replaced while it was read tells nothing of what the index knows.
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
    """Raise CorruptError if a check has found what an index would lose; names files and keys.

    Args:
        label: the table's name for messages.
        checked: of any of its indexes.
    """
    lost = [one for one in checked if one.status == LOST]
    if not lost:
        return
    told = "; ".join(f"index {one.index} loses {one.detail} of {one.file}" for one in lost[:_NAMED])
    more = f"; and so on, in {len(lost)} files" if len(lost) > _NAMED else ""
    names = dict.fromkeys(one.index for one in lost)
    anew = "; ".join(f"REFRESH SIEVE INDEX {name} ON {label} FULL" for name in names)
    raise CorruptError(
        "SIEVE_FALSE_NEGATIVE",
        f"queries of {label} can lose rows: {told}{more}. Report this fault of Sieve, and build "
        f"anew: {anew}. Until then ALTER SIEVE INDEX ... DISABLE keeps an index from being used",
    )


def _read(
    table: CatalogTable,
    index: OpenIndex,
    numbers: Sequence[int],
    places: Counts,
    environment: Environment,
) -> list[_Seen]:
    """What is seen of files, given with their places in the version's runs laid end to end."""
    runs = index.manifest.runs
    column = Column(index.manifest.column, index.manifest.type)
    begins = np.cumsum([0, *(run.locations for run in runs)])
    seen = [_Seen() for _ in numbers]
    for own, numbers_of_runs in by_runs(runs_of(places, runs)):
        ordinals = [
            ordinals_in(places[own], begins[k], begins[k + 1]).tolist() for k in numbers_of_runs
        ]
        # Files without keys are in no run, and may have none.
        for rounds in shared_rounds([runs[k] for k in numbers_of_runs]):
            environment.describe_job(f"checking {index.manifest.name}")
            frame = table.frame([numbers[k] for k in own], column)
            values = frame.select(sf.col(column.expression).alias("v"), LOCATION)
            for location, *counts, missed, damaged, key in _lines(values, index, rounds, ordinals):
                one = seen[own[location]]
                one.rows, one.nulls, one.nans = counts
                one.missed += missed
                one.damaged = damaged
                one.key = one.key or key
    return seen


def _lines(
    values: DataFrame, index: OpenIndex, asked: Sequence[Round], ordinals: Sequence[Sequence[int]]
) -> list[tuple[int, int, int, int, int, int, str | None]]:
    """Place among the files, rows, nulls, nans, rows missed, damaged records, a lost key."""
    if any(one.hashes is not None for one in asked) and not index.encoder.exact:
        values = values.select("*", sf.xxhash64("v"))
    with _sent(values, index, asked) as files:
        step = check_task.look_up_keys(index.encoder, asked, index.directory, ordinals, files)
        counts = [sf.sum(name) for name in ("rows", "nulls", "nans", "missed", "damaged")]
        lines = map_batches(values, step, check_task.SEEN_SCHEMA)
        return [tuple(r) for r in lines.groupBy("location").agg(*counts, sf.min("key")).collect()]


@contextlib.contextmanager
def _sent(
    frame: DataFrame, index: OpenIndex, asked: Sequence[Round]
) -> Iterator[Callable[[], Mapping[str, bytes]]]:
    """The run files of rounds, verified and sent to executors, until the block ends."""
    files: dict[str, bytes] = {}
    for one in asked:
        for file in one.run.files:
            uri = run_file(index.directory, one.run.id, file)
            files[uri] = verified(index.store, uri, file)
    sent = frame.sparkSession.sparkContext.broadcast(files)
    del files
    try:
        yield lambda: sent.value
    finally:
        sent.destroy()


def _loss(index: OpenIndex, place: int, seen: _Seen) -> str:
    """What queries lose of a location; empty if nothing."""
    if seen.damaged:
        return "the rows of a damaged record, which differ from query to query,"
    if seen.missed:
        return f"key {seen.key} ({seen.missed} rows of such keys)"
    where, manifest = index.locations(), index.manifest
    rows, nulls, nans = (int(c[place]) for c in (where.rows, where.nulls, where.nans))
    # Which rows have NULL may depend on what else a query reads; then no look-up goes by it.
    told = [("rows", seen.rows, rows), ("NaN", seen.nans, nans)]
    told += [("NULL", seen.nulls, nulls)] if manifest.null_proof else []
    for what, there, listed in told:
        if listed < there:
            return f"{what} ({there} rows in the file, {listed} in the index)"
    if seen.rows > seen.nulls + seen.nans and rows <= nulls + nans:
        return f"every key ({nulls} NULL and {nans} NaN of {rows} rows in the index)"
    return ""
