"""The contents of a version: list the table, read it, write run and list of locations."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from datetime import UTC, datetime

import numpy as np

from sieve.build.run import BuiltRun, build_run
from sieve.build.settle import Snapshot, settled_snapshot
from sieve.errors import SieveError, UnavailableError
from sieve.layout import locations_file, run_dir
from sieve.locations import UNPROVEN, UNSETTLED, Locations, render_locations
from sieve.options import IndexOptions
from sieve.store import Store
from sieve.tables.catalog import CatalogTable, Column, DataFile, roots_of
from sieve.tables.kinds import COUNTED, refuse_option
from sieve.transitions import Refresh
from sieve.types import BuildStats, FileRef, LocationsRef
from sieve.world import World


def build_contents(
    table: CatalogTable,
    column: Column,
    options: IndexOptions,
    store: Store,
    index_dir: str,
    world: World,
) -> Refresh:
    """Index the table as it is now into files below ``index_dir``; nothing refers to them yet.

    What fails leaves none of them.

    Raises:
        UnsupportedError: the table's options make its values hang on what else a query reads.
        Py4JJavaError: a data file cannot be read; Spark's message names it.
    """
    refused = refuse_option(table.info.label, table.info.fingerprint_parts)
    if refused is not None:
        raise refused
    started = time.monotonic()
    snapshot = settled_snapshot(table.files, store, index_dir)
    numbers = [k for k, settled in enumerate(snapshot.settled) if settled]
    files = [snapshot.files[k] for k in numbers]
    built = _run(table, column, options, store, index_dir, files, numbers, world)
    young = [f for f, settled in zip(snapshot.files, snapshot.settled, strict=True) if not settled]
    roots = roots_of(table, [*files, *young])
    try:
        world.check_cancelled()
        locations = _with_unsettled(_unchanged(built, files, table.files()), young)
        ref = _store_locations(store, index_dir, locations, roots)
    except BaseException:
        if built.run is not None:
            with contextlib.suppress(SieveError):
                store.delete(run_dir(index_dir, built.run.id))
        raise
    known = built.rows >= 0
    return Refresh(
        instant=_iso(snapshot.instant_ms),
        type=column.type,
        options=options,
        format_name=table.info.format_name,
        null_proof=table.info.format_name in COUNTED,
        fingerprint=table.info.fingerprint,
        fingerprint_parts=table.info.fingerprint_parts,
        runs=() if built.run is None else (built.run,),
        locations=ref,
        roots=roots,
        stats=BuildStats(
            rows=int(built.rows[known].sum()),
            nulls=int(built.nulls[known].sum()),
            nans=int(built.nans[known].sum()),
            column_bytes=int(built.rows[known].sum() * built.width),
            seconds=round(time.monotonic() - started, 3),
            expected=built.expected,
            files_total=len(snapshot.files),
        ),
    )


def _run(
    table: CatalogTable,
    column: Column,
    options: IndexOptions,
    store: Store,
    index_dir: str,
    files: list[DataFile],
    numbers: list[int],
    world: World,
) -> BuiltRun:
    if not files:
        none = np.zeros(0, np.int64)
        return BuiltRun(None, none, none, none, (), 0.0)
    return build_run(
        table.frame(numbers),
        column,
        [file.length for file in files],
        options,
        store,
        index_dir,
        counted=table.info.format_name in COUNTED,
        say=world.say,
    )


def _unchanged(built: BuiltRun, files: list[DataFile], after: tuple[DataFile, ...]) -> Locations:
    """The locations as they stand in the run; those that changed meanwhile match no file."""
    now = {file.path: (file.length, file.mtime) for file in after}
    same = np.array([now.get(f.path) == (f.length, f.mtime) for f in files], np.bool_)
    proven = same & (built.rows >= 0)
    # An ordinal must keep its place in the run, so an unproven location stays, with a length that
    # no file has.
    return Locations(
        tuple(file.path for file in files),
        np.where(proven, [file.length for file in files], UNPROVEN).astype(np.int64),
        np.array([file.mtime for file in files], np.int64),
        np.where(proven, built.rows, 0),
        np.where(proven, built.nulls, 0),
        np.where(proven, built.nans, 0),
    )


def _with_unsettled(locations: Locations, files: list[DataFile]) -> Locations:
    """The locations and, behind those of the run, the files that were left for a later refresh."""
    none = np.zeros(len(files), np.int64)
    return Locations(
        (*locations.paths, *(file.path for file in files)),
        np.append(locations.lengths, none + UNSETTLED),
        np.append(locations.mtimes, np.array([file.mtime for file in files], np.int64)),
        *(np.append(column, none) for column in (locations.rows, locations.nulls, locations.nans)),
    )


def _store_locations(
    store: Store, index_dir: str, locations: Locations, roots: tuple[str, ...]
) -> LocationsRef:
    data = render_locations(locations, roots)
    name = f"{secrets.token_hex(16)}.parquet"
    uri = locations_file(index_dir, name)
    if not store.create(uri, data):
        raise UnavailableError(
            "SIEVE_NAME_TAKEN", f"{uri} is there already; run the statement again"
        )
    digest = hashlib.sha256(data).hexdigest()
    return LocationsRef(FileRef(name, len(data), digest), len(locations.paths))


def _iso(ms: int) -> str:
    return (
        datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
    )


def is_current(locations: Locations, snapshot: Snapshot) -> bool:
    """Whether a version's locations are exactly the table's files of now.

    A location that proves nothing, such as a file without rows, is current by its time alone, and
    so is one that is still unsettled: to read it again would prove no more.
    """
    lengths, times = locations.lengths.tolist(), locations.mtimes.tolist()
    known = dict(zip(locations.paths, zip(lengths, times, strict=True), strict=True))
    return len(known) == len(snapshot.files) and all(
        known.get(f.path)
        in (((f.length, f.mtime), (UNPROVEN, f.mtime)) if settled else ((UNSETTLED, f.mtime),))
        for f, settled in zip(snapshot.files, snapshot.settled, strict=True)
    )
