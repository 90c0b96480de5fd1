from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.text import Text

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.segments.shapes.format import Entries
from sql_ext.launcher.inspection.layout import FileLayout, lay_out, raster, reads
from sql_ext.launcher.inspection.picture import draw


def _layout(spans: list[tuple[int, int, int]], n_files: int) -> FileLayout:
    low, high, location = np.array(sorted(spans), np.int64).reshape(-1, 3).T
    entries = Entries(low.copy(), high.copy(), location.astype(np.int32))
    layout = lay_out(entries, [f"f{k}" for k in range(n_files)])
    assert layout is not None
    return layout


def test_files_stand_in_order_of_their_least_key() -> None:
    """Files are numbered anew by least key; those without a key are counted and left out."""
    layout = _layout([(50, 99, 0), (0, 9, 2), (40, 49, 2)], 4)
    assert layout.paths == ("f2", "f0")
    assert layout.without == 2
    assert layout.width() == pytest.approx([0.5, 0.5])
    assert layout.covered() == pytest.approx([0.2, 0.5])


def test_a_picture_shows_the_share_of_each_cell() -> None:
    """Half covered cells are half, points are seen, files that share a row are averaged."""
    layout = _layout([(0, 14, 0), (95, 95, 0), (0, 99, 1)], 2)
    both = raster(layout.entries, layout.axis, 2, 2, 10)
    assert both[0].tolist() == pytest.approx([1, 0.5, *[0] * 7, 0.3])
    assert both[1].tolist() == pytest.approx([1] * 10)
    one = raster(layout.entries, layout.axis, 2, 1, 10)
    assert one == pytest.approx(both.mean(axis=0, keepdims=True))


def test_reads_are_means_over_covered_keys() -> None:
    """Within a column each covered key counts alike; columns without keys say nothing."""
    layout = _layout([(0, 9, 0), (5, 9, 1), (90, 90, 2), (99, 99, 2)], 3)
    mean, most = reads(layout.entries, layout.axis, 10)
    assert mean[0] == pytest.approx(1.5)
    assert (most[0], mean[9], most[9]) == (2, 1, 1)
    assert np.isnan(mean[1:9]).all()


def test_the_whole_domain_can_be_drawn() -> None:
    """Codes from the least to the greatest there is do not overflow the picture."""
    layout = _layout([(LEAST, GREATEST, 0), (GREATEST, GREATEST, 1), (LEAST, LEAST, 2)], 3)
    assert layout.axis.code(0) == LEAST
    assert layout.axis.code(1) == GREATEST
    mean, _ = reads(layout.entries, layout.axis, 10)
    assert mean == pytest.approx([1] * 10, abs=1e-6)


def test_crowded_keys_are_spread() -> None:
    """One stray key far away does not squeeze all others into a corner of the picture."""
    layout = _layout([(k, k, 0) for k in range(100)] + [(10**15, 10**15, 1)], 2)
    assert not layout.axis.even
    assert layout.covered()[0] > 0.9


def test_no_key_no_layout() -> None:
    """An index without entries has nothing to lay out."""
    none = np.empty(0, np.int64)
    assert lay_out(Entries(none, none, none.astype(np.int32)), ["f"]) is None


def test_the_title_lies_within_the_picture() -> None:
    """Long names and advice are wrapped."""
    words = "index id_sieve of MAMMOTH_WAREHOUSE.ORDERS has 1,234,567 bytes "
    figure = draw(_layout([(0, 9, 0), (5, 20, 1)], 2), [words * 8, "REFRESH"], str, {})
    figure.savefig(io.BytesIO())
    (title,) = (t for t in figure.findobj(Text) if t.get_text() == figure.get_suptitle())
    assert title.get_text().count("\n") > 3
    box = title.get_window_extent()
    assert 0 < box.x0 < box.x1 < figure.bbox.width
    assert figure.axes[0].get_window_extent().y1 < box.y0
