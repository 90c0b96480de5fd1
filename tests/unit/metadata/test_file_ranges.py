"""Ranges of files in a list of locations: how they are stored, merged, and checked."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sieve.errors import CorruptError
from sieve.metadata.file_list import (
    FileState,
    Locations,
    check_list,
    concat,
    diff,
    merge,
    parse_locations,
    render_locations,
    states_of,
)
from sieve.metadata.file_ranges import FileRanges
from tests.built_index import plain_locations

ROOT = "file:/t"
INT = np.int64


def ints(*numbers: int) -> npt.NDArray[np.int64]:
    """An array of 64-bit integers."""
    return np.array(numbers, INT)


def listed() -> Locations:
    """A list of three files: a has three ranges, b has one, and the unproven file c has two."""
    return Locations(
        (f"{ROOT}/a", f"{ROOT}/b", f"{ROOT}/c"),
        np.array([FileState.READ, FileState.READ, FileState.UNPROVEN], np.int8),
        ints(300, 50, 0),
        ints(1, 2, 3),
        ints(30, 5, 0),
        ints(1, 0, 0),
        ints(0, 2, 0),
        ints(0, 3, 4),
        ranges=FileRanges(
            ints(3, 1, 2),
            ints(20, 0, 7),
            ints(0, 100, 220, 0, 0, 40),
            ints(10, 12, 8, 5, 0, 0),
            ints(0, 1, 0, 0, 0, 0),
            ints(0, 0, 0, 2, 0, 0),
        ),
    )


def facts(of: Locations) -> list[tuple[str, ...]]:
    """Returns, for each range: path, start, rows, NULLs, NaNs, slot, and footer length."""
    every = of.every_range
    numbers = (every.starts, every.rows, every.nulls, every.nans, of.range_slots)
    return [
        (of.paths[owner], *(str(column[k]) for column in numbers), str(every.footers[owner]))
        for k, owner in enumerate(every.owners.tolist())
    ]


def stored(of: Locations) -> Locations:
    """Writes the list, and reads it back."""
    return parse_locations(render_locations(of, [ROOT]), [ROOT], len(of.paths))


def test_stored_and_read_back() -> None:
    """Writing and reading leave ranges unchanged, and each range has its own slot."""
    again = stored(listed())
    assert facts(again) == facts(listed())
    assert facts(again)[:4] == [
        (f"{ROOT}/a", *"0 10 0 0 0 20".split()),
        (f"{ROOT}/a", *"100 12 1 0 1 20".split()),
        (f"{ROOT}/a", *"220 8 0 0 2 20".split()),
        (f"{ROOT}/b", *"0 5 0 2 3 0".split()),
    ]
    check_list(again, 3, 6)
    with pytest.raises(CorruptError, match="unknown place"):
        check_list(again, 3, 5)


def test_a_list_without_ranges_has_none() -> None:
    """A list without cut files has the same columns as in earlier formats."""
    whole = listed().chosen(np.array([False, True, False]))
    assert whole.ranges is not None
    assert stored(whole).ranges is None
    assert pq.read_schema(pa.BufferReader(render_locations(whole, [ROOT]))).names[-1] == "slot"


def test_parts_are_merged_by_file() -> None:
    """If a file changed, the list's next part contains all new ranges of the file."""
    first, b = listed(), np.array([False, True, False])
    cut = replace(
        first.chosen(b),
        ranges=FileRanges(ints(2), ints(9), ints(0, 25), ints(4, 1), ints(0, 0), ints(2, 0)),
    )
    later = concat(first.chosen(~b), cut)
    part = diff(first, later)
    assert part.paths == (f"{ROOT}/b",)
    assert sorted(facts(merge([first, stored(part)]))) == sorted(facts(later))
    assert diff(later, later).paths == ()
    # File b becomes a single location again, and file c is removed.
    back = diff(later, first.chosen(np.array([True, True, False])))
    assert sorted(back.paths) == [f"{ROOT}/b", f"{ROOT}/c"]
    assert facts(merge([later, stored(back)])) == facts(first)[:4]


def test_file_that_gains_or_loses_ranges_is_changed() -> None:
    """A file counts as changed if it gains its first ranges, or loses its ranges."""
    cut, whole = listed(), replace(listed(), ranges=None)
    assert diff(whole, cut).paths == (f"{ROOT}/a", f"{ROOT}/c")
    assert diff(cut, whole).paths == (f"{ROOT}/a", f"{ROOT}/c")
    assert diff(whole, whole).paths == ()


