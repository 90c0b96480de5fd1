"""Builds, from the sample to the written run, on data frames that replace Spark's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_bytes, hash_codes
from sieve.indexing import block_rows, build_hash_map, build_run, build_tasks, column_profile
from sieve.indexing.build_run import BuiltRun
from sieve.indexing.tiling import Tiling, whole_files
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.paths import run_dir
from sieve.reader.lru_cache import FileCache
from sieve.reader.run_reader import Run
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sieve.tables.table import LOCATION
from tests import fake_frames
from tests.fake_frames import Cluster, Frame

FILES = 12
BYTES = 2_000_000
Drawn = Callable[[np.random.Generator], list[Any]]


def numbers(draw: np.random.Generator) -> list[Any]:
    """Keys in four narrow parts of a wide domain."""
    starts = draw.choice(300, 4, replace=False) * 1_000_000
    return (np.repeat(starts, 15) + draw.integers(0, 900_000, 60)).tolist()


def scattered(draw: np.random.Generator) -> list[Any]:
    """Random keys of a wide domain, and a NULL. Two of the keys are in two files each."""
    return [*draw.integers(-(1 << 50), 1 << 50, 59).tolist(), int(draw.integers(0, 20)), None]


def doubles(draw: np.random.Generator) -> list[Any]:
    """Numbers in a narrow part of the domain, a NaN, and a NULL."""
    return [*(draw.integers(0, 1000) + draw.random(58)).tolist(), float("nan"), None]


def texts(draw: np.random.Generator) -> list[Any]:
    """Words that share their first eight bytes, and a NULL."""
    return [*(f"customer-{n:08d}" for n in draw.integers(0, 10**8, 60).tolist()), None]


def table(column: Drawn, files: int = FILES) -> list[list[Any]]:
    """Draws the values of a column for each file."""
    draw = np.random.default_rng(7)
    return [column(draw) for _ in range(files)]


TYPES = {numbers: ("bigint", pa.int64()), scattered: ("bigint", pa.int64())} | {
    doubles: ("double", pa.float64()), texts: ("string", pa.string())
}  # fmt: skip


def frame(rows: Sequence[Sequence[Any]], type_: pa.DataType, cluster: Cluster) -> Frame:
    """A frame in which each location has one partition."""
    parts = [[{"id": v, LOCATION: at} for v in values] for at, values in enumerate(rows)]
    return Frame({"id": type_, LOCATION: pa.int32()}, parts, cluster)


class Build:
    """Builds a column's run; records the descriptions of its jobs and the calls of its frames."""

    def __init__(
        self,
        folder: Path,
        column: Drawn,
        options: IndexOptions,
        tiling: Tiling | None = None,
        **words: Any,
    ) -> None:
        type_, arrow = TYPES[column]
        self.store, self.home = LocalStore(), f"file:{folder}"
        self.store.mkdirs(f"{self.home}/intents")
        self.rows = table(column)
        self.cluster, self.jobs = Cluster(), list[str]()
        values = frame(self.rows, arrow, self.cluster)
        self.built: BuiltRun = build_run.build_run(
            values, Column(("id",), type_), tiling or whole_files([BYTES] * FILES), options,
            self.store, self.home, describe_job=self.jobs.append,
            **{"whole": values, "counting": values} | words,
        )  # fmt: skip

    def run(self) -> Run:
        """The run that the build has written."""
        assert self.built.run is not None
        return Run(self.store, self.home, self.built.run, FileCache(1 << 26))

    def read(self) -> float:
        """Returns how many locations a query for a key reads on average.

        Asserts that the run finds every location with the queried key.
        """
        run, found = self.run(), list[int]()
        assert self.built.run is not None
        encoder = Encoder.from_json(dict(self.built.run.encoder))
        for location, values in enumerate(self.rows):
            for value in values:
                if value is None or str(value) == "nan":
                    continue
                code = encoder.encode(pa.array([value])).codes
                kept = run.locations_in(np.stack([code, code], axis=1))
                if run.has_maps:
                    hashed = hash_codes(code) if encoder.exact else hash_bytes([value.encode()])
                    kept &= run.locations_of(hashed)
                assert kept[location]
                found.append(int(np.count_nonzero(kept)))
        return float(np.mean(found))


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Replaces PySpark's frames; returns the patcher, so a test can patch more."""
    fake_frames.use(monkeypatch)
    return monkeypatch


