"""Tests which rows give a bound for scans with ORDER BY and LIMIT."""

from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sieve.errors import UnavailableError
from sieve.metadata.manifest import render_manifest
from sieve.reader import version_reader
from sieve.reader.version_reader import OpenVersion
from tests.built_index import plain_locations
from tests.unit.reader.indexed_table import LEFT, N, Table, equals
from tests.wire import flags, paths_of

NOTHING: dict[str, Any] = {"op": "or", "args": []}
ALL: dict[str, Any] = {"op": "and", "args": []}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table. In x and in y, the ten rows of file k have the keys 10 k to 10 k + 9."""
    return Table(tmp_path)


def order(rows: int = 3, column: str = "x", **more: Any) -> dict[str, Any]:
    """An ORDER BY with LIMIT, in the wire form that the driver sends."""
    plain = {"col": [column], "descending": False, "nulls": "last", "rows": rows, "ties": True}
    return plain | {"against": NOTHING} | more


def answer_to_scan(
    table: Table,
    *orders: dict[str, Any],
    predicate: Mapping[str, Any] = ALL,
    listed: Sequence[int] = range(N),
    groups: Mapping[int, int] | None = None,
    dictionary: str | None = None,
    **more: Any,
) -> Mapping[str, Any]:
    """Returns the answer to a scan that lists these files and knows the files' numbers."""
    first = table.prune(predicate, {"top_k": list(orders)})
    paths = paths_of(table.send("dictionary", dictionary=first["dictionary"]))
    files = [int(path[-1]) for path in paths]
    of = [(groups or {}).get(k, 0) if k in listed else -1 for k in files]
    sent = base64.b64encode(zlib.compress(np.array(of, "<i4").tobytes())).decode()
    present = {"dictionary": dictionary or first["dictionary"], "groups": sent}
    return table.prune(predicate, {"top_k": list(orders), "present": present, **more})


def files_read(table: Table, answer: Mapping[str, Any]) -> list[int]:
    """Returns the numbers of the files that the scan reads."""
    paths = paths_of(table.send("dictionary", dictionary=answer["dictionary"]))
    skip = flags(answer["skip"], len(paths))
    return sorted(int(path[-1]) for path, skipped in zip(paths, skip, strict=True) if not skipped)


def test_order_skips_no_file_before_file_numbers_are_known(table: Table) -> None:
    """Until a scan knows the file numbers, an order skips no file and reports no reason."""
    answer = table.prune(ALL, {"top_k": [order()]})
    assert (files_read(table, answer), answer["used"]) == (list(range(N)), [])
    assert (answer["reasons"], answer["narrows"]) == ({}, False)
    answer = table.prune(equals("x", 25), {"top_k": [order()]})
    assert (files_read(table, answer), answer["used"]) == ([2], ["x@1"])


def test_listed_files_bound_the_others(table: Table) -> None:
    """Rows of listed files give a bound, in both directions, for each group, and for each order.

    Rows of other files give no bound.
    """
    answer = answer_to_scan(table, order(10))
    assert (files_read(table, answer), answer["used"], answer["reasons"]) == ([0], ["x@1"], {})
    assert answer["narrows"] is True
    assert files_read(table, answer_to_scan(table, order(11))) == [0, 1]
    assert files_read(table, answer_to_scan(table, order(10, descending=True))) == [7]
    assert files_read(table, answer_to_scan(table, order(11, descending=True))) == [6, 7]
    both = answer_to_scan(table, order(1), order(1, "y", descending=True))
    assert (files_read(table, both), both["used"]) == ([0, 7], ["x@1", "y@1"])
    assert files_read(table, answer_to_scan(table, order(10), listed=[2, 3, 4])) == [
        0,
        1,
        2,
        5,
        6,
        7,
    ]
    groups = {0: 0, 1: 1, 2: 0, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2}
    assert files_read(table, answer_to_scan(table, order(10), groups=groups)) == [0, 1, 4]


def test_files_with_hidden_rows_give_no_bound(table: Table) -> None:
    """A file with hidden rows gives no bound, but a bound from other files can skip it."""
    assert files_read(table, answer_to_scan(table, order(10), groups={0: -2})) == [0, 1]
    assert files_read(table, answer_to_scan(table, order(10), groups={0: -2, 1: -2, 7: -2})) == [
        0,
        1,
        2,
    ]
    groups = {0: 0, 1: -3, 2: 0, 3: 1, 4: 1, 5: 0, 6: 1, 7: -3}
    assert files_read(table, answer_to_scan(table, order(10), groups=groups)) == [0, 1, 3]
    assert answer_to_scan(table, order(), groups=dict.fromkeys(range(N), -2))["reasons"] == {
        "unbounded": 1
    }


