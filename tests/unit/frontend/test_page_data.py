"""Tests the page in Spark's web UI.

The page shows indexes and scans, but no constants from queries.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.storage.local import LocalStore
from sieve.workload.benefit import Benefit
from sieve.workload.column_use import Column
from sieve.workload.scan_groups import Table
from sieve.workload.suggest import ColumnTest
from sql_ext.frontend import page_data as page_module
from sql_ext.frontend import page_html
from sql_ext.frontend.page_data import PageService
from sql_ext.frontend.page_html import ShownIndex, WorthHaving
from tests.fake_spark import Session, Warehouse, registrations, without_spark
from tests.unit.metadata.manifest_sample import SAMPLE

HOSTILE = "<script>alert(1)</script>"


class Text(HTMLParser):
    """Collects a page's text, the cells of each table row, and all tags with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.in_cell &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Installs the fakes that replace Spark."""
    with without_spark():
        yield


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A table of four files with an index."""
    made = Warehouse(tmp_path / "shop")
    made.create_table("t", [range(10 * k, 10 * k + 10) for k in range(4)])
    Session(made).sql("CREATE SIEVE INDEX a ON t (id)")
    return made


class Pages:
    """The page service of a driver that has seen the table t."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.refused: list[str] = []
        self.record = '{"driver": "d", "since": 0, "scans": []}'
        roots: Any = SimpleNamespace(check=self._check)
        self.refresh = ""
        event_handler: Any = SimpleNamespace(state=lambda *_: self.refresh)
        self.tests: dict[tuple[Table, Column], ColumnTest] = {}
        self.service = PageService(
            roots, lambda _root: LocalStore(), lambda: self.record, event_handler, self.tests
        )

    def _check(self, root: str, *_: object) -> None:
        self.refused.append(root)

    def html(self, scans: tuple[dict[str, Any], ...] = ()) -> str:
        has = registrations(self.warehouse.properties("t"))
        table = {"database": "shop", "table": "t", "registrations": has}
        body = {"tables": [table], "scans": scans, "settings": {}}
        request: Any = SimpleNamespace(body=body, session=lambda: None)
        html: str = self.service.page(request)["html"]
        return html


SCAN: dict[str, Any] = {
    "at": 1_700_000_000_000, "execution": "7", "table": f"shop.{HOSTILE}",
    "predicate": "(id = ?) AND (name < ?)", "files": 1_000, "files_skipped": 998, "ranges": 5_000,
    "ranges_skipped": 4_993, "bytes_skipped": 3 << 20, "used": ["a@1"],
    "reasons": {"new-file": 1_002}, "ms": 12,
}  # fmt: skip


def test_each_index_has_a_row(warehouse: Warehouse) -> None:
    """An index's row shows its version, its state, and the share of files that queries can skip."""
    page = Text(Pages(warehouse).html())
    head, row = page.rows[:2]
    shown = dict(zip(head, row, strict=True))
    assert (shown["table"], shown["index"], shown["column"]) == ("shop.t", "a", "id bigint")
    assert (shown["state"], shown["files"], shown["coverage"]) == ("ready", "4", "100.0%")
    assert shown["version"].startswith("1 of 20")
    assert shown["files read for a key"] == ""
    assert shown["bytes"].endswith(" KB")
    assert "No scan of a table with an index yet." in page.text


def test_state_is_the_same_as_in_show(warehouse: Warehouse) -> None:
    """A row shows an index's state: ready, disabled, or the result of the last background refresh.

    If a background refresh failed, the row does not show the error message.
    """
    pages = Pages(warehouse)

    def state() -> str:
        return Text(pages.html()).rows[1][3]

    assert state() == "ready"
    pages.refresh = "failed: [SIEVE_UNAVAILABLE] of 'secret': no"
    assert state() == "failed"
    pages.refresh = "refreshing"
    assert state() == "refreshing"
    Session(warehouse).sql("ALTER SIEVE INDEX a ON t DISABLE")
    assert state() == "disabled"


def test_row_shows_the_files_that_a_key_reads() -> None:
    """The row of an index shows how many files a query for a key reads.

    Until the list of files has been read, an index's row shows no coverage.
    """
    shown = ShownIndex("shop.t", "v", "disabled", SAMPLE)
    head, row = Text(page_html.page([shown], (), WorthHaving())).rows[:2]
    (kind,) = (kind for kind in SAMPLE.stats.expected if kind.kind == "present")
    cells = dict(zip(head, row, strict=True))
    assert cells["files read for a key"] == f"{kind.files:.2f}"
    assert (cells["state"], cells["coverage"]) == ("disabled", "")


