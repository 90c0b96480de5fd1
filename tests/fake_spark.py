"""Runs statements without Spark, on fakes.

A fake table consists of text files; the fake metastore is one file. Every part of an index is real:
grammar, statements, stores, index files and pruning. Fakes replace only Spark's work: the catalog's
entry point, the reading of a column, and the writing of a run. A statement therefore takes
milliseconds, so tests can inject a fault at each call and kill hundreds of processes. A location is
a file, or a range of three keys in a file.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PySparkException

from sieve.encoding.encoder import Encoder
from sieve.environment import Environment
from sieve.errors import InvalidInputError
from sieve.indexing import version_contents
from sieve.indexing import write_run as run_writer
from sieve.indexing.build_run import BuiltRun
from sieve.indexing.tiling import Tiling
from sieve.metadata.records import CreatedBy
from sieve.metadata.registration import PREFIX
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.storage.interface import Store
from sieve.storage.local import LocalStore
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.table import CatalogTable
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import DEFAULTS
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext
from sql_ext.statements.execute import execute
from sql_ext.statements.parser import parse_statement
from tests.built_index import Row as RunRow
from tests.built_index import run_file_bytes

DATABASE = "shop"
EPOCH_S = 1_600_000_000
MODES = ("files", "ranges")
"""The kinds of location that `without_spark` can use."""
KEYS_A_RANGE = 3
MARK = "e" * 64
"""Stands in for the hash of the reader's fingerprint."""
PARTS = {"format": "parquet x"}
"""The parts of the reader's fingerprint."""

RANGE_BYTES = DEFAULTS.range_bytes
"""Files with more bytes are cut into ranges."""

Seam = Callable[[str], None]
"""A hook that runs before each call of a store or metastore, and after it.

The hook can raise an error, wait, or kill the process.
"""


