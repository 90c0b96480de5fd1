"""Writes the files of a run and reads them back, before a version refers to the run."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame

from sieve.errors import SieveError
from sieve.indexing.column_profile import ColumnProfile
from sieve.indexing.local_rows import LocalRows, Rows
from sieve.indexing.shared_storage import named_if_unseen, not_shared, seen_by_all
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.paths import run_dir
from sieve.metadata.pending_writes import claim_of, discard_run, note_run
from sieve.metadata.records import RunId, RunRef
from sieve.reader.run_file import describe_run
from sieve.segments.budget import within_budget
from sieve.storage.interface import Store, join

# Truncates the statistics in Parquet's footer, which otherwise contain two whole payloads.
_OPTIONS: Final = {"parquet.statistics.truncate.length": "1", "compression": "zstd"}


def write_within(
    make: Callable[[float], Rows],
    column_profile: ColumnProfile,
    options: IndexOptions,
    store: Store,
    index_dir: str,
) -> RunRef:
    """Writes a run; if it exceeds the budget, writes it again with a higher cost per byte.

    Args:
        make: makes the rows of the run; its argument is a factor for the estimated cost per byte.
    """

    def write(times: float) -> tuple[RunRef, float]:
        run = _write(make(times), column_profile, store, index_dir)
        return run, run.bytes

    def delete(run: RunRef) -> None:
        discard_run(store, index_dir, run.id)

    return within_budget(write, column_profile.most(options), delete)


def _write(rows: Rows, column_profile: ColumnProfile, store: Store, index_dir: str) -> RunRef:
    run_id = RunId(secrets.token_hex(16))
    target = run_dir(index_dir, run_id)
    claim = note_run(store, index_dir, run_id)
    try:
        write_rows(rows, target, claim)
        return _read_back(store, target, run_id, column_profile)
    except BaseException:
        with contextlib.suppress(SieveError):
            discard_run(store, index_dir, run_id)
        raise


def extended(
    run: RunRef, rows: DataFrame, column_profile: ColumnProfile, store: Store, index_dir: str
) -> RunRef:
    """Writes more rows of a run that no version names yet; returns the run with these rows."""
    target = run_dir(index_dir, run.id)
    write_rows(rows, target, claim_of(index_dir, run.id), mode="append")
    return _read_back(store, target, run.id, column_profile)


def write_rows(rows: Rows, target: str, claim: str, mode: str | None = None) -> None:
    """Writes the rows of a run to files: the driver writes local rows; executors write other rows.

    The executors check that they see `claim`, the file of the driver's pending write.
    """
    if isinstance(rows, LocalRows):
        rows.write(target, **_OPTIONS)
        return
    with named_if_unseen(target):
        seen_by_all(rows, claim).write.options(**_OPTIONS).parquet(target, mode)


def _read_back(store: Store, target: str, run_id: RunId, column_profile: ColumnProfile) -> RunRef:
    try:
        names = [e.name for e in store.list(target) if e.name.endswith(".parquet")]
    except SieveError as error:
        raise not_shared(target) from error
    files = ((name, store.read(join(target, name))) for name in sorted(names))
    run = describe_run(run_id, column_profile.n_files, column_profile.sample.encoder, files)
    if run is None:
        raise not_shared(target)
    return run
