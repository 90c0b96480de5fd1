"""Tests the result of CHECK for each file, on frames that replace Spark's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.errors import CorruptError
from sieve.metadata.index_options import IndexOptions
from sieve.operations.check import (
    CHANGED,
    GONE,
    LOST,
    OK,
    OTHER_READER,
    OUTDATED,
    STALE,
    CheckedFile,
    _loss,
    _Seen,
    check_index,
    refuse_losses,
)
from sieve.operations.registered_index import Ready
from sieve.tables.data_file import DataFile
from tests import fake_frames
from tests.built_index import ROOT
from tests.unit.operations.frame_table import DAMAGED, LENGTH, Ranges, Table, index

NAN = float("nan")
FILES: list[Ranges] = [[[1, 2, 3, None]], [[100, 101], [150, None]], [[200, 3, 3]]]
INTERVALS = IndexOptions("intervals", "8KB")


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces PySpark's frames."""
    fake_frames.use(monkeypatch)


def check(table: Table, one: Ready, percent: float = 100, **words: Any) -> list[tuple[str, ...]]:
    """Runs CHECK; returns the name, status and details of each file.

    Asserts that no data stays cached on executors.
    """
    jobs: list[str] = []
    environment: Any = SimpleNamespace(describe_job=jobs.append)
    found = check_index(table, one, percent, environment, **words)  # type: ignore[arg-type]
    assert table.cluster.sent == []
    assert all(re.fullmatch(rf"checking {one.manifest.name}, \d+ files", job) for job in jobs)
    assert all(checked.index == one.manifest.name for checked in found)
    return [(c.file.removeprefix(f"{ROOT}/"), c.status, c.detail) for c in found]


WHOLE = [(str(k), OK, "") for k in range(3)]


@pytest.mark.parametrize("parts", [(), ([0, 1], [2]), ([2], [1], [0])])
@pytest.mark.parametrize(
    ("options", "type_"),
    [
        (INTERVALS, "bigint"),
        (IndexOptions("map", "8KB"), "bigint"),
        (IndexOptions("map", "8KB"), "string"),
        (IndexOptions("runs", "8KB"), "string"),
    ],
)
def test_check_reports_only_keys_that_the_index_lacks(
    tmp_path: Path, parts: Sequence[Sequence[int]], options: IndexOptions, type_: str
) -> None:
    """CHECK reports exactly the one key whose code or hash is missing in the index.

    The index that CHECK reads has one run or several runs.
    """

    def typed(value: Any) -> Any:
        return value if value is None or type_ == "bigint" else f"word {value:05d}"

    table = Table(type_, [[[typed(v) for v in some] for some in file] for file in FILES])
    made = index(tmp_path, table, options, parts)
    assert check(table, made) == WHOLE
    table.values[1][1][0] = typed(149)
    ((_, status, detail),) = [one for one in check(table, made) if one[1] != OK]
    assert (status, detail) == (LOST, f"key {typed(149)} (1 rows of such keys)")


@pytest.mark.parametrize(
    ("place", "values", "detail"),
    [
        ((0, 0), [1, 2, 3, 50, 50, None], "key 50 (2 rows of such keys)"),
        ((1, 0), [100, 101, 101], "rows (3 rows in the file, 2 in the index)"),
        ((1, 1), [150, None, None], "rows (3 rows in the file, 2 in the index)"),
        ((1, 1), [None, None], "NULL (2 rows in the file, 1 in the index)"),
        ((1, 1), [150], ""),
        ((2, 0), [200, 3], ""),
        (
            (2, 0),
            [200, DAMAGED, 3],
            "the rows of a damaged record, which differ from query to query,",
        ),
    ],
)
def test_check_names_a_lost_key_or_a_small_count(
    tmp_path: Path, place: tuple[int, int], values: list[Any], detail: str
) -> None:
    """CHECK names a key that is missing in the index, or a count that is lower than in the file.

    If the index has additional keys, CHECK reports no loss.
    """
    table = Table("bigint", FILES)
    made = index(tmp_path, table, INTERVALS)
    table.values[place[0]][place[1]] = values
    found = check(table, made)
    assert found[place[0]] == (str(place[0]), LOST if detail else OK, detail)
    assert [one for k, one in enumerate(found) if k != place[0]] == [
        one for k, one in enumerate(WHOLE) if k != place[0]
    ]


