"""Tests the attempts of a build: which runs the build tries, keeps and deletes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.errors import InvalidInputError
from sieve.indexing import build_run, choose_run
from sieve.indexing.auto_budget import MapPlan
from sieve.indexing.build_run import BuiltRun
from sieve.indexing.column_profile import ColumnProfile
from sieve.indexing.column_sample import Sample
from sieve.indexing.probes import EACH
from sieve.indexing.tiling import Tiling, whole_files
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.paths import run_dir
from sieve.metadata.records import Expected, RunId
from sieve.segments.query_model import QueryModel
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from tests.unit.metadata.manifest_sample import SAMPLE

FILES, ROWS = 643, 5_000_000
GIVEN = IndexOptions(budget="30%")
FEW, MANY = 10_000, 400_000


@dataclass
class Attempts:
    """Replaces Spark. A script states the bytes and reads of the run that each attempt writes.

    Attributes:
        script: for each attempt, the bytes of its run and the files read for a key, or an error.
        made: for each attempt, its shape and three flags: it has a stopping rule, its fingerprints
            have a price, it has more cuts.
        cuts: the number of cuts that the reading step returns.
        tiling: how the files are divided into ranges.
        locations: for each attempt, the number of locations.
        trial: the bytes of the cheapest intervals, and the files that they read for a key.
        scattered: the share of the sample's keys that are scattered.
        collects: for each reading of the column, whether the reading also collects the pairs of a
            map.
        fewest: for each reading, whether the reading returns the fewest cuts.
    """

    script: list[tuple[int, float] | Exception]
    made: list[tuple[str, bool, bool, bool]] = field(default_factory=list)
    cuts: int = 1000
    tiling: Tiling = field(default_factory=lambda: whole_files([50] * FILES))
    locations: list[int] = field(default_factory=list)
    trial: tuple[int, float] | None = None
    scattered: float = 0.0
    collects: list[bool] = field(default_factory=list)
    fewest: list[bool] = field(default_factory=list)

    def maker(self, asked: Any, options: Any, *others: Any) -> tuple[int, float] | None:
        """Replaces `run_maker`."""
        *_, stop, worth = others
        self.made.append((options.shape, stop is not None, worth < math.inf, asked.wide))
        self.locations.append(asked.n_files)
        what = self.script[len(self.made) - 1]
        if isinstance(what, Exception):
            raise what
        return None if what[0] == 0 else what

    def write(self, what: tuple[int, float], *_: object) -> Any:
        """Replaces `write_within`."""
        run = RunId(f"{len(self.made):032x}")
        LocalStore().mkdirs(run_dir(self.home, run))
        # The run's row count holds another number here: the files read, times a hundred.
        return replace(SAMPLE.runs[0], id=run, bytes=what[0], keys=ROWS, rows=round(what[1] * 100))

    def build(
        self,
        monkeypatch: pytest.MonkeyPatch,
        folder: Path,
        options: IndexOptions,
        added: Sequence[int] = (),
    ) -> BuiltRun:
        """Builds an index of scattered keys, with the attempts of the script."""
        self.home = f"file:{folder}"
        codes = np.sort(np.random.default_rng(3).integers(0, 1 << 60, 1000))
        encoder, model = Encoder("bigint"), QueryModel.of_sample(codes)
        hashes = hash_codes(codes)
        sample = Sample(encoder, model, codes, hashes, ROWS, 8, ROWS, scattered=self.scattered)
        nothing: Any = None
        owners = self.tiling.owners
        profile = ColumnProfile(
            sizes=np.full(len(owners), 50 * ROWS // len(owners)), sample=sample, values=nothing,
            owners=owners, counted=None,
        )  # fmt: skip

        @contextlib.contextmanager
        def read_cuts(asked: Any, *_: object, with_pairs: bool) -> Iterator[Any]:
            self.collects.append(with_pairs)
            self.fewest.append(asked.few)
            counts, probes = np.ones(asked.n_files, np.int64), np.ones((2, 1200), np.int64)
            seen = SimpleNamespace(
                rows=counts, nulls=counts, nans=counts, hits=probes, least=counts, greatest=counts,
                partial=np.arange(asked.n_files) == 5, cuts=(self.cuts, 0, 1),
                keys=ROWS,
            )  # fmt: skip
            yield SimpleNamespace(cuts=None, seen=seen, pairs=None)

        def by_file(asked: Any, *_: object) -> ColumnProfile:
            sizes = np.full(FILES, 50 * ROWS // FILES)
            files: ColumnProfile = replace(asked, sizes=sizes, owners=np.arange(FILES))
            return files

        def expectations(_: object, run: Any, sizes: Any, *__: object) -> list[Expected]:
            each = sizes.mean()
            return [
                Expected("present", run, 1.0, FILES, run * each, each),
                Expected("range", 180, 180, FILES, 180 * each, 180 * each),
            ]

        for name, fake in {
            "persisted_values": lambda *_: contextlib.nullcontext(),
            "column_profile": lambda *_, **__: profile,
            "read_cuts": read_cuts,
            "shared_by_runs": lambda _, seen, *__: contextlib.nullcontext(
                SimpleNamespace(pieces=None, seen=seen)
            ),
            "trial_of_least_cost": lambda *_: (
                self.trial and (self.trial[0], (self.trial[1] * EACH, 0, 180 * EACH))
            ),
            "run_maker": self.maker,
            "write_within": self.write,
            "Run": lambda _, __, run, ___: run.rows / 100,
            "expectations": expectations,
        }.items():
            module = build_run if hasattr(build_run, name) else choose_run
            monkeypatch.setattr(module, name, fake)
        monkeypatch.setattr(ColumnProfile, "by_file", by_file)
        return build_run.build_run(
            nothing, Column(("id",), "bigint"), self.tiling, options, LocalStore(), self.home,
            whole=nothing, counting=None, describe_job=lambda _: None,
            added=np.isin(np.arange(FILES), added) if added else None,
        )  # fmt: skip

    def left(self) -> list[int]:
        """The numbers of the attempts whose runs are still on disk."""
        folder = Path(self.home.removeprefix("file:")) / "runs"
        return sorted(int(path.name, 16) for path in folder.iterdir())


def number(built: BuiltRun) -> int:
    """The number of the attempt whose run the build returned."""
    assert built.run is not None
    return int(built.run.id, 16)


PLAIN, MAP = ("auto", False, False, False), ("map", False, False, False)
STOPPED, CHEAP_MAP = ("auto", True, False, False), ("map", True, True, False)
WIDER = ("auto", True, False, True)
TOO_SMALL = InvalidInputError("SIEVE_BUDGET_TOO_SMALL", "no")


@pytest.mark.parametrize(
    ("options", "script", "made", "kept"),
    [
        (GIVEN, [(FEW, 1.0)], [PLAIN], 1),
        (GIVEN, [(FEW, 50.0), (MANY, 1.0)], [PLAIN, MAP], 2),
        (GIVEN, [(FEW, 50.0), (MANY, 60.0)], [PLAIN, MAP], 1),
        (GIVEN, [(FEW, 50.0), TOO_SMALL], [PLAIN, MAP], 1),
        (replace(GIVEN, shape="intervals"), [(FEW, 50.0)], [("intervals", *PLAIN[1:])], 1),
        (IndexOptions(), [(FEW, 1.0)], [STOPPED], 1),
        (IndexOptions(), [(FEW, 150.0), (MANY, 1.0)], [STOPPED, CHEAP_MAP], 2),
        (IndexOptions(), [(FEW, 1.2), (1 << 40, 1.0)], [STOPPED], 1),
        (IndexOptions(), [(FEW, 150.0), (1 << 40, 1.0)], [STOPPED, CHEAP_MAP], 1),
        (IndexOptions(), [(FEW, 150.0), TOO_SMALL], [STOPPED, CHEAP_MAP], 1),
        (IndexOptions("intervals"), [(FEW, 150.0)], [("intervals", *STOPPED[1:])], 1),
    ],
)  # fmt: skip
def test_only_the_best_attempt_is_kept(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: IndexOptions,
    script: list[tuple[int, float] | Exception],
    made: list[object],
    kept: int,
) -> None:
    """With a given budget, a build keeps only the run of the attempt that reads the fewest files.

    With the budget `auto`, the build keeps an attempt with more bytes only if it saves enough
    reads.
    """
    attempts = Attempts(script)
    built = attempts.build(monkeypatch, tmp_path, options)
    assert attempts.made == made
    assert (number(built), attempts.left()) == (kept, [kept])
    assert built.rows.tolist() == [-1 if k == 5 else 1 for k in range(FILES)]


@pytest.mark.parametrize(
    ("trial", "script", "made", "kept"),
    [
        ((FEW, 1.2), [(FEW, 1.2)], [STOPPED], 1),
        ((FEW, 150.0), [(1 << 40, 1.0), (FEW, 9.0)], [CHEAP_MAP, STOPPED], 2),
        ((FEW, 150.0), [(MANY, 1.0)], [CHEAP_MAP], 1),
        ((FEW, 150.0), [TOO_SMALL, (FEW, 150.0), TOO_SMALL], [CHEAP_MAP, STOPPED, CHEAP_MAP], 2),
    ],
)  # fmt: skip
def test_intervals_are_omitted_if_a_map_surely_pays(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    trial: tuple[int, float],
    script: list[tuple[int, float] | Exception],
    made: list[object],
    kept: int,
) -> None:
    """If a map surely pays, a build makes intervals only if they could be cheaper than the map."""
    attempts = Attempts(script, trial=trial)
    built = attempts.build(monkeypatch, tmp_path, IndexOptions())
    assert attempts.made == made
    assert (number(built), attempts.left()) == (kept, [kept])


def test_map_beyond_the_limits_is_not_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A build adds no map that exceeds the limits, even if the map would save many reads."""
    beyond = MapPlan(IndexOptions("map"), "bytes")
    monkeypatch.setattr(choose_run, "plan_map", lambda *_: beyond)
    attempts = Attempts([(FEW, 150.0)], trial=(FEW, 150.0))
    attempts.build(monkeypatch, tmp_path, IndexOptions())
    assert attempts.made == [STOPPED]


