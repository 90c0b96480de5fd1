from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.metadata.records import Expected
from sieve.segments.entries import Entries
from udfs.inspection import inspect_index as rows
from udfs.inspection.layout import FileLayout, lay_out, raster, reads
from udfs.inspection.picture import draw, shortened
from udfs.inspection.version_entries import VersionEntries


def _layout(spans: list[tuple[int, int, int]], n_files: int) -> FileLayout:
    low, high, location = np.array(sorted(spans), np.int64).reshape(-1, 3).T
    entries = Entries(low.copy(), high.copy(), location.astype(np.int32))
    layout = lay_out(entries, [f"f{k}" for k in range(n_files)])
    assert layout is not None
    return layout


def test_files_are_numbered_by_their_least_key() -> None:
    """Files are numbered in the order of their least keys.

    The picture counts files without a key, but does not draw them.
    """
    layout = _layout([(50, 99, 0), (0, 9, 2), (40, 49, 2)], 4)
    assert layout.paths == ("f2", "f0")
    assert layout.without == 2
    assert layout.width() == pytest.approx([0.5, 0.5])
    assert layout.covered() == pytest.approx([0.2, 0.5])


def test_a_picture_shows_the_share_of_each_cell() -> None:
    """A cell is darker if a file covers more of the cell. Even a single key is visible.

    If several files share a row of pixels, the row shows their mean.
    """
    layout = _layout([(0, 14, 0), (95, 95, 0), (0, 99, 1)], 2)
    both = raster(layout.entries, layout.axis, 2, 2, 10)
    assert both[0].tolist() == pytest.approx([1, 0.5, *[0] * 7, 0.3])
    assert both[1].tolist() == pytest.approx([1] * 10)
    one = raster(layout.entries, layout.axis, 2, 1, 10)
    assert one == pytest.approx(both.mean(axis=0, keepdims=True))


def test_reads_are_means_over_covered_keys() -> None:
    """For each pixel column, the reads are the mean number of files per covered key.

    Pixel columns without keys stay empty.
    """
    layout = _layout([(0, 9, 0), (5, 9, 1), (90, 90, 2), (99, 99, 2)], 3)
    mean, most = reads(layout.entries, layout.axis, 10)
    assert mean[0] == pytest.approx(1.5)
    assert (most[0], mean[9], most[9]) == (2, 1, 1)
    assert np.isnan(mean[1:9]).all()


def test_the_whole_domain_can_be_drawn() -> None:
    """No integer overflows in a picture from the least to the greatest code."""
    layout = _layout([(LEAST, GREATEST, 0), (GREATEST, GREATEST, 1), (LEAST, LEAST, 2)], 3)
    assert layout.axis.code(0) == LEAST
    assert layout.axis.code(1) == GREATEST
    mean, _ = reads(layout.entries, layout.axis, 10)
    assert mean == pytest.approx([1] * 10, abs=1e-6)


def test_crowded_keys_are_spread() -> None:
    """If one key is far from all others, the other keys still get most of the picture's width."""
    layout = _layout([(k, k, 0) for k in range(100)] + [(10**15, 10**15, 1)], 2)
    assert not layout.axis.even
    assert layout.covered()[0] > 0.9


@pytest.mark.parametrize("apart", [10**15, 1 << 61])
def test_a_column_of_few_values_is_mostly_dark(apart: int) -> None:
    """If each file contains each value, gaps between values get little of the picture's width.

    Codes of texts can span a wide range, in which a float cannot distinguish adjacent codes.
    """
    layout = _layout([(apart * k, apart * k, file) for k in range(4) for file in range(3)], 3)
    assert not layout.axis.even
    assert layout.covered().tolist() == pytest.approx([1 / 1.05] * 3)


def test_labels_are_keys_that_occur() -> None:
    """Each axis label is a key that occurs, because other codes may not be readable text."""
    layout = _layout([(10**15 * k, 10**15 * k, file) for k in range(4) for file in range(3)], 3)
    figure = draw(layout, [], str, {})
    labels = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    assert set(labels) <= {str(10**15 * k) for k in range(4)}
    assert labels[0] == "0"
    assert labels[-1] == str(3 * 10**15)