def test_changed_new_and_deleted_files_are_not_checked(tmp_path: Path) -> None:
    """CHECK skips files that changed, are new or were deleted.

    CHECK checks all unchanged files, whatever their file numbers are.
    """
    table = Table("bigint", [*FILES, [[7]], [[8]]])
    made = index(tmp_path, table, INTERVALS)
    listed = list(table.files())
    listed[0] = replace(listed[0], mtime=2)
    listed[1] = replace(listed[1], length=LENGTH + 1)
    listed[3] = DataFile(f"{ROOT}/a new one", 5, 1)
    table.listings = [[listed[k] for k in (4, 3, 2, 1, 0)]]
    table.values.reverse()
    assert check(table, made) == [
        ("0", STALE, CHANGED),
        ("1", STALE, CHANGED),
        ("2", OK, ""),
        ("3", GONE, "no file of the table"),
        ("4", OK, ""),
        ("a new one", STALE, "new since the index was built"),
    ]


def test_file_replaced_while_it_is_read_is_stale(tmp_path: Path) -> None:
    """If a file seems to have lost a row, CHECK lists the table's files once more.

    If a file was replaced during the check, CHECK reports it as stale.
    """
    table = Table("bigint", FILES)
    made = index(tmp_path, table, INTERVALS)
    then = list(table.files())
    now = [replace(then[0], mtime=9), then[1], replace(then[2], mtime=9)]
    table.listings = [then, now, now]
    assert check(table, made) == WHOLE
    table.values[0][0] = [77]
    table.values[1][0] = [177]
    table.listings = [then, now]
    assert check(table, made) == [
        ("0", STALE, CHANGED), ("1", LOST, "key 177 (1 rows of such keys)"), ("2", OK, ""),
    ]  # fmt: skip


def test_an_index_that_no_query_uses_is_not_checked(tmp_path: Path) -> None:
    """If no query can use the index, CHECK reports all files as stale.

    An index of an older format, or for another reader, is of no use to any query.
    """
    table = Table("bigint", FILES)
    made = index(tmp_path, table, INTERVALS)
    old = Ready("v", made.registration, made.store, replace(made.manifest, is_outdated=True))
    assert check(table, old) == [(str(k), STALE, OUTDATED) for k in range(3)]
    table.info.fingerprint_parts = {"spark": "9.9"}
    assert check(table, made) == [(str(k), STALE, OTHER_READER) for k in range(3)]


@pytest.mark.parametrize(("percent", "n"), [(1, 1), (33, 1), (34, 2), (66, 2), (67, 3), (100, 3)])
def test_a_share_of_the_files_is_drawn(tmp_path: Path, percent: float, n: int) -> None:
    """CHECK samples at least one file, and reads only files that the index can skip."""
    table = Table("bigint", [*FILES, [[7]]])
    made = index(tmp_path, table, INTERVALS)
    table.listings[0][3] = replace(table.listings[0][3], mtime=2)
    asked: list[tuple[list[int], int]] = []

    def draw(among: Sequence[int], count: int) -> list[int]:
        asked.append((list(among), count))
        return list(among)[::-1][:count]

    checked = check(table, made, percent, draw=draw)
    assert asked == [([0, 1, 2], n)]
    assert checked == [*WHOLE[3 - n :], ("3", STALE, CHANGED)]


def opened(rows: int, nulls: int, nans: int, null_proof: bool) -> Any:
    """Makes an opened version whose second location has these counts."""
    of = SimpleNamespace(
        rows=np.array([0, rows]), nulls=np.array([0, nulls]), nans=np.array([0, nans])
    )
    return SimpleNamespace(
        locations=lambda: SimpleNamespace(every_range=of),
        placement=lambda: SimpleNamespace(bounds=None),
        manifest=SimpleNamespace(column=("id",), null_proof=null_proof),
    )


