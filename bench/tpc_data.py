"""Writes TPC-DS and TPC-H as Parquet files. DuckDB's extensions generate the rows.

Each fact table has 200 files in order of arrival. Rows arrive in order of their day, but 2 % of the
rows arrive up to 30 days late. A row without a day arrives at a random time. Every other table is
one file. DuckDB's extensions come from PyPI, because `INSTALL tpcds` needs access to a DuckDB
server.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import duckdb

FILES = 200

# For each suite, a mapping from fact table to a SQL expression for a row's day as an integer.
ARRIVALS: Mapping[str, Mapping[str, str]] = {
    "tpcds": {
        "store_sales": "ss_sold_date_sk",
        "store_returns": "sr_returned_date_sk",
        "catalog_sales": "cs_sold_date_sk",
        "catalog_returns": "cr_returned_date_sk",
        "web_sales": "ws_sold_date_sk",
        "web_returns": "wr_returned_date_sk",
        "inventory": "inv_date_sk",
    },
    "tpch": {
        "lineitem": "l_shipdate - DATE '1992-01-01'",
        "orders": "o_orderdate - DATE '1992-01-01'",
    },
}
_GENERATORS = {"tpcds": "dsdgen", "tpch": "dbgen"}

Say = Callable[[str], None]


def generate(root: Path, suite: str, scale: float, say: Say) -> Path:
    """Generates a suite's tables, each in its own folder. Returns the common folder.

    Reuses the files of an earlier call.

    Args:
        root: folder for all suites and scale factors.
        suite: the suite's name, "tpcds" or "tpch".
        scale: scale factor. With scale 1, the tables have about 1 GB as text.
        say: a callback that receives a text about the current step.
    """
    target = root / f"{suite}-{scale:g}"
    if target.exists():
        return target
    part = target.with_suffix(".tmp")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with _connected(suite, part / "raw.duckdb") as connection:
        say(f"generating {suite} at scale {scale:g}")
        connection.execute(f"CALL {_GENERATORS[suite]}(sf = {scale})")
        names = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        for (name,) in names:
            say(f"writing {name}")
            (part / name).mkdir()
            arrival = ARRIVALS[suite].get(name)
            if arrival:
                _write_fact(connection, name, arrival, part / name)
            else:
                connection.execute(f"COPY {name} TO '{part / name}/part-0.parquet'")
    (part / "raw.duckdb").unlink()
    part.rename(target)
    return target


def query_texts(suite: str) -> dict[int, str]:
    """A dict from the number of each query of a suite to its SQL text in DuckDB's dialect."""
    with _connected(suite, Path(":memory:")) as connection:
        rows = connection.execute(f"SELECT query_nr, query FROM {suite}_queries()").fetchall()
    return {number: text.strip().rstrip(";") for number, text in rows}


@contextmanager
def _connected(suite: str, path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Within the block, opens a connection to DuckDB that has loaded the suite's extension."""
    package = Path(str(resources.files(f"duckdb_extension_{suite}")))
    (extension,) = package.glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension")
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"LOAD '{extension}'")
        yield connection


def _write_fact(
    connection: duckdb.DuckDBPyConnection, name: str, arrival: str, folder: Path
) -> None:
    """Writes a fact table in order of arrival, to files with equal numbers of rows."""
    late = "IF(hash(rowid, 1) % 50 = 0, hash(rowid, 2) % 30, 0)"
    days = f"(SELECT min({arrival}), max({arrival}) FROM {name}) days(low, high)"
    day = (
        f"COALESCE({arrival}, low + CAST(hash(rowid, 3) % CAST(high - low + 1 AS UBIGINT) AS INT))"
    )
    connection.execute(
        f"CREATE TABLE arrived AS SELECT {name}.* FROM {name}, {days} "
        f"ORDER BY {day} + CAST({late} AS INT), rowid"
    )
    connection.execute(f"DROP TABLE {name}")
    found = connection.execute("SELECT count(*) FROM arrived").fetchone()
    assert found is not None
    for number in range(FILES):
        first, end = (found[0] * k // FILES for k in (number, number + 1))
        if first < end:
            connection.execute(
                f"COPY (SELECT * FROM arrived WHERE rowid >= {first} AND rowid < {end}) "
                f"TO '{folder}/part-{number:05d}.parquet'"
            )
    connection.execute("DROP TABLE arrived")
