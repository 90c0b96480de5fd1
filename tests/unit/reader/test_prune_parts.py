"""Tests answers to scans of cut files: a scan reads a file in full or in part, or skips it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sieve.reader.version_reader import OpenVersion
from tests.unit.reader.indexed_table import Table, cut_locations, equals
from tests.wire import Part, files_of, flags, parts_of


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of four files.

    The first file has range 0. The other files have the ranges 1 to 3, 4 to 5, and 6 to 7. Range k
    has the keys 10 k to 10 k + 9.
    """
    return Table(tmp_path, cut_locations())


def is_in(*values: int) -> dict[str, Any]:
    """An IN predicate in the driver's wire form."""
    return {"op": "in", "col": ["x"], "values": list(values)}


def skipped(answer: Mapping[str, Any]) -> list[bool]:
    """Returns, for each file, whether the answer skips it."""
    return flags(answer["skip"], 4).tolist()


def test_the_dictionary_has_the_number_of_ranges(table: Table) -> None:
    """For each file, the dictionary contains the number of its ranges, but not its cuts."""
    told = table.send("dictionary", dictionary=table.prune(equals("x", 5))["dictionary"])
    assert [ranges for _, ranges in files_of(told)] == [1, 3, 2, 2]
    assert told.keys() == {"files", "rows", "paths"}


def test_an_answer_has_the_cuts_of_files_read_in_part(table: Table) -> None:
    """The answer contains only the cuts of the files that the scan reads in part."""
    answer = table.prune(is_in(5, 15, 40, 50))
    assert skipped(answer) == [False, False, False, True]
    assert parts_of(answer) == {1: Part([101, 202], 1, [False, True, True])}
    answer = table.prune(is_in(35, 60))
    assert skipped(answer) == [True, False, True, False]
    assert parts_of(answer) == {
        1: Part([101, 202], 1, [True, True, False]),
        3: Part([103], 3, [False, True]),
    }
    assert "parts" not in table.prune(is_in(5, 40, 50))


def test_group_of_a_file_applies_to_its_ranges(table: Table) -> None:
    """For ORDER BY with LIMIT, the group of a file is also the group of each of its ranges."""
    order = {"col": ["x"], "descending": False, "nulls": "last", "rows": 10, "ties": True}
    orders = [order | {"against": {"op": "or", "args": []}}]
    name = table.prune({"op": "and", "args": []}, {"top_k": orders})["dictionary"]

    def first(*groups: int) -> Mapping[str, Any]:
        sent = base64.b64encode(zlib.compress(np.array(groups, "<i4").tobytes())).decode()
        present = {"dictionary": name, "groups": sent}
        return table.prune({"op": "and", "args": []}, {"top_k": orders, "present": present})

    answer = first(0, 0, 0, 0)
    assert (skipped(answer), parts_of(answer)) == ([False, True, True, True], {})
    # An unlisted file gives no bound, and the scan reads the file.
    answer = first(-1, 0, 0, -1)
    assert skipped(answer) == [False, False, True, False]
    assert parts_of(answer) == {1: Part([101, 202], 1, [False, True, True])}
    answer = first(0, 1, 1, 2)
    assert skipped(answer) == [False, False, True, False]
    assert parts_of(answer) == {
        1: Part([101, 202], 1, [False, True, True]), 3: Part([103], 3, [False, True]),
    }  # fmt: skip


def test_file_with_hidden_rows_is_skipped_only_as_a_whole(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan skips a file with possibly hidden rows only if the index skips all its ranges.

    A file counts as known if all its ranges are known.
    """
    real = OpenVersion.placement
    rows = np.array([True, True, True, False, True, True, False, True])

    def placement(index: OpenVersion) -> Any:
        placed = real(index)
        return type(placed)(
            placed.files, placed.slots, placed.slots_end, placed.keys, placed.nulls, placed.nans,
            type(placed.all_rows).of(rows),
        )  # fmt: skip

    monkeypatch.setattr(OpenVersion, "placement", placement)
    answer = table.prune(equals("x", 45), {"in_part": True})
    assert skipped(answer) == [True, True, False, True]
    assert flags(answer["skip_in_part"], 4).tolist() == [True, False, False, False]
    assert flags(answer["known_in_part"], 4).tolist() == [True, False, True, False]
