"""A table whose rows are in frames that replace Spark's, and an index of this table on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from sieve.encoding.encoder import Encoder
from sieve.indexing.build_run import build_run
from sieve.indexing.local_rows import WriteFile
from sieve.indexing.tiling import Tiling, whole_files
from sieve.metadata.file_list import Locations
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import Expected, RunRef
from sieve.metadata.registration import Registration
from sieve.operations.registered_index import Ready
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile, FileCuts
from sieve.tables.table import LOCATION
from tests.built_index import PARTS, ROOT, plain_locations, write_version
from tests.fake_frames import Cluster, Frame
from tests.unit.metadata.manifest_sample import SAMPLE

LENGTH = 1000
ARROW = {"bigint": pa.int64(), "string": pa.string(), "double": pa.float64()}

Ranges = list[list[Any]]
"""The values of a file, by range."""


class Table:
    """A table of files with one or more ranges each; `DAMAGED` stands for a damaged record.

    Attributes:
        expected: the expected reads of the last index that was built.
        write_file: the function that writes a run's file in the front end. None if executors write
            all files.
    """

    write_file: WriteFile | None = None

    def __init__(self, type_: str, files: Sequence[Ranges], length: int = LENGTH) -> None:
        self.length = length
        self.type, self.values = type_, [list(map(list, ranges)) for ranges in files]
        self.listings = [[DataFile(f"{ROOT}/{k}", length, 1) for k in range(len(files))]]
        self.info: Any = SimpleNamespace(
            fingerprint="0" * 64, fingerprint_parts=PARTS,
            format_name="parquet", label="d.t", columns=(),
            identity=replace(SAMPLE.table, location=ROOT),
            partition_columns=(),
        )  # fmt: skip
        self.cluster = Cluster()
        self.expected: tuple[Expected, ...] = ()

    def files(self) -> tuple[DataFile, ...]:
        """Returns the files of the next listing; at the end, repeats the last listing."""
        listing = self.listings.pop(0) if len(self.listings) > 1 else self.listings[0]
        return tuple(map(replace, listing))

    def tiling(self) -> Tiling:
        """Returns the tiling; each range of a file has 100 bytes, except the file's last range."""
        whole = whole_files([self.length] * len(self.values))
        cuts = tuple(tuple(100 * k for k in range(1, len(some))) for some in self.values)
        return Tiling(whole.lengths, cuts, whole.footers)

    def cuts(self, numbers: Sequence[int], _: int) -> list[FileCuts]:
        """Returns the offsets at which a build can cut each of these files."""
        return [FileCuts(self.tiling().cuts[k], 0) for k in numbers]

    def frame(
        self,
        numbers: Sequence[int],
        _: object,
        _news: object = (),
        cuts: Sequence[object] = (),
        **_how: object,
    ) -> Frame:
        """Returns a frame with the rows of these files, or of their ranges if `cuts` is given."""
        files = [self.values[k] for k in numbers]
        if not cuts:
            files = [[[value for some in ranges for value in some]] for ranges in files]
        ranges = [some for file in files for some in file]
        parts = [
            [{"v": None, LOCATION: -1 - at} if value is DAMAGED else {"v": value, LOCATION: at}
             for value in values]
            for at, values in enumerate(ranges)
        ]  # fmt: skip
        return Frame({"v": ARROW[self.type], LOCATION: pa.int32()}, parts, self.cluster)


DAMAGED = object()


def index(
    folder: Path, table: Table, options: IndexOptions, parts: Sequence[Sequence[int]] = ()
) -> Ready:
    """Indexes a table without damaged files. For each run, `parts` lists the run's files."""
    store, home = LocalStore(), f"file:{folder / SAMPLE.index}"
    store.mkdirs(f"{home}/intents")
    runs: list[RunRef] = []
    tiling = table.tiling()
    slots = np.full(len(table.values), -1, np.int64)
    for numbers in parts or [range(len(table.values))]:
        of_run = tiling.chosen(numbers)
        slots[[*numbers]] = sum(run.locations for run in runs) + of_run.firsts
        frame: Any = table.frame(numbers, None, cuts=of_run.cuts)
        whole: Any = table.frame(numbers, None)
        built = build_run(
            frame, Column(("v",), table.type), of_run, options, store, home,
            whole=whole, counting=whole, describe_job=lambda _: None,
            encoder=Encoder.from_json(dict(runs[0].encoder)) if runs else None,
        )  # fmt: skip
        assert built.run is not None
        runs.append(built.run)
        table.expected = built.expected
    version = write_version(folder / SAMPLE.index, runs, _locations(table, tiling, slots))
    version = replace(version, type=table.type, fingerprint="0" * 64, options=options)
    table.cluster.calls.clear()
    return Ready("v", Registration(SAMPLE.index, ("v",), f"file:{folder}"), store, version)


def _locations(table: Table, tiling: Tiling, slots: np.ndarray) -> Locations:
    ranges = [values for file in table.values for values in file]
    rows = np.array([len(values) for values in ranges], np.int64)
    nulls = np.array([values.count(None) for values in ranges], np.int64)
    nans = np.array([sum(str(value) == "nan" for value in values) for values in ranges], np.int64)
    n = len(table.values)
    sums = (tiling.of_files(column) for column in (rows, nulls, nans))
    return replace(
        plain_locations(n),
        **dict(zip(("rows", "nulls", "nans"), sums, strict=True)),
        lengths=np.full(n, table.length, np.int64),
        slots=slots,
        ranges=FileRanges(tiling.counts, tiling.footers, tiling.starts, rows, nulls, nans)
        if tiling.is_cut
        else None,
    )