def test_file_read_in_part_prevents_a_map(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A build makes no map if it has read a file only in part.

    Rows of a partly read file can be in other runs.
    """
    for options, made in ((GIVEN, PLAIN), (IndexOptions(), STOPPED)):
        attempts = Attempts([(FEW, 150.0)])
        attempts.build(monkeypatch, tmp_path / options.budget, options, added=[3])
        assert attempts.made == [made]


@pytest.mark.parametrize(
    ("scattered", "added", "collects"), [(1.0, (), True), (0.0, (), False), (1.0, (3,), False)]
)
def test_pairs_of_a_likely_map_are_collected_while_reading(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    scattered: float,
    added: Sequence[int],
    collects: bool,
) -> None:
    """If a map is likely, one reading of the column collects the map's pairs and a few cuts."""
    attempts = Attempts([(MANY, 1.0)], trial=(FEW, 150.0), scattered=scattered)
    attempts.build(monkeypatch, tmp_path, IndexOptions(), added)
    assert (attempts.collects, attempts.fewest) == ([collects], [collects])


def test_chosen_map_keeps_the_usual_number_of_cuts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the user chose a map, its pairs are collected while the usual number of cuts is read."""
    attempts = Attempts([(MANY, 1.0)], scattered=1.0)
    attempts.build(monkeypatch, tmp_path, IndexOptions("map"))
    assert (attempts.collects, attempts.fewest) == ([True], [False])


def test_omitted_map_causes_a_second_reading_of_cuts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If a build does not make a likely map after all, it reads the column again.

    The second reading of the column collects eight times the usual number of cuts.
    """
    attempts = Attempts([(FEW, 1.2), (FEW, 1.1)], cuts=1 << 30, scattered=1.0, trial=(FEW, 1.2))
    built = attempts.build(monkeypatch, tmp_path, IndexOptions())
    assert (attempts.made, attempts.fewest) == ([STOPPED, WIDER], [True, False])
    assert (number(built), attempts.left()) == (2, [2])


@pytest.mark.parametrize(("second", "kept"), [((MANY, 100.0), 2), ((MANY, 149.99), 1)])
def test_more_cuts_are_read_if_they_may_save_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, second: tuple[int, float], kept: int
) -> None:
    """If more cuts may save reads, a second reading of the column collects eight times more cuts.

    After two readings, the build keeps the cheaper of the two runs.
    """
    attempts = Attempts([(FEW, 150.0), second], cuts=1 << 30)
    built = attempts.build(monkeypatch, tmp_path, IndexOptions(), added=[3])
    assert attempts.made == [STOPPED, WIDER]
    assert (number(built), attempts.left()) == (kept, [kept])