def test_label_of_a_text_ends_at_the_first_difference() -> None:
    """The label of a text ends where the text differs from its neighbours.

    Later characters of the label might belong to no key.
    """
    keys = ["AIR", "FOB", "RAIL", "REG @", "TRUC@", "TRUCK"]
    assert shortened(keys, keys) == ["AIR", "FOB", "RAI…", "REG…", "TRUC@", "TRUCK"]
    for keys, labels in (
        (["00003ef4", "6a0/3ef4"], ["000…", "6a0…"]),
        (["url/aaaa", "url/abcd"], ["url/aa…", "url/ab…"]),
    ):
        assert shortened(keys, keys) == labels


def test_labels_of_texts_are_beginnings_of_keys() -> None:
    """The label of an entry that begins below its only key is the common start of both ends."""
    begin, end, last = 10**15, 10**15 + 9, 10**15 + 20
    texts = {0: "Delft", begin: "Utrd@", end: "Utrecht", last: "Utrf"}
    layout = _layout([(0, 0, 0), (begin, end, 0), (begin, last, 1)], 2)
    figure = draw(layout, [], texts.__getitem__, {}, as_text=True)
    labels = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    assert labels == ["Del…", "Utr…", "Utrf"]


def test_picture_has_lines_for_equality_and_ranges() -> None:
    """For an index with a map, the picture has a line for = and IN, and a line for ranges."""
    figure = draw(_layout([(0, 9, 0), (5, 20, 1)], 2), [], str, {"exact": 1.0, "map": 1.25})
    texts = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert "by the index, for ranges" in texts
    assert "by the map, for = and IN: 1.25" in texts
    lines = [line for line in figure.axes[2].lines if list(line.get_ydata()) == [1.25, 1.25]]
    assert len(lines) == 1


def test_index_without_entries_has_no_layout() -> None:
    """If an index has no entries, `lay_out` returns None."""
    none = np.empty(0, np.int64)
    assert lay_out(Entries(none, none, none.astype(np.int32)), ["f"]) is None


def test_title_stays_within_the_picture() -> None:
    """A long title is wrapped and stays within the picture."""
    words = "index id_sieve of MAMMOTH_WAREHOUSE.ORDERS has 1,234,567 bytes "
    figure = draw(_layout([(0, 9, 0), (5, 20, 1)], 2), [words * 8, "REFRESH"], str, {})
    figure.savefig(io.BytesIO())
    (title,) = (t for t in figure.findobj(Text) if t.get_text() == figure.get_suptitle())
    assert title.get_text().count("\n") > 3
    box = title.get_window_extent()
    assert 0 < box.x0 < box.x1 < figure.bbox.width
    assert figure.axes[0].get_window_extent().y1 < box.y0


def test_names_and_keys_are_no_formulas() -> None:
    """Text between two dollar signs is drawn as it is, not as a formula."""
    hostile = r"`$\foo_{$`"
    figure = draw(_layout([(0, 9, 0), (5, 20, 1)], 2), [hostile], lambda _code: hostile, {})
    figure.savefig(io.BytesIO())
    labels = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    # The labels are the least key, the key at which the second entry starts, and the greatest key.
    assert [figure.get_suptitle(), *labels] == [hostile] * 4


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("a" * 22, "a" * 22),
        ("a" * 23, "a" * 21 + "…"),
        (r"order-7\xf5\x81q", "order-7…"),
        ("order-7\tq", "order-7…"),
        ("a" * 22 + "\x7f", "a" * 21 + "…"),
        ("C:\\xylem é", "C:\\xylem é"),
    ],
)
def test_label_ends_before_unreadable_bytes(key: str, label: str) -> None:
    """A code that is no key can contain unreadable bytes; the label ends before such bytes."""
    figure = draw(_layout([(0, 9, 0), (5, 20, 1)], 2), [], lambda _code: key, {})
    assert {text.get_text() for text in figure.axes[2].get_xticklabels()} == {label}


DESCRIBED = {
    "index": "i",
    "table": "shop.t",
    "column": "id",
    "type": "bigint",
    "version": "7",
    "files": "3",
    "rows": "1234",
    "bytes": "5678",
    "options": "budget = 'auto'",
}