def test_each_scan_has_a_row(warehouse: Warehouse) -> None:
    """The row of a scan links to Spark's page of the query; numbers have thousands separators."""
    page = Text(Pages(warehouse).html((SCAN, SCAN | {"execution": None})))
    row, without = page.rows[-2:]
    assert row == [
        "2023-11-14 22:13:20", "7", f"shop.{HOSTILE}", "(id = ?) AND (name < ?)", "a@1",
        "2 of 1,000", "7 of 5,000", "3.0 MB", "12", "new-file: 1,002",
    ]  # fmt: skip
    matching = SCAN | {"files_skipped": 1, "reasons": {"new-file": 3, "unsupported-predicate": 1}}
    row = Text(Pages(warehouse).html((matching,))).rows[-1]
    assert row[-1] == "may hold a match: 996, new-file: 3, unsupported-predicate: 1"
    row = Text(Pages(warehouse).html((matching | {"used": [], "reasons": {}},))).rows[-1]
    assert row[-1] == ""
    assert without[1] == ""
    assert ("a", {"href": "../SQL/execution/?id=7"}) in page.found
    assert (
        "latest 2 scans of tables with an index skipped 1,996 of 2,000 files (6.0 MB)" in page.text
    )
    assert not [tag for tag, _ in page.found if tag == "script"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1_023, "1,023 bytes"), (1_024, "1.0 KB"), (1_536, "1.5 KB"),
     (1 << 40, "1.0 TB"), (1 << 50, "1,024.0 TB")],
)  # fmt: skip
def test_bytes_have_a_unit(warehouse: Warehouse, count: int, text: str) -> None:
    """Byte counts are shown in units that are powers of 1,024, up to terabytes."""
    assert Text(Pages(warehouse).html((SCAN | {"bytes_skipped": count},))).rows[-1][7] == text


def test_the_best_advice_is_shown(warehouse: Warehouse) -> None:
    """The page suggests up to five indexes. A test on the data has found each of them useful."""

    def scan(table: str, column: str, read: int) -> dict[str, Any]:
        leaf = {"op": "=", "col": [column], "values": 1}
        asked = {"table": ["shop", table], "used": [], "filter": leaf}
        sums = {"scans": 2, "bytes": read, "files": 20, "files_skipped": 0, "bytes_skipped": 0}
        return {"asked": json.dumps(asked), **sums}

    pages = Pages(warehouse)
    assert "worth having" not in pages.html()
    scans = [scan("t", "id", 9 << 30), *(scan("u", f"c{k}", (k + 1) << 20) for k in range(6))]
    now = round(time.time() * 1000)
    pages.record = json.dumps(
        {"driver": "d", "since": now - 2 * 86_400_000, "scans": [*scans, scan("u", "<b>", 5)]}
    )
    page = Text(pages.html())
    assert not [row for row in page.rows if row[0] == "shop.u"]
    assert "ask for 6 columns without an index that no test has judged" in page.text
    for k in range(6):
        pages.tests[("shop", "u"), (f"c{k}",)] = ColumnTest(Benefit.HELPS, 10, 2.0, 2.0, 3.0)
    pages.tests[("shop", "u"), ("<b>",)] = ColumnTest(Benefit.CANNOT, 10, 9.0, 9.0, 3.0)
    page = Text(pages.html())
    rows = [row for row in page.rows if row[0] == "shop.u"]
    assert [row[1] for row in rows] == ["c5", "c4", "c3", "c2", "c1"]
    assert rows[0][2:7] == ["= 2", "10.0", "2.0", "3.0 MB", "2.4 MB"]
    assert rows[0][7] == "CREATE SIEVE INDEX ON shop.u (c5)"
    assert "no test has judged" not in page.text


def test_names_are_escaped(warehouse: Warehouse) -> None:
    """Names of columns, tables and indexes are HTML-escaped, both in text and in attributes."""
    Session(warehouse).sql(f'CREATE SIEVE INDEX `{HOSTILE}"x` ON t (id)')
    page = Text(Pages(warehouse).html())
    assert any(f'{HOSTILE}"x' in cell for row in page.rows for cell in row)
    assert not [tag for tag, _ in page.found if tag == "script"]


def test_long_names_may_be_broken() -> None:
    """A long name can be broken after punctuation, but never within an HTML entity."""
    scan = SCAN | {"table": "shop.a_&_b", "predicate": "(a_b = ?)", "used": ["i@2"]}
    html = page_html.page([], (scan,), WorthHaving())
    assert "<td>shop.<wbr>a_<wbr>&amp;_<wbr>b</td>" in html
    assert "<code>(a_<wbr>b = ?)</code></td><td>i@<wbr>2</td>" in html


def test_row_of_an_unreadable_index_shows_the_reason(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of an unreadable index shows the cause: damage, no version, or the time limit."""
    pages = Pages(warehouse)
    (folder,) = warehouse.root.iterdir()

    def state() -> str:
        return Text(pages.html()).rows[1][3]

    with monkeypatch.context() as late:
        late.setattr(page_module, "_SECONDS", -1.0)
        assert state() == "not read in time"
    for version in (folder / "versions").iterdir():
        version.write_bytes(b"damage")
    assert state().startswith("failed: ")
    for version in (folder / "versions").iterdir():
        version.unlink()
    assert state() == "gone"
    assert pages.refused == [f"file:{warehouse.root}"] * 2


def test_copied_registration_is_shown_as_gone(warehouse: Warehouse) -> None:
    """The page shows a registration that was copied to another table as gone."""
    pages = Pages(warehouse)
    has = registrations(warehouse.properties("t"))
    table = {"database": "shop", "table": "u", "registrations": has}
    body = {"tables": [table], "scans": (), "settings": {}}
    gateway = SimpleNamespace(scans=lambda: pages.record)
    request: Any = SimpleNamespace(body=body, session=lambda: None, gateway=gateway)
    assert Text(pages.service.page(request)["html"]).rows[1][3] == "gone"
