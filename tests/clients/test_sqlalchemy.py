"""The dialect `integrations/sqlalchemy`, in an environment that has neither Sieve nor Spark."""

from __future__ import annotations

import json
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
    "counted": counted,
    "frame": frame["a"].tolist(),
}))
"""


@pytest.mark.parametrize("release", ["1.4", "2"])
def test_sqlalchemy_and_pandas(site: Site, release: str) -> None:
    """Tables, views, columns and indexes as they are; queries by SQLAlchemy and by pandas."""
    python = HOME / "build" / f"sqlalchemy-{release}" / "bin" / "python"
    database = f"alchemy_{release[0]}"
    if not python.exists():
        pytest.fail("run `make test-clients`, which installs SQLAlchemy")
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for statement in tour("t")[:2]:
            cursor.execute(statement)
        cursor.execute(f"CREATE VIEW v AS SELECT * FROM {database}.t WHERE a = 7")
    done = subprocess.run(
        [python, "-c", _SCRIPT, str(site.thrift_port), database],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {
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
