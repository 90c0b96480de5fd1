"""Tests events of dropped, replaced and written tables while the store refuses calls.

The tests need no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sieve.errors import ConflictError, UnavailableError
from sql_ext.frontend.handle_event import EventHandler
from tests.fake_spark import Session, Warehouse, registrations, without_spark


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Installs the fakes that replace Spark."""
    with without_spark():
        yield


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Creates a table with the indexes ``a`` and ``b``."""
    made = Warehouse(tmp_path / "shop")
    table(made)
    for name in ("a", "b"):
        Session(made).sql(f"CREATE SIEVE INDEX {name} ON t (id)")
    return made


def table(warehouse: Warehouse) -> None:
    """Creates the table t of four files, with the current time as its creation time."""
    warehouse.create_table("t", [range(10 * k, 10 * k + 10) for k in range(4)])


def table_info(warehouse: Warehouse, **more: Any) -> dict[str, Any]:
    """The driver's description of the table t, as an event contains it."""
    info = warehouse.info("t")
    identity = ("catalog", "database", "table", "create_time_ms", "location")
    return {"table": {key: info[key] for key in identity}, "every": "true", **more}


def drop(warehouse: Warehouse, event_handler: EventHandler, session: Session) -> None:
    """Drops the table t, and then sends the event of this DROP TABLE."""
    has = registrations(warehouse.properties("t"))
    at = f"file:{warehouse.folder}"
    event = table_info(warehouse, event="dropped", registrations=has, location=at)
    for path in (warehouse.folder / "t").iterdir():
        path.unlink()
    (warehouse.folder / "t").rmdir()
    (warehouse.folder / "t.properties").unlink()
    event_handler.act(event, session.context())


def refusing(what: Callable[[str], bool]) -> Callable[[str], None]:
    """A hook that raises an error at selected calls, before they take effect."""

    def seam(call: str) -> None:
        if what(call):
            raise UnavailableError("SIEVE_STORE_UNAVAILABLE", f"refused: {call}")

    return seam


def folders(warehouse: Warehouse) -> set[str]:
    """The names of the folders of all indexes."""
    return {path.name for path in warehouse.root.iterdir()}


def test_failed_drop_of_one_index_does_not_stop_the_other(warehouse: Warehouse) -> None:
    """If the store refuses to drop one index of a dropped table, the other index is still deleted.

    Later, VACUUM SIEVE INDEXES deletes the index that was not dropped.
    """
    first, _ = (path.name for path in sorted(warehouse.root.iterdir()))
    session = Session(
        warehouse, refusing(lambda call: call.startswith("before create") and first in call)
    )
    drop(warehouse, EventHandler(), session)
    assert folders(warehouse) == {first}
    rows = Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    assert [row[2] for row in rows] == ["its table is gone"]
    assert folders(warehouse) == set()


def test_indexes_of_a_recreated_table_are_tried_again(warehouse: Warehouse) -> None:
    """If a build of a re-created table's indexes fails, the next re-creation builds them."""
    event_handler = EventHandler()
    drop(warehouse, event_handler, Session(warehouse))
    table(warehouse)
    written = table_info(warehouse, event="written", replaced="true")
    refused = Session(warehouse, refusing(lambda call: call.startswith("before mkdirs")))
    event_handler.act(written, refused.context())
    assert event_handler.state("shop", "t").startswith("failed: ")
    assert registrations(warehouse.properties("t")) == {}
    drop(warehouse, event_handler, Session(warehouse))
    table(warehouse)
    event_handler.act(
        table_info(warehouse, event="written", replaced="true"), Session(warehouse).context()
    )
    assert event_handler.state("shop", "t") == ""
    made = [row[2] for row in Session(warehouse).sql("SHOW SIEVE INDEXES ON t")]
    assert made == ["a", "b"]


