"""Tests which rows a build counts to check that it has read each file in full."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.indexing.column_profile import rows_to_count
from sieve.tables.data_file import DataFile

WHOLE: Any = object()
FILES = [DataFile("file:/a", 100, 7), DataFile("file:/b", 200, 0)]


@pytest.mark.parametrize(
    ("format_name", "kind", "expected"),
    [
        ("parquet", None, WHOLE),
        ("delta", None, WHOLE),
        ("csv", None, None),
        ("parquet", "elements", None),
        ("iceberg", "substring", None),
    ],
)
def test_rows_are_counted_if_metadata_has_counts(
    format_name: str, kind: str | None, expected: object
) -> None:
    """A build checks no row counts if the format has no counts, or if rows have several keys."""
    table: Any = SimpleNamespace(info=SimpleNamespace(format_name=format_name))
    column: Any = SimpleNamespace(kind=kind)
    assert rows_to_count(table, FILES, WHOLE, column) is expected


def test_iceberg_lists_row_counts() -> None:
    """For Iceberg, `mtime` of a listed file is its row count, so no job counts rows."""
    table: Any = SimpleNamespace(info=SimpleNamespace(format_name="iceberg"))
    found = rows_to_count(table, FILES, WHOLE, SimpleNamespace(kind=None))  # type: ignore[arg-type]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [7, 0]