WHOLE = "counting sampling reading "
MAPPED = "mapping writing"
AUTO, TIGHT = IndexOptions(), IndexOptions(budget="10KB")
ONE_TASK = [
    # Each case lists options, column, jobs, the run's bytes and the run's files. The last number is
    # the mean number of files that a query for a key reads.
    (AUTO, numbers, f"{WHOLE}weighing writing", (3_643, 1, 1.0)),
    (AUTO, scattered, f"{WHOLE}weighing {MAPPED} writing", (6_009, 2, 1.01)),
    (IndexOptions("intervals", "3000B"), numbers, f"{WHOLE}writing", (2_497, 1, 1.0)),
    (IndexOptions("intervals", "3000B"), doubles, f"{WHOLE}writing", (2_478, 1, 1.0)),
    (IndexOptions("map", "50%"), texts, f"{WHOLE}{MAPPED}", (9_216, 2, 1.0)),
    (IndexOptions("sieve"), numbers, f"{WHOLE}writing", (2_781, 1, 1.18)),
]  # fmt: skip
SEVERAL_TASKS = [
    (AUTO, numbers, f"{WHOLE}weighing weighing writing", "4", (8_922, 4, 1.0)),
    (TIGHT, texts, f"{WHOLE}weighing writing weighing {MAPPED}", "4 1 3", (7_627, 4, 2.83)),
    (
        IndexOptions("intervals", "9000B"),
        numbers,
        f"{WHOLE}weighing writing",
        "4",
        (7_152, 4, 1.0),
    ),
    (
        IndexOptions("map", "50%"),
        scattered,
        f"{WHOLE}weighing {MAPPED}",
        "4 1 3",
        (17_087, 7, 1.01),
    ),
    (IndexOptions("sieve"), numbers, f"{WHOLE}writing", "3", (6_403, 3, 1.16)),
]


def ranges_of(cluster: Cluster) -> str:
    """For each repartition in the build, in order, the number of partitions."""
    return " ".join(c.split()[1] for c in cluster.calls if c.startswith("repartition"))


def check(
    build: Build, options: IndexOptions, jobs: str, size: int, files: int, reads: float
) -> None:
    """Checks the properties that every build has, and the expected figures of this build."""
    run = build.built.run
    assert run is not None
    keys = [sum(v is not None and str(v) != "nan" for v in values) for values in build.rows]
    assert (run.keys, run.rows) == (sum(keys), sum(keys))
    assert build.built.rows.tolist() == [len(values) for values in build.rows]
    assert build.built.nulls.tolist() == [values.count(None) for values in build.rows]
    nans = [sum(str(v) == "nan" for v in values) for values in build.rows]
    assert build.built.nans.tolist() == nans
    assert [job.partition(" ")[0] for job in build.jobs] == jobs.split()
    assert {job for job in build.jobs if job.endswith(" files")} == {
        f"{step} {FILES} files" for step in ("counting", "sampling", "reading")
    }
    assert (len(run.files), build.read()) == (files, pytest.approx(reads, abs=0.06))
    assert run.bytes == pytest.approx(size, rel=0.06)
    present = build.built.expected[0]
    assert present.files == pytest.approx(reads, abs=0.08)
    assert present.exact == pytest.approx(1, abs=0.02)
    calls = build.cluster.calls
    held = 1 if options.shape == "sieve" else 2
    assert calls.count("persist") == calls.count("unpersist") >= held