def no_fault(_: str) -> None:
    """Injects no fault at any call."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder with plain tables and a metastore."""

    folder: Path

    @property
    def root(self) -> Path:
        """The root folder of the warehouse's indexes."""
        return self.folder / ".sieve"

    def create_table(self, name: str, files: Sequence[Sequence[int]]) -> None:
        """Creates a table whose files contain these keys."""
        (self.folder / name).mkdir(parents=True)
        self.alter(name, lambda _: {"born": str(time.time_ns() // 1_000_000)})
        for keys in files:
            self.append(name, keys)

    def append(self, name: str, keys: Sequence[int]) -> None:
        """Adds a file with an old modification time, so that the file counts as stable."""
        folder = self.folder / name
        number = len(list(folder.iterdir()))
        path = folder / f"{number:05d}.txt"
        path.write_text("\n".join(map(str, keys)))
        os.utime(path, (EPOCH_S + number, EPOCH_S + number))

    def properties(self, name: str) -> dict[str, str]:
        """The properties of a table in the metastore."""
        told: dict[str, str] = json.loads((self.folder / f"{name}.properties").read_text())
        return told

    def alter(self, name: str, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Changes a table's properties atomically, as a metastore changes a single property."""
        path = self.folder / f"{name}.properties"
        with (self.folder / f"{name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self.properties(name) if path.exists() else {}
            path.with_suffix(".new").write_text(json.dumps(change(before)))
            path.with_suffix(".new").replace(path)

    def files(self, name: str) -> list[tuple[str, int, int]]:
        """The URI, length and time (in ms) of each file of a table."""
        told = []
        for path in sorted((self.folder / name).iterdir()):
            status = path.stat()
            told.append((f"file:{path}", status.st_size, status.st_mtime_ns // 1_000_000))
        return told

    def info(self, name: str) -> dict[str, Any]:
        """The shim's description of a table."""
        properties = self.properties(name)
        return {
            "catalog": "spark_catalog",
            "database": DATABASE,
            "table": name,
            "create_time_ms": int(properties["born"]),
            "location": f"file:{self.folder / name}",
            "format": "parquet",
            "columns": [{"path": ["id"], "type": "bigint"}],
            "registrations": registrations(properties),
            "declared": {
                key: value
                for key, value in properties.items()
                if key.startswith("sieve.") and not key.startswith(PREFIX)
            },
            "fingerprint": MARK,
            "fingerprint_parts": PARTS,
            "case_sensitive": False,
            "corrupt_column": "_corrupt_record",
            "database_location": f"file:{self.folder}",
            "hive": True,
            "spark": "4.1.4",
        }


def registrations(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that register indexes."""
    return {key: value for key, value in properties.items() if key.startswith(PREFIX)}


def keys_of(uri: str) -> list[int]:
    """The keys in a file of a table."""
    return [int(line) for line in Path(uri.removeprefix("file:")).read_text().split()]


def cuts_of(uri: str) -> list[int]:
    """The offsets at which a file is cut into ranges, each of `KEYS_A_RANGE` lines."""
    lines = Path(uri.removeprefix("file:")).read_text().splitlines(keepends=True)
    starts = np.cumsum([0, *map(len, lines)]).tolist()
    return starts[KEYS_A_RANGE : len(lines) : KEYS_A_RANGE]


def keys_by_range(uri: str, cuts: Sequence[int]) -> list[list[int]]:
    """The keys in each range of a file."""
    data = Path(uri.removeprefix("file:")).read_text()
    ends = [*cuts, len(data)]
    return [
        [int(line) for line in data[start:end].split()]
        for start, end in zip([0, *cuts], ends, strict=True)
    ]


class Access:
    """The shim's view of a table; raises Spark's error if the metastore refuses a call."""

    def __init__(self, warehouse: Warehouse, name: str, seam: Seam) -> None:
        self._warehouse, self._name, self._seam = warehouse, name, seam

    def kind(self) -> str:
        return "".join("files")  # As in py4j, each call returns a new string object.

    def info(self) -> str:
        return json.dumps(self._warehouse.info(self._name))

    def fingerprint(self) -> str:
        return MARK

    def list(self) -> str:
        return json.dumps(self._warehouse.files(self._name))

    def cuts(self, numbers: Sequence[int], _least: int) -> str:
        files = self._warehouse.files(self._name)
        offsets = (cuts_of(files[number][0]) for number in numbers)
        return json.dumps([{"offsets": some, "footer": 0} for some in offsets])

    def publish(self) -> str:
        return json.dumps(self._warehouse.properties(self._name))

    def setProperty(self, key: str, value: str) -> None:  # noqa: N802 - the shim's name
        with calling(self._seam, "metastore", key):
            self._warehouse.alter(self._name, lambda before: before | {key: value})

    def unsetProperty(self, key: str) -> None:  # noqa: N802 - the shim's name
        def without(before: dict[str, str]) -> dict[str, str]:
            return {name: value for name, value in before.items() if name != key}

        with calling(self._seam, "metastore", key):
            self._warehouse.alter(self._name, without)


class MetastoreFault(PySparkException):
    """Raised if the metastore answers with an error, or does not answer."""


@contextmanager
def calling(seam: Seam, what: str, of: str) -> Iterator[None]:
    """Calls the hook `seam` before and after each call of a store or a metastore."""
    seam(f"before {what} {of}")
    yield
    seam(f"after {what} {of}")


class PlainTable(CatalogTable):
    """A table whose rows Python reads, without Spark."""

    def __init__(self, warehouse: Warehouse, name: str, seam: Seam) -> None:
        super().__init__(Access(warehouse, name, seam), None)  # type: ignore[arg-type]

    def frame(
        self,
        numbers: Sequence[int],
        _column: object,
        _news: object = (),
        cuts: Sequence[Sequence[int]] = (),
        **_how: object,
    ) -> Any:
        """The keys at each location."""
        files = [self.files()[number].path for number in numbers]
        tiling = cuts or [()] * len(files)
        pairs = zip(files, tiling, strict=True)
        return [keys for path, some in pairs for keys in keys_by_range(path, some)]


@dataclass(frozen=True, slots=True)
class SeamStore(LocalStore):
    """A local store that calls the hook `seam` before and after each call."""

    seam: Seam = no_fault

    def read(self, uri: str, limit: int = 1 << 30) -> bytes:
        with calling(self.seam, "read", uri):
            return LocalStore.read(self, uri, limit)

    def size(self, uri: str) -> int | None:
        with calling(self.seam, "size", uri):
            return LocalStore.size(self, uri)

    def create(self, uri: str, data: bytes) -> bool:
        with calling(self.seam, "create", uri):
            return LocalStore.create(self, uri, data)

    def list(self, uri: str) -> Any:
        with calling(self.seam, "list", uri):
            return LocalStore.list(self, uri)

    def delete(self, uri: str) -> None:
        with calling(self.seam, "delete", uri):
            LocalStore.delete(self, uri)

    def mkdirs(self, uri: str) -> None:
        with calling(self.seam, "mkdirs", uri):
            LocalStore.mkdirs(self, uri)

    def now_ms(self, dir_uri: str) -> int:
        with calling(self.seam, "now_ms", dir_uri):
            return LocalStore.now_ms(self, dir_uri)


@dataclass(frozen=True, slots=True)
class PlainStatement(StatementContext):
    """The context in which a statement runs on a warehouse."""

    warehouse: Warehouse = field(kw_only=True)
    seam: Seam = field(kw_only=True)

    def table(self, name: commands.TableName, **_: bool) -> CatalogTable:
        if not (self.warehouse.folder / f"{name.parts[-1]}.properties").exists():
            raise InvalidInputError("SIEVE_UNKNOWN_TABLE", f"there is no table {name}")
        return PlainTable(self.warehouse, name.parts[-1], self.seam)

    def registered(self, name: commands.TableName) -> RegisteredTable:
        return self.table(name)

    def plan_column(self, table: Sequence[str], column: Sequence[str]) -> None:
        """Does nothing, because the user has the right to query every column."""

    def check_executors(self, table: CatalogTable, types: Sequence[str]) -> None:
        """Does nothing, because this process does the work of executors."""


class Session:
    """Runs SIEVE statements, and reports which files a scan reads.

    Args:
        warehouse: the warehouse.
        seam: the function that is called whenever a statement calls a store or the metastore.
    """

    def __init__(self, warehouse: Warehouse, seam: Seam = no_fault) -> None:
        self.warehouse, self._seam = warehouse, seam
        self.store: Store = SeamStore(seam)
        self.changing = False
        self.settings = DEFAULTS
        self.recorded: dict[str, Any] = {"driver": "own", "since": 0, "scans": []}

    def sql(self, text: str) -> list[Row]:
        """Runs a SIEVE statement, and returns its rows."""
        return execute(parse_statement(text), self.context())

    def context(self) -> StatementContext:
        """The context of one statement, or of one event."""
        roots = Roots(self)
        environment = Environment(
            open_store=lambda _: self.store,
            root_for_new=lambda location: f"{location}/.sieve",
            check_root=lambda root, database: roots.check(root, database, DEFAULTS, lambda: None),
            check_shared=lambda *_: None,
            check_cancelled=lambda: None,
            describe_job=lambda _: None,
            software=CreatedBy("0.1.0", "4.1.4"),
            range_bytes=RANGE_BYTES,
            changing=lambda: setattr(self, "changing", True),
        )
        return PlainStatement(
            driver=self,
            spark_context=SimpleNamespace(  # type: ignore[arg-type]
                getConf=lambda: {"spark.sql.catalogImplementation": "hive"}
            ),
            session=self,
            environment=environment,
            settings=self.settings,
            send_code=lambda: None,
            invalidate=lambda _: None,
            background=SimpleNamespace(  # type: ignore[arg-type]
                state=lambda *_: "", clear=lambda *_: None
            ),
            cache=None,  # type: ignore[arg-type]
            warehouse=self.warehouse,
            seam=self._seam,
        )

    def catalog(self) -> Any:
        """The session's catalog, as a statement uses it."""
        return SimpleNamespace(
            currentDatabase=lambda: DATABASE, currentCatalog=lambda: "spark_catalog"
        )

    def scans(self) -> str:
        """The driver's records of its scans."""
        return json.dumps(self.recorded)

    def tables(self) -> Session:
        """The tables that the driver knows."""
        return self

    def list(self, _session: Any, _database: str) -> str:
        """Lists all tables of the database."""
        names = [path.stem for path in self.warehouse.folder.glob("*.properties")]
        return json.dumps([self.warehouse.info(name) for name in names])

    def databaseLocation(self, _session: Any, _database: str) -> str:  # noqa: N802 - the shim's
        """The folder of the database."""
        return f"file:{self.warehouse.folder}"


def build_run(
    frame: Sequence[Sequence[int]],
    _column: Any,
    tiling: Tiling,
    _options: Any,
    store: Store,
    index_dir: str,
    **_words: Any,
) -> BuiltRun:
    """Replaces `build_run` without Spark: builds one run file of equal-width blocks."""
    pairs = sorted((key, k) for k, keys in enumerate(frame) for key in keys)
    rows = np.array([len(keys) for keys in frame], np.int64)
    # A file without rows gets an unknown row count, so queries always read this file.
    rows[(tiling.of_files(rows) == 0)[tiling.owners]] = -1
    none = np.zeros_like(rows)
    if not pairs:
        return BuiltRun(None, tiling, rows, none, none, (), 8.0)
    keys, places = (np.array(column) for column in zip(*pairs, strict=True))
    chunk = (keys.astype(np.int64), places.astype(np.int32), np.ones(len(keys), np.int64))
    segments = list(cut_segments(iter([chunk]), error=1, hole=1000))
    told: list[RunRow] = [
        ("sieve", s.first, s.last, len(pairs), len(pairs), 1, encode_segment(s)) for s in segments
    ]
    column_profile = SimpleNamespace(
        n_files=len(tiling.owners), sample=SimpleNamespace(encoder=Encoder("bigint"))
    )
    run = run_writer._write(told, column_profile, store, index_dir)  # type: ignore[arg-type]
    return BuiltRun(run, tiling, rows, none, none, (), 8.0)


def write_run(rows: Sequence[RunRow], uri: str, _claim: str) -> None:
    """Replaces `sieve.indexing.write_run.write_rows` without Spark."""
    folder = Path(uri.removeprefix("file:"))
    folder.mkdir(parents=True)
    (folder / "part-00000.parquet").write_bytes(run_file_bytes(rows))
    (folder / "_SUCCESS").touch()


@contextmanager
def without_spark(mode: str = "files") -> Iterator[None]:
    """In the block, builds run without Spark, and no file is synced to the disk.

    In the mode ``ranges``, builds divide files with more than `KEYS_A_RANGE` keys into ranges.
    Written data survives a killed process even without a sync. `test_power_cut` checks the syncs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(version_contents, "build_run", build_run)
        patch.setattr(run_writer, "write_rows", write_run)
        if mode == "ranges":
            patch.setattr(sys.modules[__name__], "RANGE_BYTES", 1)
        yield
