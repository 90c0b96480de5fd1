"""For a small table, the front end builds the same index as executors would."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from spark_session import Lab

from sieve.indexing.build_run import BuiltRun, build_run
from sieve.indexing.tiling import whole_files
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.paths import run_dir
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sieve.tables.table import CatalogTable

COLUMNS = {
    "bigint": "if(id % 9 = 0, NULL, xxhash64(id))",
    "int": "CAST(id AS INT)",
    "boolean": "id % 3 = 0",
    "double": "if(id % 5 = 0, double('NaN'), id / 7D)",
    "date": "date_add(DATE'1500-01-01', CAST(id * 977 % 300000 AS INT))",
    "timestamp": "timestamp_micros(id * 86399999999L - 62135596800000000L)",
    "timestamp_ntz": "timestamp_micros(id * 1000003L)::timestamp_ntz",
    "decimal(9,2)": "CAST(id * 7 % 101 AS DECIMAL(9,2))",
    "decimal(38,10)": "CAST(xxhash64(id) AS DECIMAL(38,10))",
    "string": "if(id % 8 = 0, NULL, concat('customer ', md5(CAST(id AS STRING))))",
    "binary": "unhex(md5(CAST(id AS STRING)))",
}
SHAPES = (IndexOptions(), IndexOptions("map", "90%"), IndexOptions("sieve"))
LONG = pytest.mark.long
FEW = ("bigint", "double", "timestamp", "decimal(38,10)", "string")
# JSON has no binary values, so for JSON the test uses only these types.
SOURCES = [
    ("parquet", FEW),
    pytest.param("parquet", tuple(set(COLUMNS) - set(FEW)), marks=LONG),
    pytest.param("json", ("bigint", "string", "double"), marks=LONG),
]


@pytest.mark.long
@pytest.mark.parametrize(("source", "names"), SOURCES, ids=["parquet", "parquet-others", "json"])
def test_the_same_run_with_and_without_executors(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, names: Sequence[str]
) -> None:
    """Builds with and without executors count the same rows, NULLs and NaNs.

    The run files of both builds have equal rows and equal lengths.
    """
    monkeypatch.setattr(lab.spark.sparkContext, "pythonExec", sys.executable)
    types = {name: made for name, made in COLUMNS.items() if name in names}
    columns = ", ".join(f"{made} AS c{k}" for k, made in enumerate(types.values()))
    with lab.database("local_rows"):
        lab.sql(f"CREATE TABLE t USING {source} AS SELECT {columns} FROM range(0, 900, 1, 6)")
        resolve = lab.spark._jvm.org.apache.spark.sql.sieve.statements.Tables.resolve
        table = CatalogTable(resolve(lab.spark._jsparkSession, ["t"]), lab.spark)
        for number, type_name in enumerate(types):
            for options in SHAPES if type_name in ("bigint", "string") else SHAPES[:1]:
                column = Column((f"c{number}",), type_name)
                folder = tmp_path / f"{number}-{options.shape}"
                one = _built(table, column, options, folder / "executors")
                other = _built(
                    table, column, options, folder / "local", write_file=table.write_file
                )
                assert one[1:] == other[1:]
                assert one[1], type_name
                counts = [
                    [getattr(built[0], name).tolist() for name in ("rows", "nulls", "nans")]
                    for built in (one, other)
                ]
                assert counts[0] == counts[1]
                assert sum(counts[0][0]) == 900
                assert one[0].expected == other[0].expected


def _built(
    table: CatalogTable, column: Column, options: IndexOptions, folder: Path, **how: Any
) -> tuple[BuiltRun, list[Any], list[int]]:
    """Runs a build; returns the build, and the rows and the length of each run file."""
    folder.joinpath("intents").mkdir(parents=True)
    files = table.files()
    frame = table.frame(range(len(files)), column)
    built = build_run(
        frame,
        column,
        whole_files([file.length for file in files]),
        options,
        LocalStore(),
        f"file:{folder}",
        whole=frame,
        counting=None if table.info.format_name == "json" else frame,
        describe_job=lambda _: None,
        **how,
    )
    assert built.run is not None
    home = Path(run_dir(f"file:{folder}", built.run.id).removeprefix("file:"))
    paths = [home / file.name for file in built.run.files]
    return built, [pq.read_table(p).to_pylist() for p in paths], [p.stat().st_size for p in paths]
