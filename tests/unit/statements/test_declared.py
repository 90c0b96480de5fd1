"""Tables that declare indexes: REFRESH and writes build the indexes, and DROP removes them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sieve.errors import InvalidInputError, UnavailableError
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import IndexUuid
from sieve.metadata.registration import Registration
from sieve.operations.registered_index import Failed, Gone, Ready, RegisteredIndex
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sql_ext.frontend.handle_event import EventHandler
from sql_ext.statements.declared import MissingIndexes, find_missing
from sql_ext.statements.parser import parse_columns, parse_options
from tests.fake_scan import scan
from tests.fake_spark import (
    MetastoreFault,
    PlainTable,
    Session,
    Warehouse,
    no_fault,
    registrations,
    without_spark,
)
from tests.unit.metadata.manifest_sample import SAMPLE

STRUCT = "struct<b:int,`c d`:int>"
COLUMNS = (
    *(Column((name,), "bigint") for name in ("id", "Day", "a_b", "x,y", "on")),
    Column(("flag",), "boolean"),
    Column(("tags",), "map<string,string>"),
    Column(("a",), STRUCT),
    Column(("a", "b"), "int"),
    Column(("a", "c d"), "int"),
)


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Installs the fakes that replace Spark."""
    with without_spark():
        yield


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Creates a table of four files, which has no index."""
    made = Warehouse(tmp_path / "shop")
    made.create_table("t", [range(10 * k, 10 * k + 10) for k in range(4)])
    return made


def declare(warehouse: Warehouse, columns: str, options: str = "") -> None:
    """Sets the table properties that declare indexes."""
    more = {"sieve.columns": columns} | ({"sieve.options": options} if options else {})
    warehouse.alter("t", lambda before: before | more)


def write(warehouse: Warehouse, event_handler: EventHandler, session: Session) -> None:
    """Handles the event of a write to t. The session has set ``spark.sieve.refresh.auto``."""
    info = warehouse.info("t")
    identity = ("catalog", "database", "table", "create_time_ms", "location")
    table = {key: info[key] for key in identity}
    event = {"event": "written", "table": table, "replaced": "false", "every": "true"}
    event_handler.act(event, session.context())


def missing(
    warehouse: Warehouse,
    columns: str,
    options: str = "",
    has: Mapping[str, str] | None = None,
    state: type[Failed | Gone | Ready] = Ready,
    **others: str,
) -> MissingIndexes:
    """Returns the missing declared indexes, if all existing indexes have the given state."""
    table = PlainTable(warehouse, "t", no_fault)
    declared = {"sieve.columns": columns, "sieve.options": options}
    declared |= {f"sieve.{key}": value for key, value in others.items()}
    table.info = replace(
        table.info, columns=COLUMNS, partition_columns=("part",), declared=declared
    )
    indexes: dict[str, RegisteredIndex] = {}
    for name, column in (has or {}).items():
        registration = Registration(IndexUuid("0" * 36), (column,), "file:/r")
        indexes[name] = (
            Ready(name, registration, LocalStore(), SAMPLE)
            if state is Ready
            else state(name, registration, "a problem", None)
        )
    return find_missing(table, indexes)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("", []),
        (" \n", []),
        ("id", ["id_sieve"]),
        ("id, day", ["id_sieve", "day_sieve"]),
        ("ID,`Day` ,id", ["id_sieve", "day_sieve"]),
        ("a.b, `a`.`c d`", ["a_b_sieve", "a_c d_sieve"]),
        ("`x,y`, `on`", ["x,y_sieve", "on_sieve"]),
    ],
)
def test_columns_are_identifiers(warehouse: Warehouse, columns: str, names: list[str]) -> None:
    """A declaration lists columns in the form of CREATE SIEVE INDEX, and in any letter case."""
    found = missing(warehouse, columns)
    assert ([one.name for one in found.wanted], found.refused) == (names, ())
    assert found.options == IndexOptions()


@pytest.mark.parametrize(
    ("columns", "name", "words"),
    [
        ("idd", "idd_sieve", "did you mean id?"),
        ("a", "a_sieve", "index one of its fields"),
        ("part", "part_sieve", "partition column"),
        ("tags", "tags_sieve", "cannot be indexed"),
        ("id,,day", None, "line 1, column 10"),
        ("id) OPTIONS (budget = '50%'", None, "sieve.columns"),
        ("id day", None, "sieve.columns"),
        ("on", None, "sieve.columns"),
        ("`id", None, "sieve.columns"),
        ("!", None, "sieve.columns"),
    ],
)
def test_wrong_names_are_advice(
    warehouse: Warehouse, columns: str, name: str | None, words: str
) -> None:
    """The advice reports a wrong column name in a declaration. All other indexes are built.

    If the declaration's list of columns cannot be parsed, no index is built.
    """
    found = missing(warehouse, f"flag, {columns}")
    (refused,) = found.refused
    assert refused.name == name
    assert words in refused.advice
    assert "\n" not in refused.advice
    if name is None:
        assert found.wanted == ()
    else:
        assert "flag_sieve" in [one.name for one in found.wanted]


def test_misspelt_properties_are_advice(warehouse: Warehouse) -> None:
    """For a misspelt property, the advice names a similar property; indexes are still built."""
    found = missing(warehouse, "id", Column="day", opts="", stuff="")
    known = "sieve.columns and sieve.options"
    assert [one.name for one in found.wanted] == ["id_sieve"]
    assert [(one.name, one.advice) for one in found.refused] == [
        (None, "table property sieve.Column means nothing to Sieve; did you mean sieve.columns?"),
        (None, "table property sieve.opts means nothing to Sieve; did you mean sieve.options?"),
        (None, f"table property sieve.stuff means nothing to Sieve; it knows {known}"),
    ]
    declare(warehouse, "id,,day")
    warehouse.alter("t", lambda before: before | {"sieve.column": "id"})
    advice = [row[-1] for row in Session(warehouse).sql("REFRESH SIEVE INDEX ON t")]
    assert [text.split()[2].strip(":") for text in advice] == ["sieve.column", "sieve.columns"]


def test_options_are_those_of_create(warehouse: Warehouse) -> None:
    """A declaration has the same options as CREATE, but without parentheses.

    If the options do not suit a column, its index is not built.
    """
    found = missing(warehouse, "id, flag", "shape = 'map', budget = \"7%\"")
    assert (found.options.shape, found.options.budget) == ("map", "7%")
    assert [one.name for one in found.wanted] == ["id_sieve"]
    assert [one.name for one in found.refused] == ["flag_sieve"]
    for wrong in ("shape = 'mop'", "sharp = 1", "shape map", "shape = map) COMMENT 'x'", "("):
        found = missing(warehouse, "id", wrong)
        assert found.wanted == ()
        assert [one.name for one in found.refused] == [None]
        assert "sieve.options" in found.refused[0].advice


def test_any_index_on_the_column_counts(warehouse: Warehouse) -> None:
    """A declared column that already has an index, of any name, gets no further index.

    An index without files does not count as an index of the column.
    """
    assert missing(warehouse, "id", has={"mine": "id"}).wanted == ()
    assert missing(warehouse, "id", has={"mine": "id"}, state=Failed).wanted == ()
    assert len(missing(warehouse, "id", has={"mine": "id"}, state=Gone).wanted) == 1


def test_declared_index_gets_a_free_name(warehouse: Warehouse) -> None:
    """If an index on another column has the default name, a declared index gets a number."""
    (one,) = missing(warehouse, "id", has={"id_sieve": "Day"}).wanted
    assert one.name == "id_sieve_2"
    two = missing(warehouse, "a_b, a.b").wanted
    assert [one.name for one in two] == ["a_b_sieve", "a_b_sieve_2"]


def test_refresh_builds_the_declared_index(warehouse: Warehouse) -> None:
    """The first REFRESH builds a declared index, and the second REFRESH keeps it."""
    declare(warehouse, "id", "error = 1")
    ((name, version, files, *_),) = Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    assert (name, version, files) == ("id_sieve", 1, 4)
    told = scan(warehouse, "t", 13)
    assert (told.files, told.used) == (1, ("id_sieve@1",))
    (folder,) = warehouse.root.iterdir()
    assert Session(warehouse).sql("REFRESH SIEVE INDEX ON t")[0][1] == 1
    assert list(warehouse.root.iterdir()) == [folder]


@pytest.mark.parametrize("which", ["id_sieve ON t", "ON t (ID)"])
def test_refresh_of_one_index_builds_only_this_one(warehouse: Warehouse, which: str) -> None:
    """If REFRESH names a declared index or its column, REFRESH builds only this index."""
    declare(warehouse, "id, nope")
    with pytest.raises(InvalidInputError, match="SIEVE_UNKNOWN_INDEX"):
        Session(warehouse).sql("REFRESH SIEVE INDEX other ON t")
    for _ in range(2):
        (row,) = Session(warehouse).sql(f"REFRESH SIEVE INDEX {which}")
        assert row[:2] == ("id_sieve", 1)


def test_write_builds_the_declared_index(warehouse: Warehouse) -> None:
    """The first write builds a declared index, and the next write refreshes it.

    A wrong column name in the declaration does not make a write fail.
    """
    declare(warehouse, "nope, id", "error = 1")
    event_handler = EventHandler()
    write(warehouse, event_handler, Session(warehouse))
    assert scan(warehouse, "t", 13).used == ("id_sieve@1",)
    warehouse.append("t", range(40, 50))
    write(warehouse, event_handler, Session(warehouse))
    assert event_handler.state("shop", "t") == ""
    told = scan(warehouse, "t", 45)
    assert (told.files, told.used) == (1, ("id_sieve@2",))


@pytest.mark.parametrize("by", ["statement", "write"])
def test_declared_index_that_was_dropped_is_built_again(warehouse: Warehouse, by: str) -> None:
    """A declared index is built again if its registration refers to a dropped index."""
    declare(warehouse, "id", "error = 1")
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    before = warehouse.properties("t")
    Session(warehouse).sql("DROP SIEVE INDEX id_sieve ON t")
    warehouse.alter("t", lambda _: before)
    event_handler = EventHandler()
    if by == "write":
        write(warehouse, event_handler, Session(warehouse))
    else:
        (row,) = Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
        assert row[:2] == ("id_sieve", 1)
    assert event_handler.state("shop", "t") == ""
    told = scan(warehouse, "t", 13)
    assert (told.files, told.used) == (1, ("id_sieve@1",))


def test_refresh_returns_the_index_of_a_background_build(warehouse: Warehouse) -> None:
    """If a background refresh builds the index during a REFRESH, the REFRESH returns this index.

    REFRESH leaves no files of its own build.
    """
    declare(warehouse, "id", "error = 1")

    def meanwhile(call: str) -> None:
        if call.startswith("before create") and call.endswith("/versions/1.json"):
            write(warehouse, EventHandler(), Session(warehouse))

    ((name, version, files, *_, change, advice),) = Session(warehouse, meanwhile).sql(
        "REFRESH SIEVE INDEX ON t"
    )
    assert (name, version, files, change, advice) == ("id_sieve", 1, 4, "unchanged", None)
    told = scan(warehouse, "t", 13)
    assert (told.files, told.used) == (1, ("id_sieve@1",))
    assert len(list(warehouse.root.iterdir())) == 1


def test_refresh_has_advice_for_each_wrong_declaration(warehouse: Warehouse) -> None:
    """REFRESH returns a row of advice for each wrong name.

    For a malformed list, REFRESH returns one row of advice. REFRESH builds all declared indexes
    that are valid.
    """
    declare(warehouse, "nope, id, nil")
    told = Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    assert [row[:2] for row in told] == [("id_sieve", 1), ("nope_sieve", None), ("nil_sieve", None)]
    assert [row[-1] is None for row in told] == [True, False, False]
    assert "no column nope" in told[1][-1]
    declare(warehouse, "id,")
    told = Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    assert [row[:2] for row in told] == [("id_sieve", 1), (None, None)]
    assert told[1][-1].startswith("table property sieve.columns: line 1")


def test_drop_removes_the_index_from_the_declaration(warehouse: Warehouse) -> None:
    """DROP also removes the index from the declaration, so no write builds the index again."""
    declare(warehouse, "`x,y`, id, nope", "error = 1")
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    Session(warehouse).sql("DROP SIEVE INDEX id_sieve ON t")
    declared = warehouse.properties("t")["sieve.columns"]
    assert [path.parts for path in parse_columns(declared)] == [("x,y",), ("nope",)]
    write(warehouse, EventHandler(), Session(warehouse))
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    assert list(warehouse.root.iterdir()) == []
    declare(warehouse, "id")
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    Session(warehouse).sql("DROP SIEVE INDEX ON t (id)")
    assert "sieve.columns" not in warehouse.properties("t")


def test_drop_fails_if_the_declaration_cannot_be_changed(warehouse: Warehouse) -> None:
    """If Sieve cannot change the declaration, DROP fails, and the index stays."""
    declare(warehouse, "id", "error = 1")
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")

    def refuse(call: str) -> None:
        if call == "before metastore sieve.columns":
            raise MetastoreFault("no answer")

    with pytest.raises(UnavailableError):
        Session(warehouse, refuse).sql("DROP SIEVE INDEX id_sieve ON t")
    assert scan(warehouse, "t", 13).files == 1
    Session(warehouse).sql("DROP SIEVE INDEX id_sieve ON t")
    assert scan(warehouse, "t", 13).files == 4


def test_index_dropped_during_a_refresh_stays_dropped(
    warehouse: Warehouse,
) -> None:
    """If DROP runs during a background refresh, the index stays dropped."""
    declare(warehouse, "id")
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    (index,) = warehouse.root.iterdir()
    struck: list[str] = []

    def meanwhile(call: str) -> None:
        if call.startswith("before") and str(index) in call and not struck:
            struck.append(call)
            Session(warehouse).sql("DROP SIEVE INDEX id_sieve ON t")

    write(warehouse, EventHandler(), Session(warehouse, meanwhile))
    assert struck
    assert registrations(warehouse.properties("t")) == {}
    assert list(warehouse.root.iterdir()) == []


def test_failed_refresh_does_not_stop_a_declared_build(
    warehouse: Warehouse,
) -> None:
    """If the refresh of one index fails, a declared index is still built and used.

    The state of the table shows that a refresh failed.
    """
    Session(warehouse).sql("CREATE SIEVE INDEX mine ON t (id)")
    (index,) = warehouse.root.iterdir()
    (index / "versions" / "1.json").write_text("damaged")
    warehouse.append("t", range(40, 50))
    # The index `mine` is on a renamed column, and therefore not on `id`.
    registration = warehouse.properties("t")["sieve.index.mine"].replace('["id"]', '["old"]')
    warehouse.alter("t", lambda before: before | {"sieve.index.mine": registration})
    declare(warehouse, "id", "error = 1")
    event_handler = EventHandler()
    write(warehouse, event_handler, Session(warehouse))
    assert event_handler.state("shop", "t").startswith("failed")
    assert scan(warehouse, "t", 13).used == ("id_sieve@1",)


def test_recreated_table_gets_its_declared_index(warehouse: Warehouse) -> None:
    """If a table is dropped and created again, a write builds its declared index again.

    The files of the dropped index are gone.
    """
    for run in range(3):
        declare(warehouse, "id", "error = 1")
        event_handler = EventHandler()
        write(warehouse, event_handler, Session(warehouse))
        told = scan(warehouse, "t", 13)
        assert (told.files, told.used) == (1, ("id_sieve@1",)), run
        (folder,) = warehouse.root.iterdir()
        info = warehouse.info("t")
        shutil.rmtree(warehouse.folder / "t")
        (warehouse.folder / "t.properties").unlink()
        identity = ("catalog", "database", "table", "create_time_ms", "location")
        gone = {key: info[key] for key in identity}
        event = {"event": "dropped", "table": gone, "registrations": info["registrations"]}
        at = Session(warehouse).context()
        event_handler.act(event | {"location": f"file:{warehouse.folder}"}, at)
        assert not folder.exists()
        warehouse.create_table("t", [range(10 * k, 10 * k + 10) for k in range(4)])


def test_columns_and_options_parse_as_in_statements() -> None:
    """Lists of columns and options in declarations have the same grammar as in statements."""
    assert [path.parts for path in parse_columns("a.`b``c`, index")] == [("a", "b`c"), ("index",)]
    assert parse_options("a = 1, b.c = 'x' 'y', d = true") == {"a": 1, "b.c": "xy", "d": True}
    for text in ("a = 1, a = 2", "", "a"):
        with pytest.raises(InvalidInputError, match="line 1, column"):
            parse_options(text)
