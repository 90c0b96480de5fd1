"""The dbt package `integrations/dbt` in the project `examples/dbt`, run as its users run it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from thrift_session import thrift_session

if TYPE_CHECKING:
    from conftest import Site

pytestmark = pytest.mark.tools

HOME = Path(__file__).resolve().parents[2]
DBT = HOME / "build" / "dbt" / "bin" / "dbt"


class Project:
    """A copy of the example, beside a copy of the package, on a server of Spark."""

    def __init__(self, folder: Path, port: int) -> None:
        self._port = port
        self.folder = folder / "examples" / "dbt"
        for name in ("examples/dbt", "integrations/dbt"):
            shutil.copytree(HOME / name, folder / name)
        self.dbt("deps")

    def dbt(self, *args: str, fails: bool = False) -> str:
        """What a command of dbt prints."""
        done = subprocess.run(
            [DBT, "--no-send-anonymous-usage-stats", *args, "--profiles-dir", "."],
            cwd=self.folder,
            env=os.environ | {"SIEVE_THRIFT_PORT": str(self._port)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert bool(done.returncode) == fails, done.stdout[-6000:] + done.stderr[-2000:]
        return done.stdout

    def change(self, model: str, old: str, new: str) -> None:
        """Another text in the file of a model."""
        file = self.folder / "models" / f"{model}.sql"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement of a session of its own."""
        with thrift_session(self._port) as connection:
            cursor = connection.cursor()
            cursor.execute(text)
            return cursor.fetchall()

    def indexes(self) -> dict[tuple[str, str], tuple[str, int]]:
        """State and version by table and index."""
        rows = self.sql("SELECT table, index, state, version FROM sieve_indexes('shop')")
        return {(table, index): (state, version) for table, index, state, version in rows}

    def changes(self, table: str, index: str) -> list[str]:
        """What the versions of an index did, the newest first."""
        rows = self.sql(f"SELECT index, change FROM sieve_versions('shop.{table}')")
        return [change for name, change in rows if name == index]

    def check(self, query: str, at_most: int) -> None:
        """The same rows with the index and without, and few files read."""
        with thrift_session(self._port) as connection:
            cursor = connection.cursor()
            answers = []
            for enabled in ("false", "true"):
                cursor.execute(f"SET spark.sieve.enabled = {enabled}")
                cursor.fetchall()
                cursor.execute(query)
                answers.append(sorted(cursor.fetchall()))
            cursor.execute(f"EXPLAIN SIEVE {query}")
            (scan,) = cursor.fetchall()
        assert answers[0] == answers[1] != []
        assert scan[5] <= at_most < scan[4], scan


@pytest.fixture(scope="module")
def project(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The example, run once."""
    if not DBT.exists():
        pytest.fail("run `make test-clients`, which installs dbt")
    project = Project(tmp_path_factory.mktemp("dbt"), site.thrift_port)
    project.dbt("run")
    return project


MADE = {
    ("orders", "id_sieve"),
    ("orders", "customer_sieve"),
    ("events", "id_sieve"),
    ("events", "kind_sieve"),
    ("days", "visitors"),
}


def test_a_first_run_creates(project: Project) -> None:
    """Each listed index is there, ready, and used; a view has none."""
    indexes = project.indexes()
    assert set(indexes) == MADE
    assert set(indexes.values()) == {("ready", 1)}
    project.check("SELECT * FROM shop.orders WHERE id = 4711", at_most=2)
    project.check("SELECT * FROM shop.recent_orders WHERE id = 19500", at_most=2)


def test_later_runs_refresh(project: Project) -> None:
    """Runs that append or overwrite a partition leave no index stale; a table's are made again."""
    for _ in range(2):
        project.dbt("run")
        states = {key: state for key, (state, _) in project.indexes().items()}
        assert states == dict.fromkeys(MADE, "ready")
    assert project.changes("orders", "id_sieve") == ["created"]
    assert project.changes("events", "id_sieve") == ["refreshed", "refreshed", "created"]
    assert len(project.changes("days", "visitors")) == 3
    project.check("SELECT * FROM shop.events WHERE id = 10500", at_most=1)
    day = "day = DATE '2026-01-02'"
    project.check(f"SELECT * FROM shop.days WHERE visitor = 31 AND {day}", at_most=1)


def test_a_run_follows_the_config(project: Project) -> None:
    """An index of other options is built anew, an unlisted one goes, one of a user stays."""
    project.sql("CREATE SIEVE INDEX by_hand ON shop.days (id) OPTIONS (budget = '5%')")
    options = "'options': {'payback': 99}"
    project.change("events", ", 'kind'], 'type': 'sieve'", f"], 'type': 'sieve', {options}")
    project.change("days", "'type': 'sieve', 'name': 'visitors'", "'type': 'btree'")
    project.dbt("run", "--select", "events", "days")
    assert set(project.indexes()) == MADE - {("events", "kind_sieve"), ("days", "visitors")} | {
        ("days", "by_hand")
    }
    described = project.sql("SELECT value FROM sieve_describe('shop.events', 'id_sieve')")
    assert any("payback = 99" in value for (value,) in described)
    project.check("SELECT * FROM shop.events WHERE id = 12500", at_most=1)


def test_a_run_fails_with_the_reason(project: Project) -> None:
    """A column that is not there fails its model by the error of the statement."""
    project.change("orders", "['customer']", "['nowhere']")
    said = project.dbt("run", "--select", "orders", fails=True)
    assert "SIEVE_UNKNOWN_COLUMN" in said