def _version(*kinds: Expected, has_maps: bool = False) -> VersionEntries:
    manifest = SimpleNamespace(stats=SimpleNamespace(expected=kinds))
    low, high, location = np.array([(0, 9, 0), (5, 9, 1)], np.int64).T
    entries = Entries(low.copy(), high.copy(), location.astype(np.int32))
    return VersionEntries(manifest, Encoder("bigint"), entries, ("a", "b"), has_maps)


def _drawn(
    monkeypatch: pytest.MonkeyPatch, version: VersionEntries, described: dict[str, str]
) -> tuple[list[str], object, str]:
    """Returns the title, the drawn values of expected reads, and the summary."""
    given: list[tuple[list[str], object]] = []

    def draw_recorded(layout: FileLayout, title: list[str], *rest: Any, **named: Any) -> Figure:
        given.append((title, rest[-1]))
        return draw(layout, title, *rest, **named)

    monkeypatch.setattr(rows, "draw", draw_recorded)
    monkeypatch.setattr(rows, "read_entries", lambda _: version)
    ((summary, _),) = rows.inspection_rows(SimpleNamespace(), described)
    ((title, expected),) = given
    return title, expected, summary


def test_title_has_column_files_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without statistics, an index's title has the column, the files, the rows and the bytes."""
    title, expected, _ = _drawn(monkeypatch, _version(), DESCRIBED)
    (sentence,) = title
    assert sentence == (
        "i@7 on shop.t (id bigint): 3 files, 1,234 rows, 5,678 bytes "
        "(no share of the column), budget = 'auto'"
    )
    assert expected == {}


def test_title_has_reads_advice_and_stale_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The title shows the reads for a key, the advice, and the counts of undrawn or stale files."""
    kinds = [Expected(kind, 1.25, 1.0, 9.5, 1e6, 1e6) for kind in ("absent", "present", "range")]
    described = DESCRIBED | {
        "bytes as share of column": "0.1%",
        "advice": "sort it",
        "files new": "2",
        "files changed": "0",
        "files read for a key that occurs": "1.25 of 3 expected",
    }
    version = replace(_version(*kinds, has_maps=True), names=("a", "b", "empty"))
    title, expected, summary = _drawn(monkeypatch, version, described)
    assert title[0].endswith("5,678 bytes (0.1% of the column), budget = 'auto'")
    assert title[1:] == [
        "a key that occurs reads 1.25 files, by min and max 9.50, at the least 1.00",
        "sort it",
        "= and IN are answered by the map; what is drawn serves ranges",
        "1 files without a key are not drawn",
        "stale: 2 files new and 0 changed since, which are read always; REFRESH SIEVE INDEX",
    ]
    assert expected == {"exact": 1.0, "map": 1.25}
    assert summary.splitlines() == [
        "files read for a key that occurs: 1.25 of 3 expected",
        "of all keys a file spans 75.0% by min and max (median), 75.0% by the index",
        "widest: a with 100.0% of all keys, 100.0% by min and max",
        "widest: b with 50.0% of all keys, 50.0% by min and max",
        "advice: sort it",
    ]
    changed = described | {"files new": "0", "files changed": "1"}
    assert "0 files new and 1 changed" in _drawn(monkeypatch, version, changed)[0][-1]
    fresh = described | {"files new": "0"}
    assert "without a key" in _drawn(monkeypatch, version, fresh)[0][-1]


def test_summary_names_the_three_widest_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary names the three widest files, widest first, without their folders."""
    low, high, location = np.array([(0, 9, 0), (10, 12, 1), (20, 25, 2), (30, 39, 3)]).T
    version = replace(
        _version(),
        entries=Entries(low.copy(), high.copy(), location.astype(np.int32)),
        names=("x/a", "x/b", "x/c", "y/z/d"),
    )
    *_, first, second, third = _drawn(monkeypatch, version, DESCRIBED)[2].splitlines()
    names = [line.removeprefix("widest: ").split()[0] for line in (first, second, third)]
    assert names == ["a", "d", "c"]
