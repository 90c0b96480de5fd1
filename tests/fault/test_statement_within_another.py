"""Runs a statement within each call of another statement."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash_scenarios import age, looked_at, prepared, stable
from pyspark.errors import PySparkException

from sieve.errors import SieveError, UnavailableError
from tests.fake_spark import MODES, Seam, Session, Warehouse, no_fault, without_spark

FULL = "REFRESH SIEVE INDEX ON t FULL"
OTHERS = {
    "refresh": FULL,
    "switch": "ALTER SIEVE INDEX id_sieve ON t DISABLE",
    "vacuum": "VACUUM SIEVE INDEX ON t RETAIN 0 HOURS",
    "vacuum all": "VACUUM SIEVE INDEXES RETAIN 0 HOURS",
    "drop": "DROP SIEVE INDEX id_sieve ON t",
    "drop and create": "DROP SIEVE INDEX id_sieve ON t; CREATE SIEVE INDEX ON t (id)",
}


@pytest.fixture(autouse=True, params=MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with fakes instead of Spark."""
    with without_spark(request.param):
        yield


class Within:
    """A hook that runs other statements during the call with a given number."""

    def __init__(
        self, warehouse: Warehouse, at: int, statements: str, seam: Seam = no_fault
    ) -> None:
        self._warehouse, self._at, self._statements = warehouse, at, statements
        self._seam = seam
        refused = set() if seam is no_fault else {"SIEVE_STORE_UNAVAILABLE"}
        self._expected = {"SIEVE_UNKNOWN_INDEX"} | refused
        self._calls, self.struck = 0, ""

    def __call__(self, what: str) -> None:
        # A lock prevents concurrent changes of the metastore within a process. So during this call,
        # no other statement may run.
        if what.startswith("after") or " metastore " in what:
            return
        self._calls += 1
        if self._calls == self._at:
            self.struck = what
            for statement in self._statements.split("; "):
                try:
                    Session(self._warehouse, self._seam).sql(statement)
                except SieveError as error:
                    if error.condition not in self._expected:
                        raise


def one_within_another(folder: Path, name: str, other: str) -> int:
    """Runs one statement once within each call of the named statement.

    Returns the number of calls.
    """
    for number in itertools.count(1):
        warehouse, statement = prepared(folder / f"{name} {other} {number}", name)
        within = Within(warehouse, number, OTHERS[other])
        try:
            Session(warehouse, within).sql(statement)
        except (SieveError, PySparkException):
            assert within.struck
        if not within.struck:
            return number - 1
        looked_at(warehouse)
        try:
            files, left = stable(warehouse, statement)
        except SieveError as error:
            # DROP has removed the index, so the repeated statement fails.
            if (error.condition, other) != ("SIEVE_UNKNOWN_INDEX", "drop"):
                raise
            age(warehouse)
            Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
            left = {str(path): 1 for path in warehouse.root.iterdir()}
            assert not left, within.struck
            continue
        assert files in (None, 1, len(warehouse.files("t"))), within.struck
        assert left["intents"] == 0, within.struck
        assert left["registered"] <= 1, within.struck
    raise AssertionError


@pytest.mark.parametrize(
    "mode", ["files", pytest.param("ranges", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("refresh", "vacuum"),
        ("refresh", "drop and create"),
        ("vacuum", "refresh"),
        ("vacuum", "drop"),
    ],
)
def test_one_statement_within_another(name: str, other: str, tmp_path: Path) -> None:
    """If one statement runs within a call of another, queries lose no row and indexes no file."""
    assert one_within_another(tmp_path, name, other) >= 10


@pytest.mark.soak
def test_every_statement_within_every_other(tmp_path: Path) -> None:
    """In each pair, the second statement can run within any call of the first without a loss."""
    names = ("create", "refresh", "optimize", "adopt", "disable", "set options", "vacuum", "drop")
    places = sum(one_within_another(tmp_path, name, other) for name in names for other in OTHERS)
    sys.stdout.write(f"{places} places for {len(OTHERS)} statements within {len(names)}\n")


def cut_at(place: str) -> Callable[[str], None]:
    """Returns a hook that makes the deletion of one folder of an index fail."""

    def seam(what: str) -> None:
        if re.fullmatch(rf"before delete .*/{place}", what):
            raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "refused")

    return seam


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "mode", ["files", pytest.param("ranges", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.parametrize("place", ["intents", "locations", "runs", "versions"])
@pytest.mark.parametrize("name", ["refresh in full", "vacuum", "disable"])
def test_statement_reports_that_its_index_was_dropped(
    name: str, place: str, tmp_path: Path
) -> None:
    """If an index is dropped during a call of a statement, the statement's error says so."""
    ends = []
    for number in itertools.count(1):
        warehouse, statement = prepared(tmp_path / str(number), name)
        within = Within(warehouse, number, OTHERS["drop"], cut_at(place))
        try:
            # A statement about all indexes of a table omits a dropped index.
            Session(warehouse, within).sql(statement.replace("INDEX ON", "INDEX id_sieve ON"))
            ends.append("done")
        except SieveError as error:
            ends.append(error.condition)
        if not within.struck:
            break
        age(warehouse)
        Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
        assert not list(warehouse.root.iterdir()), within.struck
    # If the index is gone before the statement opens the index, the error may omit the drop.
    found = sum(1 for _ in itertools.takewhile(lambda e: e != "SIEVE_INDEX_DROPPED", ends))
    assert set(ends[:found]) <= {"SIEVE_INDEX_NOT_USABLE", "done"}, ends
    assert set(ends[found:-1]) == {"SIEVE_INDEX_DROPPED"}, ends
    assert len(ends) - found >= (3 if name == "disable" else 10)


@pytest.mark.parametrize(
    "mode", ["files", pytest.param("ranges", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.parametrize("statement", ["REFRESH", "OPTIMIZE", "VACUUM"])
def test_statement_about_all_indexes_leaves_out_a_dropped_one(
    statement: str, tmp_path: Path
) -> None:
    """If an index is dropped during any call of a statement, the rows of other indexes remain."""
    for number in itertools.count(1):
        warehouse, _ = prepared(tmp_path / str(number), "disable")
        Session(warehouse).sql("CREATE SIEVE INDEX other ON t (id)")
        warehouse.append("t", range(40, 50))
        within = Within(warehouse, number, OTHERS["drop"])
        rows = Session(warehouse, within).sql(f"{statement} SIEVE INDEX ON t")
        names = {row[0] for row in rows}
        assert "other" in names, within.struck
        if not within.struck:
            break
    assert names == {"id_sieve", "other"}
    assert number > 5


@pytest.mark.parametrize("name", ["refresh in full", "vacuum", "disable"])
def test_index_without_its_first_version_keeps_its_files(name: str, tmp_path: Path) -> None:
    """If an index has lost its first version file, statements fail and delete nothing."""
    warehouse, statement = prepared(tmp_path, name)
    age(warehouse)
    (index,) = warehouse.root.iterdir()
    (index / "versions" / "1.json").unlink()
    before = {path for path in index.rglob("*") if path.is_file()}
    with pytest.raises(SieveError) as failed:
        Session(warehouse).sql(statement)
    assert failed.value.condition != "SIEVE_INDEX_DROPPED"
    assert "create it again" in str(failed.value)
    assert {path for path in index.rglob("*") if path.is_file()} >= before
    Session(warehouse).sql("DROP SIEVE INDEX id_sieve ON t")
    Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    assert not list(warehouse.root.iterdir())
