"""Builds the contents of a version: reads data files, and writes a run and the file list."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sieve.arrays.dtypes import Counts
from sieve.environment import Environment
from sieve.errors import ConflictError, SieveError
from sieve.index_key import SUBSTRING
from sieve.indexing.build_run import BuiltRun, build_run
from sieve.indexing.column_profile import rows_to_count
from sieve.indexing.find_unreadable_file import named_if_unreadable
from sieve.indexing.reuse import NOTHING, ReusedRuns
from sieve.indexing.signatures import signature_bits
from sieve.indexing.tiling import locations_of, tile, whole_files
from sieve.indexing.write_file_list import NOTHING_STORED, Stored, store_list
from sieve.metadata.contents import Contents
from sieve.metadata.file_list import FileState, Locations, concat, states_of
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.pending_writes import discard_run
from sieve.metadata.records import BuildStats
from sieve.metadata.text_formats import TEXT_FORMATS
from sieve.metadata.timestamps import iso
from sieve.storage.interface import Store
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile
from sieve.tables.formats import COUNTED
from sieve.tables.snapshot import Snapshot, roots_of
from sieve.tables.table import CatalogTable
from sieve.tables.table_info import refuse_build

_NONE = np.zeros(0, np.int64)
_NO_RUN = BuiltRun(None, whole_files(()), _NONE, _NONE, _NONE, (), 0.0)


class ReaderChangedError(ConflictError):
    """A setting changed during the build, so Spark may have read files in different ways."""


def build_contents(
    table: CatalogTable,
    column: Column,
    options: IndexOptions,
    store: Store,
    index_dir: str,
    environment: Environment,
    snapshot: Snapshot,
    *,
    name: str,
    reused: ReusedRuns = NOTHING,
    before: Stored = NOTHING_STORED,
) -> Contents:
    """Reads and indexes the files whose index data a refresh cannot reuse.

    No version refers to the result yet. If the build fails, it deletes the run that it has written.

    Args:
        name: the index's name.
        reused: the runs and locations that the new version reuses from an earlier one. If writers
            have appended log files to a reused location, the build reads only these log files. The
            build reads no other reused locations.
        before: the file list of the earlier version, whose parts the new list can reuse.

    Raises:
        UnsupportedError: Sieve cannot build indexes on the table; see `refuse_build`.
        Py4JJavaError: Spark failed. If Spark cannot read a data file, the message names the file.
        UnavailableError: Spark cannot read a data file, and Spark's own message does not name it.
            This error names the file.
        ReaderChangedError: a setting that affects how Spark reads the files changed during the
            build.
    """
    refuse_build(table.info)
    started = time.monotonic()
    held = frozenset(reused.locations.paths) - reused.appended
    numbers = [
        number
        for number, (file, stable) in enumerate(zip(snapshot.files, snapshot.stable, strict=True))
        if stable and file.path not in held
    ]
    files = [snapshot.files[number] for number in numbers]
    appended = frozenset(n for n in numbers if snapshot.files[n].path in reused.appended)
    built = _NO_RUN
    if files:
        with named_if_unreadable(table, column, files, numbers, environment):
            environment.describe_job("cutting files into ranges")
            tiling = tile(table, numbers, files, options, environment.range_bytes)
            of_text = column.kind == SUBSTRING
            of_files, of_ranges = (
                signature_bits(sizes, options) if of_text else 0
                for sizes in (tiling.lengths, tiling.sizes)
            )
            whole = table.frame(numbers, column, appended, signature_bits=of_files)
            built = build_run(
                table.frame(numbers, column, appended, tiling.cuts, signature_bits=of_ranges)
                if tiling.is_cut
                else whole,
                column,
                tiling,
                options,
                store,
                index_dir,
                whole=whole,
                counting=rows_to_count(table, files, whole, column),
                encoder=reused.encoder,
                added=np.isin(numbers, list(appended)),
                describe_job=environment.describe_job,
                write_file=table.write_file,
            )
    young = [f for f, stable in zip(snapshot.files, snapshot.stable, strict=True) if not stable]
    if young:
        environment.advice.add(
            f"{len(young)} of {len(snapshot.files)} files were written too shortly before to be "
            "relied on, or have a time in the future: queries read them whatever they ask for, "
            "until a REFRESH takes them in"
        )
    first_slot = sum(run.locations for run in reused.runs)
    try:
        environment.check_cancelled()
        # A snapshot reuses a version's list of files only if the format never changes a written
        # file. So no file can have changed, and a second listing is needless.
        now = snapshot.files if snapshot.taken_over else table.files()
        if files:
            _check_reader(table)
        is_text = table.info.format_name in TEXT_FORMATS
        read = _unchanged(built, files, now, first_slot, is_text=is_text)
        locations = concat(_with_appended(reused, read), _racy(young))
        why = "have a damaged record, such as a value too few or of another type"
        if column.computed:
            fails = f"have no rows, or a row for which {column} fails"
            why = f"{fails}, or {why}" if is_text else fails
        if (is_text or column.computed) and (damaged := _damaged(locations, snapshot.files)):
            environment.advice.add(
                f"{damaged} of {len(snapshot.files)} files {why}: queries read these files "
                "whatever they ask for",
                name,
            )
        roots = roots_of(table, snapshot.files)
        listed, roots = store_list(store, index_dir, locations, roots, before)
    except BaseException:
        if built.run is not None:
            with contextlib.suppress(SieveError):
                discard_run(store, index_dir, built.run.id)
        raise
    ranges_total = len(built.tiling.owners) + len(snapshot.files) - len(files)
    bytes_total = sum(file.length for file in snapshot.files)
    before_all = reused.stats or BuildStats(
        0, 0, 0, 0, 0.0, built.expected, len(snapshot.files), ranges_total, bytes_total
    )
    return Contents(
        instant=iso(snapshot.instant_ms),
        type=column.type,
        options=options,
        format_name=table.info.format_name,
        null_proof=table.info.format_name in COUNTED,
        fingerprint=table.info.fingerprint,
        fingerprint_parts=table.info.fingerprint_parts,
        runs=(*reused.runs, *(() if built.run is None else (built.run,))),
        locations=listed,
        roots=roots,
        commit=snapshot.commit,
        stats=replace(
            before_all,
            rows=int(locations.rows.sum()),
            nulls=int(locations.nulls.sum()),
            nans=int(locations.nans.sum()),
            column_bytes=int(reused.column_bytes + read.rows.sum() * built.width),
            seconds=round(time.monotonic() - started, 3),
        ),
    )


def _check_reader(table: CatalogTable) -> None:
    if table.fingerprint() != table.info.fingerprint:
        raise ReaderChangedError(
            "SIEVE_READER_CHANGED",
            "while the build read the column, another thread changed a setting that decides how "
            f"Spark reads {table.info.label}; run the statement again",
        )


def _unchanged(
    built: BuiltRun,
    files: list[DataFile],
    after: tuple[DataFile, ...],
    first_slot: int,
    *,
    is_text: bool,
) -> Locations:
    """Returns the list of the read files; files that changed during the build count as unproven.

    The result omits files that no longer exist. A rename of the table could make a missing file
    exist again, with a new path and its old time. If the list contained the file, no refresh would
    read it.
    """
    now = {file.path: (file.length, file.mtime) for file in after}
    same = np.array([now.get(f.path) == (f.length, f.mtime) for f in files], np.bool_)
    proven = same & (built.rows[built.tiling.firsts] >= 0)
    if is_text:
        # If a text file's first range does not contain the header, a later range returns the header
        # as a row.
        proven &= (built.tiling.counts == 1) | (built.rows[built.tiling.firsts] > 0)
    counts = (built.rows, built.nulls, built.nans)
    slot = first_slot if built.run else None
    there = np.array([file.path in now for file in files], np.bool_)
    bounds = built.bounds if built.run else None
    return locations_of(files, built.tiling, counts, proven, slot, bounds).chosen(there)


def _with_appended(reused: ReusedRuns, read: Locations) -> Locations:
    """Merges reused and new locations; adds the rows of appended log files to the counts."""
    if not reused.appended:
        return concat(reused.locations, read)
    grew = np.array([path in reused.appended for path in reused.locations.paths], np.bool_)
    added = np.array([path in reused.appended for path in read.paths], np.bool_)
    before, appended = reused.locations.chosen(grew), read.chosen(added)
    place = {path: k for k, path in enumerate(before.paths)}
    at = np.array([place[path] for path in appended.paths], np.intp)
    both = replace(
        appended.at_places(_packed(np.hstack([before.places[at], appended.places]))),
        rows=before.rows[at] + appended.rows,
        nulls=before.nulls[at] + appended.nulls,
        nans=before.nans[at] + appended.nans,
        bounds=before.key_bounds.chosen(at).over(
            appended.key_bounds, (_keyed(before)[at], _keyed(appended))
        ),
    )
    # The next refresh reads the locations that the build read incompletely or that changed during
    # the build.
    both = both.chosen(appended.states != FileState.UNPROVEN)
    return concat(reused.locations.chosen(~grew), read.chosen(~added), both)


def _keyed(locations: Locations) -> Counts:
    """Returns int64[n]: the number of rows with a key in each file."""
    return locations.rows - locations.nulls - locations.nans


def _damaged(locations: Locations, files: Sequence[DataFile]) -> int:
    """The number of unproven files that are not empty; queries must always read unproven files."""
    filled = {file.path for file in files if file.length}
    unproven = (locations.states == FileState.UNPROVEN).tolist()
    return len(
        {path for path, is_one in zip(locations.paths, unproven, strict=True) if is_one} & filled
    )


def _packed(places: Counts) -> Counts:
    """Moves each -1 to the end of its row of `places`; drops columns that contain only -1."""
    order = np.argsort(places < 0, axis=1, kind="stable")
    packed = np.take_along_axis(places, order, axis=1)
    return packed[:, : max(1, int((places >= 0).sum(axis=1).max(initial=0)))]


def _racy(files: list[DataFile]) -> Locations:
    """Returns the rows of the file list for racy files, which a later refresh must read."""
    none = np.zeros(len(files), np.int64)
    states = states_of(len(files), FileState.RACY)
    times = np.array([file.mtime for file in files], np.int64)
    paths = tuple(file.path for file in files)
    return Locations(paths, states, none, times, none, none, none, none - 1)
