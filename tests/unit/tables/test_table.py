"""Tests a table without Spark: its changes, its frames and its registrations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from sieve.errors import InvalidInputError, UnavailableError, UnknownOutcomeError
from sieve.metadata.records import Commit
from sieve.metadata.registration import DECLARED_COLUMNS, Registration, property_key
from sieve.tables import hudi, table
from sieve.tables.column import Column
from sieve.tables.data_file import Changes, DataFile, FileCuts
from sieve.tables.table import DAMAGED, LOCATION, CatalogTable
from tests.fake_spark import (
    Access,
    MetastoreFault,
    PlainTable,
    Seam,
    Warehouse,
    no_fault,
    registrations,
)
from tests.unit.metadata.manifest_sample import SAMPLE

LISTED = '[["file:/t/a", 10, 7]]'
FILES = (DataFile("file:/t/a", 10, 7),)
CUTS = '[{"offsets": [4, 9], "footer": 30}, null, {"offsets": [], "footer": 0}]'
OWN = Registration(SAMPLE.index, ("id",), "file:/r")


def catalog_table(tmp_path: Path, format_name: str, spark: Any = None, **calls: Any) -> Any:
    """Returns a table of a format, with a shim that gives fixed answers."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1]])
    info = warehouse.info("t") | {"format": format_name}
    return CatalogTable(SimpleNamespace(info=lambda: json.dumps(info), **calls), spark)


def test_files_are_in_the_order_of_the_listing(tmp_path: Path) -> None:
    """Files keep the order of the listing. A file that is read whole has no cuts."""
    asked: list[Any] = []
    found = catalog_table(
        tmp_path,
        "parquet",
        fingerprint=lambda: "ab",
        list=lambda: LISTED,
        cuts=lambda *given: asked.append(given) or CUTS,
    )
    assert (found.fingerprint(), found.files()) == ("ab", FILES)
    assert found.cuts((3, 4, 5), 1 << 20) == [FileCuts((4, 9), 30), None, FileCuts((), 0)]
    assert asked == [([3, 4, 5], 1 << 20)]


def test_a_table_of_plain_files_has_no_commits(tmp_path: Path) -> None:
    """A table of plain files reports no changes and no commit, so a refresh lists all files."""
    found = catalog_table(tmp_path, "orc", instant=lambda: -1)
    assert found.changes("2025-03-01T12:00:00.000Z") is None
    assert (found.instant_ms(), found.commit()) == (None, None)
    assert found.appended({1: (5, 6, True)}) == frozenset()


