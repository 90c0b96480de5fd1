"""Runs the dbt package `integrations/dbt` on the project `examples/dbt`, as users would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dbt_project import Project

if TYPE_CHECKING:
    from conftest import Site

pytestmark = pytest.mark.tools


@pytest.fixture(scope="module")
def project(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The example project after one run.

    The fixture writes some column and index names in upper case.
    """
    project = Project(tmp_path_factory.mktemp("dbt"), site.thrift_port)
    project.change("events", "['id', 'kind']", "['ID', 'kind']")
    project.change("days", "'name': 'visitors'", "'name': 'Visitors'")
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
    """A first dbt run creates each index that the models list, and queries use the indexes.

    A view gets no index.
    """
    indexes = project.indexes()
    assert set(indexes) == MADE
    assert set(indexes.values()) == {("ready", 1)}
    project.check("SELECT * FROM shop.orders WHERE id = 4711", at_most=2)
    project.check("SELECT * FROM shop.recent_orders WHERE id = 19500", at_most=2)


def test_later_runs_refresh(project: Project) -> None:
    """A dbt run that appends rows or overwrites a partition refreshes the table's indexes.

    A dbt run that replaces a table creates the table's indexes again.
    """
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
    """A dbt run rebuilds an index after a change of options, and drops an index that is not listed.

    A dbt run keeps an index that a user has created by hand.
    """
    project.sql("CREATE SIEVE INDEX by_hand ON shop.days (id) OPTIONS (budget = '5%')")
    options = "'options': {'payback': 99}"
    project.change("events", ", 'kind'], 'type': 'sieve'", f"], 'type': 'sieve', {options}")
    project.change("days", "'type': 'sieve', 'name': 'Visitors'", "'type': 'btree'")
    project.dbt("run", "--select", "events", "days")
    assert set(project.indexes()) == MADE - {("events", "kind_sieve"), ("days", "visitors")} | {
        ("days", "by_hand")
    }
    described = project.sql("SELECT value FROM sieve_describe('shop.events', 'id_sieve')")
    assert any("payback = 99" in value for (value,) in described)
    project.check("SELECT * FROM shop.events WHERE id = 12500", at_most=1)


def test_a_run_fails_with_the_reason(project: Project) -> None:
    """If a model lists an index on a missing column, the model fails with the error of CREATE."""
    project.change("orders", "['customer']", "['nowhere']")
    said = project.dbt("run", "--select", "orders", fails=True)
    assert "SIEVE_UNKNOWN_COLUMN" in said