def test_only_the_failed_index_is_remembered(warehouse: Warehouse) -> None:
    """If the build of one of a re-created table's two indexes fails, only this index is retried."""
    event_handler = EventHandler()
    drop(warehouse, event_handler, Session(warehouse))
    table(warehouse)
    has_one = refusing(
        lambda call: (
            call.startswith("before mkdirs") and bool(registrations(warehouse.properties("t")))
        )
    )
    event_handler.act(
        table_info(warehouse, event="written", replaced="true"),
        Session(warehouse, has_one).context(),
    )
    (made,) = Session(warehouse).sql("SHOW SIEVE INDEXES ON t")
    assert event_handler.state("shop", "t").startswith("failed: ")
    drop(warehouse, event_handler, Session(warehouse))
    table(warehouse)
    event_handler.act(
        table_info(warehouse, event="written", replaced="true"), Session(warehouse).context()
    )
    assert [row[2] for row in Session(warehouse).sql("SHOW SIEVE INDEXES ON t")] == ["a", "b"]
    Session(warehouse).sql("DROP SIEVE INDEX a ON t")
    event_handler.act(
        table_info(warehouse, event="written", replaced="true"), Session(warehouse).context()
    )
    assert [row[2] for row in Session(warehouse).sql("SHOW SIEVE INDEXES ON t")] == ["b"]
    assert made[2] == "a"


def test_late_event_of_a_dropped_table_creates_no_index(warehouse: Warehouse) -> None:
    """A late write event of a dropped table builds no indexes for the new table."""
    event_handler = EventHandler()
    waited = table_info(warehouse, event="written", replaced="false")
    drop(warehouse, event_handler, Session(warehouse))
    table(warehouse)
    event_handler.act(waited, Session(warehouse).context())
    event_handler.act(
        table_info(warehouse, event="written", replaced="true"), Session(warehouse).context()
    )
    assert [row[2] for row in Session(warehouse).sql("SHOW SIEVE INDEXES ON t")] == ["a", "b"]


def test_table_replaced_again_gets_all_its_indexes_back(warehouse: Warehouse) -> None:
    """If the table is re-created while its indexes are built, the next write builds all of them."""
    event_handler = EventHandler()
    drop(warehouse, event_handler, Session(warehouse))
    table(warehouse)

    def dropped_meanwhile(call: str) -> None:
        if call.startswith("before mkdirs") and registrations(warehouse.properties("t")):
            drop(warehouse, event_handler, Session(warehouse))
            table(warehouse)
            raise UnavailableError("SIEVE_STORE_UNAVAILABLE", f"refused: {call}")

    written = table_info(warehouse, event="written", replaced="true")
    event_handler.act(written, Session(warehouse, dropped_meanwhile).context())
    assert event_handler.state("shop", "t").startswith("failed: ")
    event_handler.act(
        table_info(warehouse, event="written", replaced="true"), Session(warehouse).context()
    )
    assert [row[2] for row in Session(warehouse).sql("SHOW SIEVE INDEXES ON t")] == ["a", "b"]


def test_dropped_index_does_not_stop_the_refresh_of_others(
    warehouse: Warehouse,
) -> None:
    """If one index is dropped during an automatic refresh, the other indexes are still refreshed.

    A REFRESH statement also refreshes the other indexes, unless it names the dropped index.
    """

    def dropped_meanwhile(call: str) -> None:
        if call.startswith("before create") and "/versions/" in call:
            Session(warehouse).sql("DROP SIEVE INDEX IF EXISTS a ON t")

    warehouse.append("t", range(100, 110))
    event_handler = EventHandler()
    session = Session(warehouse, dropped_meanwhile)
    event_handler.act(table_info(warehouse, event="written", replaced="false"), session.context())
    assert event_handler.state("shop", "t") == ""
    (left,) = Session(warehouse).sql("SHOW SIEVE INDEXES ON t")
    assert (left[2], left[7], left[9]) == ("b", 2, 5)
    Session(warehouse).sql("CREATE SIEVE INDEX a ON t (id)")
    warehouse.append("t", range(110, 120))
    with pytest.raises(ConflictError, match="index a was dropped"):
        Session(warehouse, dropped_meanwhile).sql("REFRESH SIEVE INDEX a ON t")
    Session(warehouse).sql("CREATE SIEVE INDEX a ON t (id)")
    warehouse.append("t", range(120, 130))
    (refreshed,) = Session(warehouse, dropped_meanwhile).sql("REFRESH SIEVE INDEX ON t")
    assert refreshed[0] == "b"
    (left,) = Session(warehouse).sql("SHOW SIEVE INDEXES ON t")
    assert (left[2], left[7], left[9]) == ("b", 3, 7)


def files(warehouse: Warehouse) -> dict[str, int]:
    """The number of files in each index of the table t."""
    return {row[2]: row[9] for row in Session(warehouse).sql("SHOW SIEVE INDEXES ON t")}


def follow(warehouse: Warehouse, index: str) -> None:
    """Sets `refresh = 'auto'`, with which every write refreshes the index."""
    Session(warehouse).sql(f"ALTER SIEVE INDEX {index} ON t SET OPTIONS (refresh = 'auto')")