def test_rows_that_satisfy_the_filter_bound_the_scan(table: Table) -> None:
    """A row gives a bound only if it certainly satisfies the scan's filter.

    A scan with an order and a filter skips files that it would read with the order alone.
    """
    above = {"op": ">", "col": ["x"], "value": 25}
    against = {"op": "or", "args": [{"op": "<=", "col": ["x"], "value": 25}]}
    answer = answer_to_scan(table, order(10, against=against), predicate=above)
    assert (files_read(table, answer), answer["used"]) == ([2, 3], ["x@1"])
    other = {"op": "or", "args": [{"op": "<=", "col": ["y"], "value": 25}]}
    beside = answer_to_scan(table, order(10, against=other), predicate=above | {"col": ["y"]})
    assert (files_read(table, beside), beside["used"]) == ([2, 3], ["x@1", "y@1"])
    unknown = {"op": "or", "args": [{"op": "unknown", "why": "udf", "names": ["z"]}]}
    answer = answer_to_scan(table, order(10, against=unknown), predicate=above)
    assert files_read(table, answer) == [2, 3, 4, 5, 6, 7]
    assert (answer["reasons"], answer["used"]) == ({"unbounded": 1}, ["x@1"])
    null = answer_to_scan(table, order(10), predicate={"op": "is not null", "col": ["x"]})
    assert (files_read(table, null), null["narrows"]) == ([0], True)


def test_scan_without_a_bound_reads_all_files(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is no bound, a scan reads all files, and reports `unbounded`.

    The tested causes are a LIMIT above the table's rows, an unknown dictionary, an earlier instant,
    no index on the ordered column, and a large run.
    """

    def is_unbounded(answer: Mapping[str, Any]) -> None:
        assert answer["reasons"] == {"unbounded": 1}
        assert (files_read(table, answer), answer["used"]) == (list(range(N)), [])
        assert answer["narrows"] is False

    is_unbounded(answer_to_scan(table, order(10 * N + 1)))
    is_unbounded(answer_to_scan(table, order(), dictionary="0" * 64))
    is_unbounded(answer_to_scan(table, order(), instant=1_743_465_600_000))
    is_unbounded(answer_to_scan(table, order(), order(1, "z")))
    size = table.versions[0].runs[0].bytes
    monkeypatch.setattr(version_reader, "MOST_EXTENT_BYTES", size - 1)
    is_unbounded(answer_to_scan(table, order()))
    monkeypatch.setattr(version_reader, "MOST_EXTENT_BYTES", size)
    assert files_read(table, answer_to_scan(table, order())) == [0]
    answer = table.prune(ALL, {"top_k": [order(1, "z")]})
    assert ("skip" in answer, answer["reasons"]) == (False, {"no-predicate": 1})


def of_format(table: Table, format_name: str) -> Table:
    """Changes the table format that the version of the index on `x` records."""
    path = table.root / LEFT / "versions" / "1.json"
    path.write_bytes(
        render_manifest(dataclasses.replace(table.versions[0], format_name=format_name))
    )
    return table


@pytest.mark.parametrize(
    ("format_name", "files"),
    [
        ("parquet", [0]),
        ("orc", [0]),
        ("delta", [0]),
        ("csv", [*range(N)]),
        ("iceberg", [0]),
    ],
)
def test_text_formats_give_no_bound(table: Table, format_name: str, files: list[int]) -> None:
    """In text formats, row counts are not reliable, so they give no bound.

    For Iceberg, the driver reports which files have deleted rows. For Delta tables with deletion
    vectors, the driver requests no bound.
    """
    assert files_read(table, answer_to_scan(of_format(table, format_name), order())) == files


def test_slices_with_log_files_give_no_bound(tmp_path: Path) -> None:
    """Log files can hide rows, so a Hudi slice with log files gives no bound, and is read."""
    listed = plain_locations(N)
    times = np.array([7, 7, *[0] * (N - 2)])
    table = of_format(Table(tmp_path, dataclasses.replace(listed, mtimes=times)), "hudi")
    assert files_read(table, answer_to_scan(table, order(10))) == [0, 1, 2]
    assert files_read(table, answer_to_scan(table, order(10, descending=True))) == [7]
    all_logged = dataclasses.replace(listed, mtimes=np.full(N, 7))
    table = of_format(Table(tmp_path / "all", all_logged), "hudi")
    assert files_read(table, answer_to_scan(table, order(1))) == list(range(N))


def test_slices_of_several_runs_are_read(tmp_path: Path) -> None:
    """A Hudi slice in two runs gives no bound, and the scan reads the slice."""
    also = np.full((N, 1), -1)
    also[5] = 0
    times = np.array([0, 0, 0, 0, 0, 7, 0, 0])
    listed = dataclasses.replace(plain_locations(N), mtimes=times, also=also)
    table = of_format(Table(tmp_path, listed), "hudi")
    assert files_read(table, answer_to_scan(table, order(10))) == [0, 5]
    assert files_read(table, answer_to_scan(table, order(10, descending=True))) == [5, 7]


def test_filter_index_is_used_if_the_order_index_fails(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filter's index still skips files if the index on the ordered column fails."""

    def fail(_: OpenVersion) -> None:
        raise UnavailableError("SIEVE_UNREACHABLE", "the store is away")

    monkeypatch.setattr(OpenVersion, "merged_slices", fail)
    answer = answer_to_scan(table, order(10), predicate=equals("y", 25))
    assert (files_read(table, answer), answer["used"]) == ([2], ["y@1"])
    assert answer["reasons"] == {"error": 1, "unbounded": 1}


def test_damaged_order_index_is_a_reason(table: Table) -> None:
    """A scan reports damage of an index in the same way for an order as for a filter."""
    path = table.run_file(LEFT, 1)
    path.write_bytes(path.read_bytes()[:-1])
    answer = answer_to_scan(table, order())
    assert ("skip" in answer, answer["reasons"]) == (False, {"index-corrupt": 1})