def test_changes_of_a_hudi_table_are_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a Hudi table, the changes since an instant are the folders that commits wrote to."""
    asked: list[Any] = []
    answers: list[Any] = [(frozenset({"file:/t/p=1"}), LISTED), None]
    monkeypatch.setattr(hudi, "list_changed", lambda *given: asked.append(given) or answers.pop(0))
    monkeypatch.setattr(hudi, "find_appended", lambda *given: asked.append(given) or {1})
    found = catalog_table(tmp_path, "hudi", instant=lambda: 0)
    changed = found.changes("1970-01-01T00:00:01.500Z")
    assert changed == Changes(frozenset({"file:/t/p=1"}), FILES)
    assert found.changes("1970-01-01T00:00:01.500Z") is None
    assert asked == [(found._access, 1500)] * 2
    assert (found.instant_ms(), found.commit()) == (0, None)
    asked.clear()
    assert found.appended({}) == frozenset()
    assert asked == []
    states = {1: (5, 6, True)}
    assert found.appended(states) == {1}
    assert asked == [(found._access, states, found.info.fingerprint_parts)]


def test_changes_of_a_delta_table_are_paths(tmp_path: Path) -> None:
    """For a Delta table, the changes since a version's commit are the paths in the table's log.

    For a version without a commit of its Delta table, the changes are unknown.
    """
    found = catalog_table(
        tmp_path,
        "delta",
        history=lambda: SimpleNamespace(
            commit=lambda: json.dumps({"table": "0b6c", "version": 4, "time_ms": 77}),
            listSince=lambda number: json.dumps([[number + 1], ["file:/t/a", "file:/t/b"], LISTED]),
        ),
    )
    changed = found.changes("2025-03-01T12:00:00.000Z", Commit("0b6c", 3))
    assert changed == Changes(frozenset(), FILES, frozenset({"file:/t/a", "file:/t/b"}))
    assert found.changes("2025-03-01T12:00:00.000Z", Commit("other", 3)) is None
    assert found.changes("2025-03-01T12:00:00.000Z") is None
    assert (found.instant_ms(), found.commit()) == (77, Commit("0b6c", 4))
    assert found.appended({1: (5, 6, True)}) == frozenset()


class Sessions:
    """A Spark session, and its clones with their settings."""

    def __init__(self) -> None:
        self.clones: list[dict[str, str]] = []

    def cloneSession(self) -> Any:  # noqa: N802 - Spark's name
        own: dict[str, str] = {}
        self.clones.append(own)
        return SimpleNamespace(own=own, conf=lambda: SimpleNamespace(set=own.__setitem__))

    def conf(self) -> Any:
        return SimpleNamespace(getOption=lambda _: SimpleNamespace(isEmpty=lambda: False))


class Rows:
    """A frame that records the calls of functions of its columns."""

    def __init__(self, found: Any, _spark: Any) -> None:
        self.found, self.steps = found, list[Any]()

    def withColumn(self, *given: Any) -> Rows:  # noqa: N802 - Spark's name
        self.steps.append(given)
        return self

    def drop(self, name: str) -> Rows:
        self.steps.append(name)
        return self


@pytest.mark.parametrize("format_name", ["parquet", "csv", "json"])
def test_a_frame_is_read_in_a_session_of_its_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    """Builds of columns with the same settings share one cloned session.

    A build reads whole texts in the user's own session. In text formats, the location number of a
    damaged record is negative.
    """
    monkeypatch.setattr(table, "DataFrame", Rows)
    monkeypatch.setattr(table, "functions", SimpleNamespace(expr=lambda text: text))
    sessions = Sessions()
    found = catalog_table(
        tmp_path, format_name, SimpleNamespace(_jsparkSession=sessions), frame=lambda *given: given
    )
    number, name = Column(("id",), "bigint"), Column(("name",), "string")
    session, *rest = (frame := found.frame((3, 5), number, {5}, [(7,), ()])).found
    assert rest == [[3, 5], [5], LOCATION, "[[7], []]", "", ""]
    assert session.own == {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
    damaged = [(LOCATION, f"if({DAMAGED}, ~{LOCATION}, {LOCATION})"), DAMAGED]
    assert frame.steps == ([] if format_name == "parquet" else damaged)
    assert found.frame((3,), Column(("other",), "int")).found == (
        session,
        [3],
        [],
        LOCATION,
        "[]",
        "",
        "",
    )
    assert found.frame((3,), name).found[0] is session
    assert found.frame((3,), name, whole_texts=True).found[0] is sessions
    assert found.frame((3,), number, whole_texts=True).found[0] is session
    assert len(sessions.clones) == 1


class Metastore(Access):
    """A metastore whose properties can be read only a limited number of times.

    Attributes:
        publications: how many times the properties can still be read.
    """

    publications = 1 << 30

    def publish(self) -> str:
        self.publications -= 1
        if self.publications < 0:
            raise Py4JError("no answer")
        return super().publish()


def plain_table(tmp_path: Path, seam: Seam = no_fault, publications: int = 1 << 30) -> PlainTable:
    """Returns a table of plain files in a metastore."""
    warehouse = Warehouse(tmp_path)
    if not (tmp_path / "t").exists():
        warehouse.create_table("t", [[1]])
    made = PlainTable(warehouse, "t", seam)
    made._access = Metastore(warehouse, "t", seam)
    made._access.publications = publications
    return made


def failing(when: str) -> Seam:
    """A hook that makes a call of a metastore fail, either before or after its effect."""

    def seam(what: str) -> None:
        if what.startswith(f"{when} metastore"):
            raise MetastoreFault("hung up\nat Some.java")

    return seam


def registered(tmp_path: Path) -> Sequence[str]:
    """The keys of the properties that register indexes."""
    return [*registrations(Warehouse(tmp_path).properties("t"))]


def test_another_registration_is_not_overwritten(tmp_path: Path) -> None:
    """`register` overwrites only the registration that the statement replaces."""
    early, late = plain_table(tmp_path), plain_table(tmp_path)
    early.register("v", OWN)
    other = Registration(SAMPLE.index, ("id",), "file:/other")
    with pytest.raises(InvalidInputError, match="another user created an index v"):
        late.register("v", other)
    assert plain_table(tmp_path).info.registrations == {"v": OWN}
    with pytest.raises(InvalidInputError, match="meanwhile"):
        late.register("v", OWN, in_place_of=other)
    late.register("v", other, in_place_of=OWN)
    assert plain_table(tmp_path).info.registrations == {"v": other}
    plain_table(tmp_path).register("v", OWN)
    assert plain_table(tmp_path).info.registrations == {"v": OWN}


def test_properties_show_if_a_registration_failed(
    tmp_path: Path,
) -> None:
    """After a failed registration, the table's properties show the outcome.

    If Sieve cannot read the properties after a failure, the outcome is unknown.
    """
    with pytest.raises(MetastoreFault):
        plain_table(tmp_path, failing("before")).register("v", OWN)
    assert registered(tmp_path) == []
    with pytest.raises(UnknownOutcomeError, match=r"index v of shop\.t is built, but it is"):
        plain_table(tmp_path, failing("before"), 1).register("v", OWN)
    with pytest.raises(UnavailableError, match=r"does not answer for table shop\.t \(no answer\)"):
        plain_table(tmp_path, no_fault, 0).register("v", OWN)
    assert registered(tmp_path) == []
    plain_table(tmp_path, failing("after")).register("v", OWN)
    assert registered(tmp_path) == [property_key("v")]


def test_declared_columns_are_a_property(tmp_path: Path) -> None:
    """A table property declares the columns. Without columns, Sieve removes the property.

    Sieve reports the first line of a metastore's error.
    """
    plain_table(tmp_path).declare("id, name")
    assert Warehouse(tmp_path).properties("t")[DECLARED_COLUMNS] == "id, name"
    for columns in ("id", ""):
        with pytest.raises(UnavailableError, match=r"table shop\.t \(hung up\)$"):
            plain_table(tmp_path, failing("before")).declare(columns)
    plain_table(tmp_path).declare("")
    assert DECLARED_COLUMNS not in Warehouse(tmp_path).properties("t")