@pytest.mark.parametrize("added", [(), (3,)], ids=["map", "wider"])
def test_later_failure_deletes_the_first_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, added: Sequence[int]
) -> None:
    """If a later attempt fails, the build deletes the run of the first attempt.

    No version of the index names this run.
    """
    attempts = Attempts([(FEW, 150.0), OSError("disk")], cuts=1 << 30)
    with pytest.raises(OSError, match="disk"):
        attempts.build(monkeypatch, tmp_path, IndexOptions(), added)
    assert len(attempts.made) == 2
    assert attempts.left() == []


def test_a_column_without_keys_has_no_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For a column without keys, a build returns no run, but returns counts of rows and NULLs."""
    built = Attempts([(0, 0.0)]).build(monkeypatch, tmp_path, GIVEN)
    assert (built.run, built.expected, built.width) == (None, (), 8)
    assert built.nulls.tolist() == [1] * FILES


RANGES = 4


@pytest.mark.parametrize(
    ("granularity", "script", "locations", "kept"),
    [
        # Every range that queries read has a match. So an index of whole files could not read fewer
        # bytes.
        ("auto", [(FEW, 1.0)], [RANGES * FILES], 1),
        # Of 1,500 ranges that queries read, only one has a match. So an index of whole files could
        # be better.
        ("auto", [(FEW, 1500.0), (FEW, 10.0)], [RANGES * FILES, FILES], 2),
        ("auto", [(FEW, 1500.0), (FEW, 600.0)], [RANGES * FILES, FILES], 1),
        ("range", [(FEW, 1500.0)], [RANGES * FILES], 1),
    ],
)
def test_ranges_or_files(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    granularity: str,
    script: list[tuple[int, float] | Exception],
    locations: list[int],
    kept: int,
) -> None:
    """After an index of ranges, the build tries whole files only if their index could cost less.

    The build keeps the cheaper of the two runs.
    """
    cut = Tiling(np.full(FILES, 400), ((100, 200, 300),) * FILES, np.zeros(FILES, np.int64))
    attempts = Attempts(script, tiling=cut)
    options = replace(GIVEN, shape="intervals", granularity=granularity)
    built = attempts.build(monkeypatch, tmp_path, options)
    assert attempts.locations == locations
    assert (number(built), attempts.left()) == (kept, [kept])
    assert len(built.rows) == len(built.tiling.owners) == locations[kept - 1]
