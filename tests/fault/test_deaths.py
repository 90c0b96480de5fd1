"""Signals kill or stop writer processes at any point of a statement."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_scenarios import CREATE, STATEMENTS, looked_at, prepared, stable
from processes import stopped, wait_until

from sieve.metadata.history import history
from sieve.storage.local import LocalStore
from tests.fake_spark import MODES, Session, Warehouse, without_spark
from tests.plain_writers import begun, started, struck

EFFECTS = ("before create", "before delete", "before mkdirs", "before metastore")
"""The calls that have an effect.

A death before a call without an effect is the same as a death before the next call with an effect.
"""

RANDOM_KILLS = 1000
PAUSES = 100


@pytest.fixture(autouse=True, params=MODES)
def plain(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with `tests.fake_spark` instead of Spark."""
    with without_spark(request.param):
        yield


def recovered(warehouse: Warehouse, statement: str, undisturbed: tuple[object, object]) -> None:
    """Checks that queries are right, the repeated statement works, and no extra file remains."""
    looked_at(warehouse)
    files, left = stable(warehouse, statement)
    assert files == undisturbed[0]
    most = undisturbed[1]
    assert isinstance(most, dict)
    assert all(left[kind] <= most[kind] for kind in left), left


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "plain", ["files", pytest.param("ranges", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.parametrize("name", ["create", "refresh", "vacuum", "drop"])
def test_killed_at_every_effect(name: str, tmp_path: Path) -> None:
    """If SIGKILL ends a writer before one of its writes, the old or the new index is complete."""
    undisturbed = stable(*prepared(tmp_path / "undisturbed", name))
    kills = 0
    for at in EFFECTS:
        for number in range(1, 100):
            warehouse, statement = prepared(tmp_path / f"{at}{number}", name)
            writer = started(struck, warehouse.folder, statement, at, number, signal.SIGKILL)
            writer.join(60)
            if writer.exitcode == 0:
                break
            assert writer.exitcode == -signal.SIGKILL
            kills += 1
            recovered(warehouse, statement, undisturbed)
    assert kills >= {"create": 14, "refresh": 6, "vacuum": 2, "drop": 3}[name]


@pytest.mark.soak
def test_killed_at_any_time(tmp_path: Path) -> None:
    """If SIGKILL ends a writer at a random time, even during a write, queries lose no row."""
    seed = os.environ.get("SIEVE_SEED", str(random.SystemRandom().getrandbits(32)))
    chance = random.Random(seed)
    undisturbed = {name: stable(*prepared(tmp_path / name, name)) for name in STATEMENTS}
    kills = runs = 0
    while kills < RANDOM_KILLS:
        name = chance.choice([*STATEMENTS])
        warehouse, statement = prepared(tmp_path / str(runs), name)
        writer = started(begun, warehouse.folder, statement)
        while not (warehouse.folder / "begun").exists():
            time.sleep(0.0005)
        time.sleep(chance.random() * 0.4)
        writer.kill()
        writer.join(60)
        kills += writer.exitcode == -signal.SIGKILL
        runs += 1
        recovered(warehouse, statement, undisturbed[name])
    sys.stdout.write(f"SIEVE_SEED={seed}: {kills} kills in {runs} runs, 0 wrong rows\n")


def test_vacuum_deletes_the_draft_of_a_killed_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a writer dies before it renames a draft, VACUUM later deletes the draft."""
    warehouse, statement = prepared(tmp_path, "disable")
    monkeypatch.setattr("sieve.storage.local._link", lambda *_: sys.exit("killed"))
    monkeypatch.setattr("sieve.storage.local.os.unlink", lambda *_: None)
    with pytest.raises(SystemExit):
        Session(warehouse).sql(statement)
    monkeypatch.undo()
    assert len(list(warehouse.root.rglob(".draft-*"))) == 1
    Session(warehouse).sql("VACUUM SIEVE INDEX ON t")
    assert len(list(warehouse.root.rglob(".draft-*"))) == 1
    stable(warehouse, "REFRESH SIEVE INDEX ON t FULL")
    Session(warehouse).sql("VACUUM SIEVE INDEX ON t")
    assert list(warehouse.root.rglob(".draft-*")) == []


def pause(folder: Path, meanwhile: str) -> list[str]:
    """Stops a writer before it publishes, and resumes it after another writer has committed.

    Returns:
        The kind of change of each version, oldest first, and the exit code of the stopped writer.
    """
    warehouse, _ = prepared(folder, "disable")
    setting = "ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (error = 9)"
    writer = started(struck, warehouse.folder, setting, "before create", 1, signal.SIGSTOP)
    wait_until(lambda: writer.pid is not None and stopped(writer.pid), "the writer stands still")
    Session(warehouse).sql(meanwhile)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGCONT)
    writer.join(60)
    looked_at(warehouse)
    (index,) = warehouse.root.iterdir()
    told = history(LocalStore(), f"file:{index}") if (index / "versions").exists() else []
    return [*(past.change for past in reversed(told)), f"exit {writer.exitcode}"]


def test_stopped_writer_plans_again_on_the_newest_version(tmp_path: Path) -> None:
    """Another writer publishes the next version while a writer is stopped.

    After the stopped writer resumes, it publishes a version with both writers' changes.
    """
    for number, (meanwhile, change) in enumerate(MEANWHILE):
        told = pause(tmp_path / str(number), meanwhile)
        assert told == ["created", change, "options set", "exit 0"]


MEANWHILE = [
    ("ALTER SIEVE INDEX id_sieve ON t DISABLE", "disabled"),
    ("REFRESH SIEVE INDEX ON t FULL", "rebuilt"),
]


@pytest.mark.soak
def test_a_hundred_stopped_writers(tmp_path: Path) -> None:
    """If a writer is stopped a hundred times while others commit, no change is lost."""
    for number in range(PAUSES):
        meanwhile, change = MEANWHILE[number % 2]
        told = pause(tmp_path / str(number), meanwhile)
        assert told == ["created", change, "options set", "exit 0"]
    sys.stdout.write(f"{PAUSES} of {PAUSES} stopped writers planned on top\n")


def test_writers_do_not_wait_for_a_stopped_writer(tmp_path: Path) -> None:
    """While a writer is stopped during CREATE, others can create, refresh and drop an index."""
    warehouse = Warehouse(tmp_path / "shop")
    warehouse.create_table("t", [range(10 * k, 10 * k + 10) for k in range(4)])
    writer = started(struck, warehouse.folder, CREATE, "before metastore", 1, signal.SIGSTOP)
    wait_until(lambda: writer.pid is not None and stopped(writer.pid), "the writer stands still")
    session = Session(warehouse)
    session.sql("CREATE SIEVE INDEX other ON t (id)")
    session.sql("REFRESH SIEVE INDEX other ON t FULL")
    session.sql("DROP SIEVE INDEX other ON t")
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGCONT)
    writer.join(60)
    assert writer.exitcode == 0
    told = looked_at(warehouse)
    assert told is not None
    assert (told.files, told.used) == (1, ("id_sieve@1",))
