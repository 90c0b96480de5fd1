"""Runs two statements concurrently, in alternating phases."""

from __future__ import annotations

import dataclasses
import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crash_scenarios import age, looked_at, prepared

from sieve.errors import ConflictError, SieveError
from sieve.metadata.commit import newest
from sieve.metadata.history import history
from sieve.metadata.transitions import Follow
from sieve.operations.publish_change import change_index
from sieve.operations.registered_index import open_index, usable
from sieve.storage.interface import Entries
from sieve.storage.local import LocalStore
from sql_ext.statements.commands import TableName
from tests.fake_spark import MODES, SeamStore, Session, Warehouse, without_spark

FULL = "REFRESH SIEVE INDEX ON t FULL"
PHASES = (
    "before create .*/intents/run-",
    "before create .*/locations/",
    "before create .*/versions/",
    "before delete .*/intents/",
)
"""The second to fifth phases of a refresh (write, list, publish, settle) begin with these calls.

The first phase reads and plans.
"""


STEPS = {"files": 1, "ranges": 3}
"""With files, the tests run all orders of phases.

With ranges, the tests run every third order of phases.
"""


@pytest.fixture(autouse=True, params=MODES)
def step(request: pytest.FixtureRequest) -> Iterator[int]:
    """Runs each test with fakes instead of Spark.

    Yields the number n: a test tries every n-th order of the statements' phases.
    """
    with without_spark(request.param):
        yield STEPS[request.param]


def versions(warehouse: Warehouse) -> list[str]:
    """Returns the only index's changes, one per version; checks that no version is missing."""
    (index,) = warehouse.root.iterdir()
    past = history(LocalStore(), f"file:{index}")[::-1]
    for before, after in itertools.pairwise(past):
        assert after.manifest.parent == before.manifest.id
    return [one.change for one in past]


class Turns:
    """Runs two statements alternately, one phase at a time, in a given order."""

    def __init__(self, order: Sequence[int]) -> None:
        self._left = list(order)
        self._moved = threading.Condition()
        self._running: int | None = None

    def run(self, who: int, session: Session, statement: str) -> list[str]:
        """Runs one of the two statements; before each phase, the statement waits for its turn.

        Returns the versions in the rows of the answer, or the condition of the error.
        """
        self._wait(who)
        try:
            return [str(row[1]) for row in session.sql(statement)]
        except SieveError as error:
            return [error.condition]
        finally:
            with self._moved:
                self._left = [turn for turn in self._left if turn != who]
                self._running = None
                self._moved.notify_all()

    def seam(self, who: int) -> Callable[[str], None]:
        """A hook: before each phase, the statement waits for its turn.

        Repetitions of a phase take no turn.
        """
        phases = list(PHASES)

        def step(what: str) -> None:
            if phases and re.match(phases[0], what):
                phases.pop(0)
                self._wait(who)

        return step

    def _wait(self, who: int) -> None:
        with self._moved:
            if self._running == who:
                self._running = None
                self._moved.notify_all()
            came = self._moved.wait_for(
                lambda: self._running is None and self._left[:1] == [who], timeout=60
            )
            assert came, "nobody took the turn before"
            self._left.pop(0)
            self._running = who


def in_order(warehouse: Warehouse, order: Sequence[int]) -> list[list[str]]:
    """Runs two full refreshes in a given order of phases; returns the version of each refresh."""
    turns = Turns(order)
    with ThreadPoolExecutor(2) as pool:
        told = [
            pool.submit(turns.run, who, Session(warehouse, turns.seam(who)), FULL) for who in (0, 1)
        ]
        return [one.result(120) for one in told]


