"""Tiling: which files a build cuts into ranges, where it cuts them, and how it counts rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.indexing.tiling import LEAST_RANGE, Tiling, locations_of, tile, whole_files
from sieve.metadata.index_options import IndexOptions
from sieve.tables.data_file import DataFile, FileCuts

MB = 1 << 20
GROUPS = {0: FileCuts((20 * MB, 40 * MB), 900), 1: FileCuts((), 800), 3: None}
"""The cut offsets and the footer length of each file; None for a file that is read as a whole."""


def table(format_name: str = "parquet", **parts: str) -> Any:
    """A table whose files can be cut at the offsets in `GROUPS`."""

    def cuts(numbers: list[int], least: int) -> list[FileCuts | None]:
        assert least in (LEAST_RANGE, 0)
        return [GROUPS[number] for number in numbers]

    options = {f"option.{name}": value for name, value in parts.items()}
    return SimpleNamespace(
        info=SimpleNamespace(format_name=format_name, fingerprint_parts=options), cuts=cuts
    )


def files(*megabytes: float) -> list[DataFile]:
    """Files of these sizes."""
    return [DataFile(f"file:/t/{k}", int(size * MB), 7) for k, size in enumerate(megabytes)]


def tiled(of: Any, granularity: str = "auto", range_bytes: int = 8 * MB) -> Tiling:
    """The tiling of four files, of which the third is small."""
    some = files(60, 50, 7.9, 30)
    return tile(of, range(4), some, IndexOptions(granularity=granularity), range_bytes)


def test_large_file_is_cut_at_its_row_groups() -> None:
    """If a file has three row groups, it is cut into three ranges.

    Files with a single row group, small files and gzip files are not cut.
    """
    found = tiled(table())
    assert found.cuts == ((20 * MB, 40 * MB), (), (), ())
    assert found.footers.tolist() == [900, 0, 0, 0]
    assert found.owners.tolist() == [0, 0, 0, 1, 2, 3]
    assert found.starts.tolist() == [0, 20 * MB, 40 * MB, 0, 0, 0]
    assert found.sizes.tolist() == [
        20 * MB,
        20 * MB,
        20 * MB,
        *(f.length for f in files(50, 7.9, 30)),
    ]
    assert found.within.tolist() == [0, 1, 2, 0, 0, 0]
    assert found.chosen([1, 0]).owners.tolist() == [0, 1, 1, 1]
    assert found.chosen([1, 0]).footers.tolist() == [0, 900]
    assert found.is_cut
    assert not found.whole.is_cut
    assert tiled(table(), "range").is_cut
    assert not tiled(table(), "file").is_cut


def test_no_setting_makes_empty_ranges() -> None:
    """No range of a text file is empty, even if the setting for the size of ranges is 0."""
    (some,) = tile(table("csv"), [0], [DataFile("file:/t/0", 301, 7)], IndexOptions(), 0).cuts
    assert some == (100, 200, 300)


def test_text_is_cut_at_equal_steps() -> None:
    """A text file is cut at equal steps, and its last range has at least `LEAST_RANGE` bytes."""
    found = tiled(table("csv"), range_bytes=20 * MB)
    assert found.cuts == ((20 * MB, 40 * MB), (20 * MB, 40 * MB), (), ())
    end = files(60 + 1)[0].length
    cut = tile(table("json"), [0], [DataFile("file:/t/0", end, 7)], IndexOptions(), 20 * MB)
    assert cut.cuts == ((20 * MB, 40 * MB),)


@pytest.mark.parametrize(
    ("parts", "is_cut"),
    [
        ({"linesep": ";"}, True),
        ({"linesep": ";;"}, False),
        ({"linesep": "é"}, False),
        ({"encoding": "utf-8"}, True),
        ({"charset": "ISO-8859-1"}, True),
        ({"encoding": "latin1"}, True),
        ({"encoding": "no such"}, False),
        ({"mapreduce.input.linerecordreader.line.maxlength": "1000"}, False),
        ({"encoding": "UTF-16LE"}, False),
        ({"charset": "Shift_JIS"}, False),
    ],
)
def test_text_whose_lines_depend_on_splits_is_not_cut(parts: dict[str, str], is_cut: bool) -> None:
    """A build does not cut text if its lines depend on where Spark splits the file.

    Examples are long separators, and encodings in which a line feed's byte is part of other
    characters.
    """
    assert tiled(table("csv", **parts)).is_cut == is_cut


def test_counts_of_a_file_are_those_of_its_ranges() -> None:
    """The counts of a cut file are the sums of its ranges' counts.

    An unproven file keeps its ranges and slots, but its row count is 0.
    """
    some = files(3, 1, 2)
    tiling = Tiling(
        np.array([f.length for f in some], np.int64), ((MB, 2 * MB), (), (MB,)), np.array([7, 0, 8])
    )
    rows, nulls, nans = (np.array(c) for c in ([1, 2, 3, 4, 5, 6], [0, 1, 0, 2, 0, 0], [0] * 6))
    proven = np.array([True, True, False])
    listed = locations_of(some, tiling, (rows, nulls, nans), proven, 10)
    assert listed.rows.tolist() == [6, 4, 0]
    assert listed.nulls.tolist() == [1, 2, 0]
    assert listed.lengths.tolist() == [3 * MB, MB, 0]
    assert listed.slots.tolist() == [10, 13, 14]
    assert listed.range_slots.tolist() == [10, 11, 12, 13, 14, 15]
    assert listed.ranges is not None
    assert listed.ranges.rows.tolist() == [1, 2, 3, 4, 0, 0]
    assert listed.ranges.footers.tolist() == [7, 0, 8]
    whole = locations_of(some, whole_files([1, 2, 3]), (rows[:3],) * 3, proven, None)
    assert whole.ranges is None
    assert whole.slots.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("range_bytes", "least"), [(8 * MB, MB), (MB, MB), (MB - 1, MB - 1), (64 * MB, MB)]
)
def test_row_groups_are_joined_up_to_a_megabyte(range_bytes: int, least: int) -> None:
    """Small row groups are joined to ranges of 1 MB, or of `range_bytes` if that is less."""
    asked: list[tuple[list[int], int]] = []
    of = table()
    of.cuts = lambda numbers, size: asked.append((numbers, size)) or [None] * len(numbers)
    some = [DataFile(f"file:/t/{k}", range_bytes - 1 + k, 7) for k in range(3)]
    assert not tile(of, [5, 6, 7], some, IndexOptions(), range_bytes).is_cut
    assert asked == [([6, 7], least)]


def test_the_last_range_of_text_has_a_megabyte_at_least() -> None:
    """The last range of a text file is larger than a megabyte."""
    of = table("csv")
    of.cuts = lambda numbers, _: [FileCuts((), 0)] * len(numbers)
    for length, cuts in ((9 * MB, ()), (9 * MB + 1, (8 * MB,)), (17 * MB + 1, (8 * MB, 16 * MB))):
        found = tile(of, [0], [DataFile("file:/t/0", length, 7)], IndexOptions(), 8 * MB)
        assert found.cuts == (cuts,)
