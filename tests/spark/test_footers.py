"""A reader reads a file's footer again for each range, so large footers make ranges costly."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_session import Lab


@pytest.fixture(scope="module", autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """The database in which all tests of this module work."""
    with lab.database("footers"):
        yield


@contextlib.contextmanager
def wide_table(lab: Lab, folder: Path, groups: int) -> Iterator[Path]:
    """Creates a table `v` of one file, whose row groups of one row each make the footer large."""
    folder.mkdir()
    path, names = folder / "a.parquet", [f"c{k}" for k in range(150)]
    wide = {name: ["x" * 40] * groups for name in names}
    rows = pa.table({"k": range(groups), **wide})
    pq.write_table(rows, path, row_group_size=1, compression="none")
    columns = ", ".join(f"{name} STRING" for name in names)
    lab.sql(f"CREATE TABLE v (k BIGINT, {columns}) USING parquet LOCATION '{folder}'")
    with lab.setting("spark.sieve.range.bytes", "1000"):
        lab.sql("CREATE SIEVE INDEX ON v (k) OPTIONS (granularity = 'range', shape = 'map')")
    yield path
    lab.sql("DROP TABLE v")


def test_ranges_have_the_bytes_of_a_large_footer(lab: Lab, tmp_path: Path) -> None:
    """A file with a footer above a megabyte gets few ranges, as each range needs the footer."""
    with wide_table(lab, tmp_path / "v", 120) as path:
        metadata = pq.read_metadata(path)
        assert metadata.serialized_size > 1 << 20
        assert metadata.num_row_groups == 120
        (told,) = lab.explain("SELECT k FROM v WHERE k = 7")
        assert told["ranges_total"] <= path.stat().st_size / metadata.serialized_size
        lab.check("SELECT * FROM v WHERE k IN (7, 119)", exactly=1)


def test_footers_that_cost_more_than_they_save(lab: Lab, tmp_path: Path) -> None:
    """If a footer is almost half of a file, a query reads at most two separate ranges of it.

    Each separate range costs a footer, so three separate ranges would cost more than the whole
    file.
    """
    with (
        lab.setting("spark.sql.files.openCostInBytes", "0"),
        wide_table(lab, tmp_path / "v", 40) as path,
    ):
        footer = pq.read_metadata(path).serialized_size + 8
        assert path.stat().st_size / 3 < footer < min(1 << 20, path.stat().st_size * 0.48)
        for keys, ranges, reasons in (
            ("7", 1, None),
            ("7, 20", 2, None),
            ("7, 20, 33", 40, "whole-file: 1"),
        ):
            query = f"SELECT * FROM v WHERE k IN ({keys})"
            lab.check(query, exactly=1)
            (told,) = lab.explain(query)
            assert (told["ranges_read"], told["reasons"]) == (ranges, reasons)
            assert told["bytes_read"] <= told["bytes_total"]
            assert told["bytes_read"] >= min(ranges * footer, told["bytes_total"])
