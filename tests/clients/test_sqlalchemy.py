"""Tests the dialect `integrations/sqlalchemy` in an environment without Sieve and Spark."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from client_smoke import tour
from thrift_session import thrift_session

if TYPE_CHECKING:
    from conftest import Site

pytestmark = pytest.mark.tools

HOME = Path(__file__).resolve().parents[2]

_SCRIPT = """
import json, sys
import pandas as pd
from sqlalchemy import create_engine, exc, func, inspect, MetaData, select, Table

engine = create_engine(f"hive+sieve://localhost:{sys.argv[1]}/{sys.argv[2]}")
seen = inspect(engine)
try:
    seen.get_columns("nowhere")
except exc.NoSuchTableError:
    missing = True
try:
    with engine.connect() as connection:
        connection.exec_driver_sql("SHOW SIEVE INDEXES ON nowhere")
except exc.DBAPIError as error:
    refused = str(error.orig)
with engine.connect() as connection:
    table = Table("t", MetaData(), autoload_with=connection)
    counted = connection.execute(select(func.count()).where(table.c.a < 10)).scalar()
    query = "SELECT a FROM t WHERE concat('k', a) LIKE 'k12%' ORDER BY a LIMIT 3"
    frame = pd.read_sql(query, connection)
print(json.dumps({
    "backend": engine.url.get_backend_name(),
    "tables": seen.get_table_names(),
    "elsewhere": seen.get_table_names(schema=sys.argv[2]),
    "views": seen.get_view_names(),
    "columns": [(c["name"], str(c["type"])) for c in seen.get_columns("t")],
    "indexes": seen.get_indexes("t", schema=sys.argv[2]),
    "has": [seen.has_table(name) for name in ("t", "v", "nowhere")],
    "reflected": [index.name for index in table.indexes],
    "missing": missing,
    "refused": refused,
    "counted": counted,
    "frame": frame["a"].tolist(),
}))
"""


# Runs the page's code, but also prints the results of its last two lines.
_PAGE = """
import ast, json, sys

*before, indexes, frame = ast.parse(sys.argv[1]).body
scope = {}
exec(compile(ast.Module(before, []), "page", "exec"), scope)
indexes, frame = (eval(ast.unparse(line), scope) for line in (indexes, frame))
print(json.dumps([indexes, frame.to_dict("list")]))
"""


def test_code_of_the_sqlalchemy_page_works(site: Site) -> None:
    """The code on the page runs, and returns the indexes that a comment in the code shows."""
    page = (HOME / "docs" / "recipes" / "sqlalchemy.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (told,) = re.findall(r"# (\[.*\])", code)
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        for statement in (
            "CREATE DATABASE alchemy_page",
            "CREATE TABLE alchemy_page.orders USING parquet AS SELECT id FROM range(200000)",
            "CREATE SIEVE INDEX ON alchemy_page.orders (id)",
        ):
            cursor.execute(statement)
    code = code.replace(":10000/default", f":{site.thrift_port}/alchemy_page")
    done = run_python("2", _PAGE, code)
    assert json.loads(done) == [ast.literal_eval(told), {"id": [123457]}]


def run_python(release: str, script: str, *args: str) -> str:
    """Runs a script under one release of SQLAlchemy; returns the script's output."""
    python = HOME / "build" / f"sqlalchemy-{release}" / "bin" / "python"
    if not python.exists():
        pytest.fail("run `make test-clients`, which installs SQLAlchemy")
    done = subprocess.run(
        [python, "-c", script, *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("release", ["1.4", "2"])
def test_sqlalchemy_and_pandas(site: Site, release: str) -> None:
    """SQLAlchemy lists tables, views, columns and indexes. SQLAlchemy and pandas run queries."""
    database = f"alchemy_{release[0]}"
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for statement in tour("t")[:2]:
            cursor.execute(statement)
        cursor.execute(f"CREATE VIEW v AS SELECT * FROM {database}.t WHERE a = 7")
    seen = json.loads(run_python(release, _SCRIPT, str(site.thrift_port), database))
    refused = seen.pop("refused")
    assert refused.startswith("Error running query: [SIEVE_UNKNOWN_TABLE]")
    assert "HiveThriftServerErrors" not in refused
    assert seen == {
        "backend": "hive",
        "tables": ["t"],
        "elsewhere": ["t"],
        "views": ["v"],
        "columns": [["a", "BIGINT"]],
        "indexes": [{"name": "a_sieve", "column_names": ["a"], "unique": False}],
        "has": [True, True, False],
        "reflected": ["a_sieve"],
        "missing": True,
        "counted": 10,
        "frame": [12, 120, 121],
    }
