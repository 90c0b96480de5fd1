from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from sieve.client import answer_columns
from sieve.client.answer import MOST_ROWS, Answer
from sieve.metadata.records import BuildStats, Expected
from sql_ext.statements import commands, describe
from tests.unit.metadata.manifest_sample import SAMPLE

HOSTILE = "<script>alert('x')</script> & \"q\""


def scan(**changed: object) -> answer_columns.Scan:
    """A scan that read a quarter of the files and half of the bytes."""
    row = {
        "scan": 1,
        "table": "spark_catalog.default.t",
        "indexes": "id_sieve@1",
        "predicate": "(id = 5)",
        "files_total": 400,
        "files_read": 100,
        "ranges_total": 500,
        "ranges_read": 150,
        "bytes_total": 2000,
        "bytes_read": 1000,
        "reasons": None,
    }
    return answer_columns.Scan(**(row | changed))


class Tags(HTMLParser):
    """Collects the tags, attribute names and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (answer_columns.IndexState, commands.ShowIndexes),
        (answer_columns.Built, commands.CreateIndex),
        (answer_columns.Built, commands.RefreshIndex),
        (answer_columns.Dropped, commands.DropIndex),
        (answer_columns.Property, commands.DescribeIndex),
        (answer_columns.Scan, commands.ExplainSieve),
        (answer_columns.Estimated, commands.EstimateIndex),
        (answer_columns.EstimatedBudget, commands.EstimateIndex.extended_columns),
        (answer_columns.Advised, commands.AdviseIndexes),
        (answer_columns.CheckedFile, commands.CheckIndex),
    ],
)
def test_records_have_the_columns_of_their_statements(record: Any, command: Any) -> None:
    """A record has the columns of its statement, in order.

    If a column is drawn as a bar, another column of the record contains the bar's total.
    """
    columns = getattr(command, "result_columns", command)
    assert Answer(record, []).columns == tuple(name for name, _ in columns)
    assert set(record.wholes) <= set(Answer(record, []).columns)
    assert all(hasattr(record, whole) for whole in record.wholes.values())


def test_html_escapes_every_text() -> None:
    """If a name, predicate or reason contains HTML, the page shows it as text."""
    page = Answer(
        answer_columns.Scan, [scan(table=HOSTILE, predicate=HOSTILE, reasons=HOSTILE)]
    )._repr_html_()
    tags = Tags(page)
    assert set(tags.tags) == {"table", "thead", "tbody", "tr", "th", "td", "div"}
    assert tags.attributes == {"style"}
    assert tags.texts.count(HOSTILE) == 3


def test_html_loads_nothing() -> None:
    """The HTML of an answer loads no URL and contains no script."""
    page = Answer(answer_columns.Scan, [scan()])._repr_html_()
    assert not re.search(r"https?:|src=|href=|url\(|<script", page)


def test_bars_show_shares() -> None:
    """A bar shows a share of files, ranges or bytes. An unknown total or a zero gives no bar."""
    widths = re.findall(r"width:([\d.]+)%", Answer(answer_columns.Scan, [scan()])._repr_html_())
    assert widths == ["25.0", "30.0", "50.0"]
    unknown = scan(
        files_total=0,
        files_read=0,
        ranges_total=0,
        ranges_read=0,
        bytes_total=None,
        bytes_read=None,
    )
    assert "width:" not in Answer(answer_columns.Scan, [unknown])._repr_html_().replace(
        "min-width:", ""
    )


@pytest.mark.parametrize(("action", "width"), [("create", "60.0"), ("keep", "37.5")])
def test_bars_of_advice_show_the_saved_bytes(action: str, width: str) -> None:
    """The bar of a suggested index shows which share of the scanned bytes the index would save.

    For an existing index, the bar shows the saved bytes as a share of the bytes read or saved.
    """
    advised = answer_columns.Advised(
        action, "shop", "t", "id", None, "= 2", 2.0, 10.0, 2.0, 1000, 600, "CREATE ...", None
    )
    page = Answer(answer_columns.Advised, [advised])._repr_html_()
    assert re.findall(r"width:([\d.]+)%", page) == ["20.0", width]


def test_bars_of_describe_compare_with_min_and_max() -> None:
    """For DESCRIBE, a pale bar shows reads with min/max statistics.

    The dark bar shows reads with the index.
    """
    expected = (Expected("present", 1.5, 1.0, 33.0, bytes=4e6, exact_bytes=1e6),)
    stats = BuildStats(9, 0, 0, 72, 1.0, expected, 100, 100, 9_000_000)
    manifest = replace(SAMPLE, stats=stats)
    rows = [answer_columns.Property(*row) for row in describe._expected(manifest)]
    page = Answer(
        answer_columns.Property, [answer_columns.Property("index", "id_sieve"), *rows]
    )._repr_html_()
    assert re.findall(r"width:([\d.]+)%", page) == ["33.0", "1.5"]


def test_terminals_get_plain_text() -> None:
    """A terminal shows an answer in aligned columns, with the column names in the first line.

    NULL is shown as an empty cell, and large numbers have commas.
    """
    answer = Answer(answer_columns.Scan, [scan(bytes_total=2000000)])
    head, row = repr(answer).splitlines()
    assert head.split() == list(answer.columns)
    assert "2,000,000" in row
    assert "None" not in row
    assert head.index("bytes_read") == row.index("1,000")


def test_terminals_get_no_control_characters() -> None:
    """In a terminal, line breaks and control characters of a cell are escaped.

    An unescaped control character in a query's constant could change the terminal's colours.
    """
    text = "note = 'a\nb\x1b[31m é\\'"
    _, row = repr(Answer(answer_columns.Scan, [scan(predicate=text)])).splitlines()
    assert r"note = 'a\nb\x1b[31m é\'" in row


def test_an_answer_is_a_sequence_of_records() -> None:
    """An answer supports length, indexing, slicing and membership tests, as a list does."""
    rows = [scan(scan=number) for number in (1, 2, 3)]
    answer = Answer(answer_columns.Scan, rows)
    assert len(answer) == 3
    assert answer[0].files_read == 100
    assert list(answer) == list(answer[:]) == rows
    assert rows[2] in answer


def test_long_answers_are_cut_when_shown() -> None:
    """An answer keeps all its rows, but terminals and notebooks show only a limited number."""
    rows = [answer_columns.Dropped(f"i{number}") for number in range(MOST_ROWS + 1500)]
    answer = Answer(answer_columns.Dropped, rows)
    assert len(answer) == len(rows)
    assert repr(answer).splitlines()[-1] == "and 1,500 more rows"
    assert answer._repr_html_().count("<tr>") == MOST_ROWS + 1
    assert answer._repr_html_().endswith("<p>and 1,500 more rows</p>")


def test_an_empty_answer_shows_its_columns() -> None:
    """An answer without rows is shown as one line of column names."""
    assert repr(Answer(answer_columns.Dropped, [])) == "index"


@pytest.mark.parametrize(("rows", "told"), [(200, None), (201, "and 1 more rows")])
def test_two_hundred_rows_are_shown(rows: int, told: str | None) -> None:
    """Notebooks and terminals show up to 200 rows, because CHECK returns one row per file."""
    answer = Answer(answer_columns.Scan, [scan(scan=k) for k in range(rows)])
    lines = repr(answer).splitlines()
    assert lines[201:] == ([] if told is None else [told])
    assert lines[200].startswith("199 ")
    page = answer._repr_html_()
    assert page.count("<tr>") == 201
    assert ("more rows" in page) == (told is not None)
    assert len(answer) == rows