def test_option_refresh_auto_needs_no_session_setting(warehouse: Warehouse) -> None:
    """A write refreshes an index with `refresh = 'auto'`, for any setting of the session."""
    follow(warehouse, "a")
    warehouse.append("t", range(100, 110))
    event_handler = EventHandler()
    written = table_info(warehouse, event="written", replaced="false", every="false")
    answer = event_handler.act(written, Session(warehouse).context())
    assert answer == {"again": False, "replaced": False, "every": False}
    assert files(warehouse) == {"a": 5, "b": 4}
    event_handler.act(written | {"every": "true"}, Session(warehouse).context())
    assert files(warehouse) == {"a": 5, "b": 5}


def test_failed_automatic_refresh_leaves_the_index_stale(warehouse: Warehouse) -> None:
    """If an automatic refresh fails, SHOW reports the index as stale, with the reason.

    The next successful refresh removes the reason from SHOW.
    """
    follow(warehouse, "a")
    warehouse.append("t", range(100, 110))
    event_handler = EventHandler()
    written = table_info(warehouse, event="written", replaced="false", every="false")
    refused = Session(warehouse, refusing(lambda call: call.startswith("before create")))
    event_handler.act(written, refused.context())
    assert event_handler.state("SHOP", "T").startswith("stale: [SIEVE_STORE_UNAVAILABLE] refused")
    event_handler.act(written, Session(warehouse).context())
    assert event_handler.state("shop", "t") == ""
    assert files(warehouse) == {"a": 5, "b": 4}


@pytest.mark.parametrize("every", ["false", "true"])
@pytest.mark.parametrize("replaced", ["false", "true"])
def test_writes_during_a_refresh_are_reported_together(
    warehouse: Warehouse, every: str, replaced: str
) -> None:
    """If several writes happen during a refresh, one further refresh covers all these writes."""
    follow(warehouse, "a")
    warehouse.append("t", range(100, 110))
    event_handler = EventHandler()
    plain = table_info(warehouse, event="written", replaced="false", every="false")
    answers: list[Any] = []

    def meanwhile(call: str) -> None:
        if call.startswith("before create") and not answers:
            writes = (plain | {"every": every}, plain | {"replaced": replaced}, plain)
            answers.extend(
                event_handler.act(write, Session(warehouse).context()) for write in writes
            )
            assert event_handler.state("shop", "t") == "refreshing"

    last = event_handler.act(plain, Session(warehouse, meanwhile).context())
    assert answers == [{"again": False, "replaced": False, "every": False}] * 3
    assert last == {"again": True, "replaced": replaced == "true", "every": every == "true"}


def test_replaced_table_gets_back_indexes_with_refresh_auto(warehouse: Warehouse) -> None:
    """If a statement replaces a table, Sieve creates an index with `refresh = 'auto'` again.

    Indexes without `refresh = 'auto'` are created again only in a session that restores all
    indexes.
    """
    follow(warehouse, "b")
    event_handler = EventHandler()
    drop(warehouse, event_handler, Session(warehouse))
    table(warehouse)
    written = table_info(warehouse, event="written", replaced="true", every="false")
    event_handler.act(written, Session(warehouse).context())
    assert files(warehouse) == {"b": 4}
    event_handler.act(written | {"every": "true"}, Session(warehouse).context())
    assert files(warehouse) == {"a": 4, "b": 4}


def test_declared_refresh_auto_builds_the_index(warehouse: Warehouse) -> None:
    """If a declared index has `refresh = 'auto'`, a write to the table builds the index.

    Without `refresh = 'auto'`, a write builds the index only if the session refreshes all indexes.
    """
    Session(warehouse).sql("DROP SIEVE INDEX ON t (id)")
    declared = {"sieve.columns": "id"}
    warehouse.alter("t", lambda before: before | declared)
    event_handler = EventHandler()
    written = table_info(warehouse, event="written", replaced="false", every="false")
    event_handler.act(written, Session(warehouse).context())
    assert files(warehouse) == {}
    declared["sieve.options"] = "refresh = 'auto'"
    warehouse.alter("t", lambda before: before | declared)
    event_handler.act(written, Session(warehouse).context())
    assert files(warehouse) == {"id_sieve": 4}
    (registration,) = registrations(warehouse.properties("t")).values()
    assert '"refresh":"auto"' in registration
