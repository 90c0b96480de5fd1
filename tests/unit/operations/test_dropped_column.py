"""An index finds its column by the column's name in data files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sieve.errors import InvalidInputError
from sieve.operations.dropped_column import dropped_column, indexed_column
from sieve.tables.column import Column
from tests.fake_spark import PlainTable, Warehouse, no_fault
from tests.unit.metadata.manifest_sample import SAMPLE


def test_a_column_is_found_by_its_name_in_files(tmp_path: Path) -> None:
    """An index finds a renamed column by its name in files, and no later column of the old name."""
    warehouse = Warehouse(tmp_path / "shop")
    warehouse.create_table("t", [[1]])
    info = PlainTable(warehouse, "t", no_fault).info
    manifest = replace(SAMPLE, name="v_sieve", column=("col-1",))
    renamed = Column(("w",), "bigint", ("col-1",))
    there = replace(info, columns=(renamed,))
    assert indexed_column(there, manifest) is renamed
    assert dropped_column(there, manifest) is None
    gone = replace(info, columns=(Column(("col-1",), "bigint", ("col-2",)),))
    problem = (
        "table shop.t no longer has the column of index v_sieve, which its files name col-1; "
        "run DROP SIEVE INDEX v_sieve ON shop.t"
    )
    assert dropped_column(gone, manifest) == problem
    with pytest.raises(InvalidInputError) as raised:
        indexed_column(gone, manifest)
    assert (raised.value.condition, raised.value.message) == ("SIEVE_UNKNOWN_COLUMN", problem)