@pytest.mark.parametrize(
    "step", [pytest.param("files", marks=pytest.mark.long), "ranges"], indirect=True
)
def test_every_order_of_two_refreshes(step: int, tmp_path: Path) -> None:
    """The phases of two refreshes, five phases each, can run in 252 orders.

    In each order, the result is the same as if the refreshes had run one after the other.
    """
    warehouse, _ = prepared(tmp_path, "disable")
    orders = [
        [0 if k in first else 1 for k in range(10)]
        for first in itertools.combinations(range(10), 5)
    ]
    assert len(orders) == 252
    newest = 1
    both = 0
    for order in orders[::step]:
        told = sorted(int(version) for (version,) in in_order(warehouse, order))
        # If both refreshes read the same files, they report the same version. If not, each refresh
        # publishes its own version.
        assert told in ([newest + 1, newest + 2], [newest + 1, newest + 1]), order
        newest = told[1]
        both += told[0] < told[1]
        end = looked_at(warehouse)
        assert end is not None
        assert (end.files, end.used) == (1, (f"id_sieve@{newest}",)), order
    assert 0 < both < len(orders)
    assert len(versions(warehouse)) == newest
    Session(warehouse).sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS")
    (index,) = warehouse.root.iterdir()
    assert [len(list((index / kind).iterdir())) for kind in ("runs", "locations", "intents")] == [
        1, 1, 0,
    ]  # fmt: skip


def test_vacuum_deletes_runs_of_a_slower_refresh(tmp_path: Path) -> None:
    """A faster refresh publishes a version and VACUUM runs before a slow refresh publishes.

    VACUUM deletes the slow refresh's runs, but the slow refresh still succeeds.
    """
    warehouse, refresh = prepared(tmp_path, "refresh")
    planned, go = threading.Event(), threading.Event()

    def earlier(what: str) -> None:
        if re.match("before create .*/versions/", what):
            planned.set()
            assert go.wait(60)

    other = threading.Thread(target=Session(warehouse, earlier).sql, args=(FULL,))
    other.start()
    assert planned.wait(60)

    def later(what: str) -> None:
        if re.match("before create .*/versions/", what) and not go.is_set():
            go.set()
            other.join(60)
            Session(warehouse).sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS")

    told = Session(warehouse, later).sql(refresh)
    assert go.is_set()
    assert told[0][1] in (2, 3)
    end = looked_at(warehouse)
    assert end is not None
    assert (end.files, end.used) == (1, (f"id_sieve@{told[0][1]}",))


def test_vacuum_deletes_a_list_part_before_a_refresh_publishes(tmp_path: Path) -> None:
    """A slower refresh refers to a part of the location list that a faster refresh merges.

    Both refreshes keep the runs of the base version. VACUUM deletes the merged part before the
    slower refresh publishes, but the slower refresh succeeds.
    """
    warehouse = Warehouse(tmp_path / "shop")
    warehouse.create_table("t", [range(10 * k, 10 * k + 10) for k in range(40)])
    refresh = "REFRESH SIEVE INDEX ON t"
    Session(warehouse).sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    for k in range(40, 44):
        warehouse.append("t", range(10 * k, 10 * k + 10))
    Session(warehouse).sql(refresh)
    planned, go = threading.Event(), threading.Event()

    def earlier(what: str) -> None:
        if re.match("before create .*/versions/", what):
            planned.set()
            assert go.wait(60)

    for k in (44, 45):
        warehouse.append("t", range(10 * k, 10 * k + 10))
    other = threading.Thread(target=Session(warehouse, earlier).sql, args=(refresh,))
    other.start()
    assert planned.wait(60)
    (warehouse.folder / "t" / "00045.txt").unlink()

    def later(what: str) -> None:
        if re.match("before create .*/versions/", what) and not go.is_set():
            assert parts(warehouse) == [40, 4]
            go.set()
            other.join(60)
            assert parts(warehouse) == [40, 6]
            # VACUUM deletes a replaced part of the location list only some time after its
            # replacement.
            time.sleep(0.05)
            assert Session(warehouse).sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS")[0][1] == 2

    assert Session(warehouse, later).sql(refresh)[0][1] == 4
    end = looked_at(warehouse)
    assert end is not None
    assert (end.files, end.used) == (1, ("id_sieve@4",))


def parts(warehouse: Warehouse) -> list[int]:
    """The number of rows in each part of the location list."""
    (index,) = warehouse.root.iterdir()
    version = newest(LocalStore(), f"file:{index}")
    assert version is not None
    return [part.rows for part in version.locations.parts]


