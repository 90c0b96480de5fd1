"""Tests a metastore server of ``sieve metastore start`` that stores its tables in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from client_smoke import cells, check, tour
from command import sieve
from pymetastore.metastore import HMS

from tests.ports import free_ports
from tests.services import postgres
from tests.services.jars import jar
from tests.services.postgres import Postgres

pytestmark = pytest.mark.services

SMALL = ("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=4")


@contextmanager
def metastore(folder: Path, port: int, database: Postgres) -> Iterator[list[str]]:
    """Starts the server as a user would; yields the option for Spark that the command prints."""
    option = sieve(
        folder,
        *("metastore", "start", "--port", str(port), "--jdbc", database.jdbc),
        *("--user", postgres.USER, "--jar", str(jar("postgresql"))),
        SIEVE_METASTORE_PASSWORD=postgres.PASSWORD,
    )
    try:
        yield option.split()
    finally:
        sieve(folder, "metastore", "stop", "--port", str(port))


def test_registrations_live_in_postgresql(postgresql: Postgres, tmp_path: Path) -> None:
    """One spark-sql creates an index; after the metastore restarts, another spark-sql uses it.

    PostgreSQL and other clients of the metastore show the registration of the index.
    """
    (port,) = free_ports(1)
    table = "in_postgres"
    statements = tour(table)
    rows = (
        'SELECT p."PARAM_VALUE" FROM "TABLE_PARAMS" p JOIN "TBLS" t USING ("TBL_ID") '
        f"""WHERE t."TBL_NAME" = '{table}' AND p."PARAM_KEY" = 'sieve.index.a_sieve'"""
    )
    with metastore(tmp_path, port, postgresql) as option:
        output = sieve(tmp_path, "sql", *option, *SMALL, "-e", "; ".join(statements[:2]))
        with HMS.create("localhost", port) as client:
            value = client.get_table("default", table).parameters["sieve.index.a_sieve"]
    registration = json.loads(value)
    assert registration["format"] == 1
    assert registration["column"] == ["a"]
    assert set(registration) >= {"uuid", "root"}
    assert postgresql.query(rows) == [value]
    with metastore(tmp_path, port, postgresql) as option:
        output += sieve(tmp_path, "sql", *option, *SMALL, "-e", "; ".join(statements[2:]))
        with HMS.create("localhost", port) as client:
            assert "sieve.index.a_sieve" not in client.get_table("default", table).parameters
    check(cells(output))
    assert postgresql.query(rows) == []