@pytest.mark.parametrize("column", ["starts", "rows", "nulls", "nans", "footers"])
def test_a_range_that_differs_is_a_change(column: str) -> None:
    """If any value of a single range changes, the range's file counts as changed."""
    now = listed()
    assert now.ranges is not None
    values = getattr(now.ranges, column).copy()
    values[0 if column == "footers" else 1] += 1
    changed = replace(now, ranges=replace(now.ranges, **{column: values}))
    assert diff(now, changed).paths == (f"{ROOT}/a",)


@pytest.mark.parametrize(
    ("column", "k", "value"),
    [
        ("starts", 1, 0),
        ("starts", 2, 300),
        ("starts", 2, 99),
        ("rows", 1, 13),
        ("nulls", 0, -1),
        ("footers", 0, -1),
        ("footers", 0, 301),
        ("footers", 1, 1),
    ],
)
def test_ranges_that_do_not_tile_their_file_are_damage(column: str, k: int, value: int) -> None:
    """The offsets of a file's ranges must ascend within the file.

    A list is damaged if the ranges' counts do not add up to the file's count. A list is also
    damaged if a footer is longer than its file.
    """
    now = listed()
    assert now.ranges is not None
    values = getattr(now.ranges, column).copy()
    values[k] = value
    data = render_locations(replace(now, ranges=replace(now.ranges, **{column: values})), [ROOT])
    with pytest.raises(CorruptError, match=r"tile|add up|footer is longer"):
        parse_locations(data, [ROOT], 3)


def test_a_range_takes_few_bytes() -> None:
    """If the row counts are random, a range adds at most 5 bytes to the stored list."""
    n, each = 1_000, 16
    random = np.random.default_rng(0)
    sizes = random.integers(15 << 20, 17 << 20, (n, each))
    starts = np.hstack([np.zeros((n, 1), INT), np.cumsum(sizes, axis=1)[:, :-1]]).ravel()
    rows = random.integers(100_000, 101_000, n * each)
    none = np.zeros(n * each, INT)
    ranges = FileRanges(
        np.full(n, each, INT), random.integers(10_000, 12_000, n), starts, rows, none, none
    )
    zeros = np.zeros(n, INT)
    whole = Locations(
        tuple(f"{ROOT}/part-{k:05d}" for k in range(n)),
        states_of(n),
        sizes.sum(axis=1),
        zeros,
        rows.reshape(n, each).sum(axis=1),
        zeros,
        zeros,
        np.arange(n) * each,
    )
    more = len(render_locations(replace(whole, ranges=ranges), [ROOT]))
    assert more - len(render_locations(whole, [ROOT])) <= 5 * n * each


def test_a_list_has_as_many_locations_as_its_version_says() -> None:
    """A list has the manifest's number of locations, and only slots within the runs.

    A slot of -1 is valid.
    """
    many = plain_locations(400)
    check_list(many, int("400"), 400)
    for number, slots in ((399, 400), (401, 400), (400, 399)):
        with pytest.raises(CorruptError):
            check_list(many, number, slots)
    check_list(many.chosen(np.zeros(400, np.bool_)), 0, 0)
    below = replace(many, slots=np.append(many.slots[1:], -2))
    with pytest.raises(CorruptError):
        check_list(below, 400, 400)
    check_list(replace(many, slots=np.append(many.slots[1:], -1)), 400, 400)


def test_counts_of_other_ranges_are_damage() -> None:
    """A list is damaged if a file has more or fewer counts than ranges."""
    table = pq.read_table(io.BytesIO(render_locations(listed(), [ROOT])))
    names = table.column_names[-4:]
    for name in names[1:]:
        place = table.column_names.index(name)
        lists = table[name].to_pylist()
        lists[0].append(0)
        column = pa.array(lists, table.schema.field(place).type)
        sink = io.BytesIO()
        pq.write_table(table.set_column(place, table.schema.field(place), column), sink)
        with pytest.raises(CorruptError, match="the counts of ranges are not those of the cuts"):
            parse_locations(sink.getvalue(), [ROOT], 3)