@pytest.mark.parametrize("seen", [0, 1])
def test_vacuum_keeps_the_files_of_unlisted_versions(seen: int, tmp_path: Path) -> None:
    """If the store's listing misses versions, VACUUM fails and deletes no index file."""

    class Forgetful(SeamStore):
        def list(self, uri: str) -> Entries:
            entries = LocalStore.list(self, uri)
            return entries[:seen] if uri.endswith("/versions") else entries

    warehouse, statement = prepared(tmp_path, "vacuum")
    (index,) = warehouse.root.iterdir()
    for run in (index / "runs").iterdir():
        (index / "intents" / f"run-{run.name}").touch()
    age(warehouse)
    session = Session(warehouse)
    session.store = Forgetful()
    with pytest.raises(SieveError, match="versions"):
        session.sql(statement)
    told = looked_at(warehouse)
    assert told is not None
    assert told.used == ("id_sieve@2",)
    assert len(list((index / "runs").iterdir())) == 2


@pytest.mark.parametrize("hours", [-10, 10])
def test_vacuum_keeps_new_files_if_the_clock_is_wrong(hours: int, tmp_path: Path) -> None:
    """If the store's clock is wrong, VACUUM keeps a new build's folder and pending writes."""

    class Skewed(SeamStore):
        def now_ms(self, dir_uri: str) -> int:
            return LocalStore.now_ms(self, dir_uri) + hours * 3_600_000

    warehouse, _ = prepared(tmp_path, "disable")
    (index,) = warehouse.root.iterdir()
    began = (index.parent / "00000000-0000-4000-8000-000000000001", index / "runs" / ("a" * 32))
    for folder in began:
        folder.mkdir()
    (index / "intents" / f"run-{'a' * 32}").touch()
    (began[0] / "intent.json").write_bytes((index / "intent.json").read_bytes())
    session = Session(warehouse)
    session.store = Skewed()
    session.sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    session.sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS")
    assert all(folder.exists() for folder in began)
    looked_at(warehouse)


@pytest.mark.parametrize("renamed", [{"table": "u"}, {"location": "file:/elsewhere"}])
def test_table_moves_during_a_refresh(tmp_path: Path, renamed: dict[str, str]) -> None:
    """If a table moves during a refresh, the refresh fails and leaves no files behind.

    The files that the refresh has read do not belong to the moved table.
    """
    warehouse, statement = prepared(tmp_path, "refresh in full")
    (index,) = warehouse.root.iterdir()
    kinds = ("runs", "locations", "intents")
    left = [{path.name for path in (index / kind).iterdir()} for kind in kinds]
    moved: list[int] = []

    def meanwhile(what: str) -> None:
        if re.match("before create .*/versions/2", what) and not moved:
            plain = Session(warehouse).context()
            info = plain.table(TableName(("t",))).info
            registration = info.registrations["id_sieve"]
            index = open_index("id_sieve", registration, info.identity, plain.environment)
            there = dataclasses.replace(info.identity, **renamed)
            moved.append(
                change_index(usable(index), Follow(there, moved=True), plain.environment).version
            )

    with pytest.raises(ConflictError, match="SIEVE_TABLE_MOVED"):
        Session(warehouse, meanwhile).sql(statement)
    assert moved == [2]
    assert len(versions(warehouse)) == 2
    assert [{path.name for path in (index / kind).iterdir()} for kind in kinds] == left


def test_vacuum_keeps_a_run_that_versions_share(tmp_path: Path) -> None:
    """If a later version also contains a run of an expired version, VACUUM keeps this run.

    VACUUM deletes a run if only a pending write refers to the run.
    """
    warehouse, _ = prepared(tmp_path, "refresh")
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    (index,) = warehouse.root.iterdir()
    runs = {path.name for path in (index / "runs").iterdir()}
    lists = {path.name for path in (index / "locations").iterdir()}
    assert len(runs) == 2
    dead = f"run-{'a' * 32}"
    (index / "runs" / ("a" * 32)).mkdir()
    for name in (dead, *(f"run-{run}" for run in runs), *(f"locations-{part}" for part in lists)):
        (index / "intents" / name).touch()
    age(warehouse)
    Session(warehouse).sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS")
    assert {path.name for path in (index / "runs").iterdir()} == runs
    assert list((index / "intents").iterdir()) == []
    end = looked_at(warehouse)
    assert end is not None
    assert (end.files, end.used, end.reasons) == (1, ("id_sieve@2",), ())
