"""Runs the same statements in each client.

The statements are CREATE, a query, EXPLAIN SIEVE, SHOW and DROP.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from client_smoke import cells, check, tour
from pyhive.exc import OperationalError
from pymetastore.metastore import HMS
from thrift_session import thrift_session

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Site

SCRIPT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for statement in sys.argv[1].split(";"):
    for row in spark.sql(statement).collect():
        print(*row, sep="\\t")
"""


def test_spark_sql(site: Site) -> None:
    """spark-sql creates, uses, explains, shows and drops an index."""
    text = "; ".join(tour("by_spark_sql"))
    check(cells(site.sieve("sql", *site.metastore_option, "-e", text)))


@pytest.mark.long
def test_spark_submit(site: Site, tmp_path: Path) -> None:
    """With spark-submit, a PySpark script creates, uses, explains, shows and drops an index."""
    (tmp_path / "client_smoke.py").write_text(SCRIPT)
    text = ";".join(tour("by_submit"))
    output = site.sieve("submit", *site.metastore_option, str(tmp_path / "client_smoke.py"), text)
    check(cells(output))


def test_beeline(site: Site) -> None:
    """Beeline creates, uses, explains, shows and drops an index through the Thrift server.

    Procedures, and DROP INDEX without the word SIEVE, also work in Beeline.
    """
    forms = (
        "SELECT 'procedures'",
        "CALL sieve.create(table => 'by_beeline', columns => 'a')",
        "CALL sieve.refresh(table => 'by_beeline')",
        "DROP INDEX a_sieve ON by_beeline",
    )
    text = "; ".join((*tour("by_beeline"), *forms))
    lines = cells(site.sieve("beeline", "--outputformat=tsv2", "-e", text))
    middle = lines.index(["procedures"])
    check(lines[:middle])
    assert [line[0] for line in lines[middle:] if line[0] == "a_sieve"] == ["a_sieve"] * 3


def test_pyhive(site: Site) -> None:
    """PyHive creates, uses, explains, shows and drops an index; the results name their columns."""
    lines: list[list[str]] = []
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        create, *rest = tour("by_pyhive")
        cursor.execute(create)
        for statement in rest:
            cursor.execute(statement)
            lines += [list(map(str, row)) for row in cursor.fetchall()]
            if statement.startswith("SHOW"):
                names = [column[0] for column in cursor.description]
                assert names[:4] == ["namespace", "table", "index", "column"]
        with pytest.raises(OperationalError) as refused:
            cursor.execute("SHOW SIEVE INDEXES ON nowhere")
        status = refused.value.args[0].status
        assert status.sqlState == "42P01"
        assert "[SIEVE_UNKNOWN_TABLE]" in status.errorMessage
        # Some clients show the whole text of an error, so the text must begin with the message.
        shown = str(refused.value)
        assert 0 < shown.index("[SIEVE_UNKNOWN_TABLE]") < shown.index("runningQueryError")
    check(lines)


def test_clients_accept_procedures_and_functions(site: Site) -> None:
    """Procedures and table functions work, for tools that cannot send SIEVE statements."""
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        cursor.execute(tour("by_call")[0])
        cursor.execute("CALL sieve.create(table => 'by_call', columns => 'a')")
        assert cursor.fetchall()[0][0] == "a_sieve"
        query = "SELECT * FROM by_call WHERE a = 999"
        cursor.execute(f"SELECT files_total, files_read FROM sieve_explain('{query}')")
        assert cursor.fetchall() == [(8, 1)]


def test_settings_of_a_connection_string(site: Site) -> None:
    """A new session checks and applies the ``?key=value`` settings of its JDBC URL."""
    key = "set:hiveconf:spark.sieve.enabled"
    with thrift_session(site.thrift_port, configuration={key: "false"}) as connection:
        cursor = connection.cursor()
        cursor.execute("SET spark.sieve.enabled")
        assert cursor.fetchall() == [("spark.sieve.enabled", "false")]
        with pytest.raises(Exception, match=r"spark\.sieve\.strict = 'on' is not valid; allowed"):
            cursor.execute("SET spark.sieve.strict = on")
    with (
        pytest.raises(Exception, match=r"spark\.sieve\.enabled = 'maybe' is not valid; allowed"),
        thrift_session(site.thrift_port, configuration={key: "maybe"}),
    ):
        pass


def test_sessions_of_one_server_are_separate(site: Site) -> None:
    """Two sessions of one server use different databases. Each session sees only its own index."""
    with (
        thrift_session(site.thrift_port) as one,
        thrift_session(site.thrift_port) as two,
    ):
        cursors = {"first": one.cursor(), "second": two.cursor()}
        for database, cursor in cursors.items():
            cursor.execute(f"CREATE DATABASE {database}_db")
            cursor.execute(f"USE {database}_db")
        for cursor in cursors.values():
            for statement in tour("same_name")[:2]:
                cursor.execute(statement)
        for database, cursor in cursors.items():
            cursor.execute("SHOW SIEVE INDEXES")
            assert [row[:3] for row in cursor.fetchall()] == [
                (f"{database}_db", "same_name", "a_sieve")
            ]
            cursor.execute("EXPLAIN SIEVE SELECT * FROM same_name WHERE a = 999")
            assert cursor.fetchall()[0][4:6] == (8, 1)


def test_a_foreign_client_reads_the_registration(site: Site) -> None:
    """Any client of the metastore can read the registration in its documented form."""
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        for statement in tour("registered")[:2]:
            cursor.execute(statement)
    with HMS.create("localhost", site.metastore_port) as metastore:
        parameters = metastore.get_table("default", "registered").parameters
    registration = json.loads(parameters["sieve.index.a_sieve"])
    assert registration["format"] == 1
    assert registration["column"] == ["a"]
    assert set(registration) >= {"uuid", "root"}
