"""Makes each call of a statement fail in turn, before or after the call takes effect."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_scenarios import STATEMENTS, age, looked_at, prepared, stable
from pyspark.errors import PySparkException

from sieve.errors import SieveError, UnavailableError, UnknownOutcomeError
from tests.fake_spark import MODES, MetastoreFault, Session, without_spark


class Fault:
    """A hook that raises an error once, at the call of a given number (1 is the first).

    Attributes:
        struck: the name of the failed call.
    """

    def __init__(self, when: str, at: int) -> None:
        self._when, self._at, self._calls, self.struck = when, at, 0, ""

    def __call__(self, what: str) -> None:
        if not what.startswith(self._when):
            return
        self._calls += 1
        if self._calls != self._at:
            return
        self.struck = what
        if " metastore " in what:
            raise MetastoreFault("the metastore hung up")
        if what.startswith("after create"):
            raise UnknownOutcomeError("SIEVE_STORE_UNKNOWN_OUTCOME", "reply lost")
        raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "refused")


STEPS = {"files": 1, "ranges": 3}
"""The tests make only every n-th call fail. Each call fails in a separate run of the statement.

With ranges, a statement makes the same calls as with files, so every third call suffices.
"""


@pytest.fixture(autouse=True, params=MODES)
def step(request: pytest.FixtureRequest) -> Iterator[int]:
    """Runs each test with fakes instead of Spark. Yields the step between failing calls."""
    with without_spark(request.param):
        yield STEPS[request.param]


@pytest.mark.parametrize("name", STATEMENTS)
def test_changes_are_announced(name: str, tmp_path: Path) -> None:
    """A statement announces its changes to the driver before it makes its first visible change.

    During the build of an index, nothing visible changes, so the statement announces nothing.
    """
    warehouse, statement = prepared(tmp_path, name)
    age(warehouse)
    told: list[tuple[bool, str]] = []
    session = Session(warehouse, lambda what: told.append((session.changing, what)))
    session.sql(statement)
    changes = [
        announced
        for announced, what in told
        if what.startswith("before metastore")
        or re.search(r"before create .*/versions/(?!1\.json)", what)
        or (what.startswith("before delete") and name in {"vacuum", "vacuum all", "drop"})
    ]
    assert changes
    assert all(changes)
    assert not told[0][0]
    if name in {"create", "refresh", "refresh in full", "optimize"}:
        written = [announced for announced, what in told if "/locations/" in what]
        assert not written[0]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "step", ["files", pytest.param("ranges", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_an_error_at_every_call(name: str, when: str, step: int, tmp_path: Path) -> None:
    """If any call fails, the statement succeeds or reports the error.

    Queries lose no row, and no version is incomplete. After an error, the repeated statement
    succeeds, and VACUUM deletes the leftover files.
    """
    undisturbed = stable(*prepared(tmp_path / "undisturbed", name))
    for number in itertools.count(1, step):
        warehouse, statement = prepared(tmp_path / str(number), name)
        fault = Fault(when, number)
        try:
            Session(warehouse, fault).sql(statement)
        except (SieveError, PySparkException):
            assert fault.struck
            if (name, when) == ("create", "before"):
                assert not list(warehouse.root.glob("*")), fault.struck
        if not fault.struck:
            break
        seen = looked_at(warehouse)
        # After a failed CREATE OR REPLACE, queries use the old or the new index.
        assert name != "replace" or (seen is not None and seen.used), fault.struck
        files, left = stable(warehouse, statement)
        assert files == undisturbed[0], fault.struck
        assert all(left[kind] <= most for kind, most in undisturbed[1].items()), fault.struck
        assert not list(warehouse.root.rglob(".*")), fault.struck
    assert number > 5