@pytest.mark.parametrize(("options", "column", "jobs", "figures"), ONE_TASK)
def test_small_column_is_built_by_one_task(
    frames: pytest.MonkeyPatch,  # noqa: ARG001 - in place of PySpark's
    tmp_path: Path,
    options: IndexOptions,
    column: Drawn,
    jobs: str,
    figures: tuple[int, int, float],
) -> None:
    """A build of a small column loses no key, and has the expected jobs, bytes and reads.

    A single task makes the intervals.
    """
    build = Build(tmp_path, column, options)
    check(build, options, jobs, *figures)
    # Each task sketches its pairs, and one further task merges these sketches.
    assert ranges_of(build.cluster) == ("1" if "mapping" in jobs else "")


@pytest.mark.parametrize(("options", "column", "jobs"), [one[:3] for one in ONE_TASK])
def test_a_small_table_is_indexed_without_executors(
    frames: pytest.MonkeyPatch,
    tmp_path: Path,
    options: IndexOptions,
    column: Drawn,
    jobs: str,
) -> None:
    """Without executors, the front end writes the same rows as executors do, after the same jobs.

    Both runs omit a location that was read only in part.
    """
    short = [BYTES] * FILES
    counted = frame(table(column)[:-1], TYPES[column][1], Cluster())
    for whole in ({}, {"counting": counted}):
        one = Build(tmp_path / f"executors-{len(whole)}", column, options, **whole)
        other = Build(
            tmp_path / f"local-{len(whole)}", column, options, whole_files(short),
            write_file=fake_frames.write_file, **whole,
        )  # fmt: skip
        assert other.jobs == one.jobs
        calls_of_executors = one.cluster.calls
        assert other.cluster.calls == ["collect"] * (1 if whole else 2)
        (file,) = files_of(other)
        assert file == [row for rows in files_of(one) for row in rows]
        for name in ("rows", "nulls", "nans"):
            assert getattr(other.built, name).tolist() == getattr(one.built, name).tolist()
        assert other.built.expected == one.built.expected
        assert (other.built.rows[-1] == -1) == bool(whole)
        if not whole:
            complete = file
            assert [job.partition(" ")[0] for job in other.jobs] == jobs.split()
    frames.setattr(column_profile, "MOST", sum(map(len, other.rows)) - 1)
    larger = Build(tmp_path / "large", column, options, write_file=fake_frames.write_file)
    assert "mapInArrow" in larger.cluster.calls
    # The front end writes intervals, because there are few of them. Executors write the maps.
    assert [row for rows in files_of(larger) for row in rows] == complete
    assert larger.cluster.calls.count("mapInArrow") < calls_of_executors.count("mapInArrow")


def files_of(build: Build) -> list[list[dict[str, Any]]]:
    """Reads the rows of each file of the run."""
    assert build.built.run is not None
    folder = Path(run_dir(build.home, build.built.run.id).removeprefix("file:"))
    return [pq.read_table(path).to_pylist() for path in sorted(folder.glob("*.parquet"))]


@pytest.mark.parametrize(("options", "column", "jobs", "moved", "figures"), SEVERAL_TASKS)
def test_large_column_is_built_by_several_tasks(
    frames: pytest.MonkeyPatch,
    tmp_path: Path,
    options: IndexOptions,
    column: Drawn,
    jobs: str,
    moved: str,
    figures: tuple[int, int, float],
) -> None:
    """A large column is built by several tasks, each with at most 200 cuts or 250 pairs.

    Each task writes a file of the run.
    """
    frames.setattr(build_tasks, "CUTS_PER_TASK", 200)
    frames.setattr(block_rows, "_PAIRS_PER_TASK", 250)
    frames.setattr(build_hash_map, "_PAIRS_PER_MAP", 250)
    build = Build(tmp_path, column, options)
    check(build, options, jobs, *figures)
    assert ranges_of(build.cluster) == moved