@pytest.mark.parametrize(
    ("seen", "listed", "null_proof", "loss"),
    [
        (_Seen(5, 1, 1), (5, 1, 1), True, ""),
        (_Seen(5, 1, 1), (9, 2, 2), True, ""),
        (_Seen(6, 1, 1), (5, 1, 1), True, "rows (6 rows in the file, 5 in the index)"),
        (_Seen(5, 1, 2), (5, 1, 1), True, "NaN (2 rows in the file, 1 in the index)"),
        (_Seen(5, 2, 1), (5, 1, 1), True, "NULL (2 rows in the file, 1 in the index)"),
        (_Seen(5, 2, 1), (5, 1, 1), False, ""),
        (_Seen(6, 2, 2), (5, 1, 1), True, "rows (6 rows in the file, 5 in the index)"),
        (_Seen(4, 1, 2), (4, 2, 2), True, "every key (2 NULL and 2 NaN of 4 rows in the index)"),
        (_Seen(4, 1, 2), (4, 3, 2), True, "every key (3 NULL and 2 NaN of 4 rows in the index)"),
        (_Seen(4, 1, 2), (5, 2, 2), True, ""),
        (_Seen(3, 1, 2), (4, 2, 2), True, ""),
        (_Seen(5, 1, 1, missed=3, key="7"), (5, 1, 1), True, "key 7 (3 rows of such keys)"),
        (
            _Seen(5, 1, 1, missed=3, damaged=1, key="7"), (5, 1, 1), True,
            "the rows of a damaged record, which differ from query to query,",
        ),
    ],
)  # fmt: skip
def test_counts_that_are_too_small_lose_rows(
    seen: _Seen, listed: tuple[int, int, int], null_proof: bool, loss: str
) -> None:
    """If a file has more rows, NULLs or NaNs than the index counts, CHECK reports a loss.

    CHECK reports every key as lost if the location's counts imply that no row has a key.
    """
    assert _loss(opened(*listed, null_proof), 1, seen) == loss


def test_losses_are_an_error_that_names_ten_of_them() -> None:
    """The error names ten lost files, the total number, and the statements that rebuild indexes."""

    def lost_files(*indexes: str) -> list[CheckedFile]:
        return [CheckedFile(one, f"f{k}", LOST, f"key {k}") for k, one in enumerate(indexes)]

    refuse_losses("d.t", [CheckedFile("i", "f", status, "") for status in (OK, STALE, GONE)])
    with pytest.raises(CorruptError, match="SIEVE_FALSE_NEGATIVE") as told:
        refuse_losses("d.t", [CheckedFile("k", "f", OK, ""), *lost_files("i", "j")])
    text = told.value.message
    assert "index i loses key 0 of f0; index j loses key 1 of f1. Report" in text
    assert "d: REFRESH SIEVE INDEX i ON d.t FULL; REFRESH SIEVE INDEX j ON d.t FULL. " in text
    with pytest.raises(CorruptError, match=r"key 9 of f9\. Report") as told:
        refuse_losses("d.t", lost_files(*["i"] * 10))
    assert told.value.message.count("REFRESH") == 1
    with pytest.raises(CorruptError, match=r"key 9 of f9; and so on, in 11 files\. Report"):
        refuse_losses("d.t", lost_files(*["i"] * 11))


def test_nan_is_a_row_without_a_key(tmp_path: Path) -> None:
    """CHECK reports a NaN that the index does not count."""
    table = Table("double", [[[1.0, NAN]], [[2.0, None, 5.0]]])
    made = index(tmp_path, table, INTERVALS)
    assert check(table, made) == WHOLE[:2]
    table.values[1][0] = [2.0, NAN, 5.0]
    assert check(table, made)[1] == ("1", LOST, "NaN (1 rows in the file, 0 in the index)")


@pytest.mark.parametrize(
    ("seen", "listed", "lost"),
    [
        ((2, 1, 1), (2, 1, 1), False),
        ((3, 1, 1), (3, 1, 1), False),
        ((3, 1, 1), (3, 2, 1), True),
        ((6, 3, 3), (6, 3, 3), False),
        ((3, 2, 1), (2, 2, 1), True),
    ],
)
def test_file_with_keys_but_too_low_counts_has_a_loss(
    seen: tuple[int, int, int], listed: tuple[int, int, int], lost: bool
) -> None:
    """CHECK reports a loss if a file has keys, but the index's counts imply that it has none.

    A file without keys cannot lose a key.
    """
    ranges = SimpleNamespace(
        **{
            name: np.array([count])
            for name, count in zip(("rows", "nulls", "nans"), listed, strict=True)
        }
    )
    index: Any = SimpleNamespace(
        locations=lambda: SimpleNamespace(every_range=ranges),
        placement=lambda: SimpleNamespace(bounds=None),
        manifest=SimpleNamespace(column=("id",), null_proof=True),
    )
    assert bool(_loss(index, 0, _Seen(*seen))) is lost
