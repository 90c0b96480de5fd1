"""Tests the option ``--delta`` of ``sieve thriftserver start`` and of ``sieve sql``."""

from __future__ import annotations

from pathlib import Path

import delta_jars
import pytest
from command import sieve
from delta_tables import SPARK
from ports import free_ports
from thrift_session import thrift_session

pytestmark = pytest.mark.delta

SMALL = [
    part
    for key, value in delta_jars.SMALL.items()
    for part in ("--conf", f"{key}={value}")
]  # fmt: skip
TABLE = (
    "CREATE TABLE t USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
    "'delta.dataSkippingNumIndexedCols' = '0') AS "
    "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id FROM range(100)"
)
MADE = (TABLE, "CREATE SIEVE INDEX ON t (id)", "DELETE FROM t WHERE id = 43")
QUERY = "SELECT * FROM t WHERE id IN (42, 43)"


def test_shell_can_use_the_jars_of_the_user(tmp_path: Path) -> None:
    """`sieve sql --delta` sets the catalog and both extensions, and accepts jars from the user."""
    statements = (
        *MADE,
        "SELECT concat('rows: ', count(*), ' ', sum(id)) FROM t WHERE id IN (42, 43)",
        "EXPLAIN SIEVE SELECT * FROM t WHERE id IN (3, 42)",
    )
    jars = ["--jars", ",".join(map(str, delta_jars.jars()))]
    shown = sieve(tmp_path, "sql", "--delta", *jars, *SMALL, "-e", "; ".join(statements))
    assert "rows: 1 42" in shown
    assert "id_sieve@1" in shown


def test_server_loads_the_delta_package(tmp_path: Path) -> None:
    """The server finds and loads Delta's package; its sessions create an index and skip files.

    In the mode `STRICT`, Delta plans its own scans, which need all jars of the package.
    """
    (port,) = free_ports(1)
    sieve(tmp_path, "thriftserver", "start", "--port", str(port), "--delta", *SMALL)
    try:
        with thrift_session(port) as connection, connection.cursor() as cursor:
            for statement in MADE:
                cursor.execute(statement)
            cursor.execute(f"EXPLAIN SIEVE {QUERY}")
            names = [column[0] for column in cursor.description]
            facts = dict(zip(names, cursor.fetchone(), strict=True))
            assert (facts["files_total"], facts["files_read"]) == (10, 1)
            for mode in ("NONE", "STRICT"):
                cursor.execute(f"SET spark.databricks.delta.v2.enableMode = {mode}")
                for on in ("true", "false"):
                    cursor.execute(f"SET spark.sieve.enabled = {on}")
                    cursor.execute(QUERY)
                    assert cursor.fetchall() == [(42,)], (mode, on)
            # Delta 3.3 does not have the mode `STRICT`.
            cursor.execute(f"EXPLAIN SIEVE {QUERY}")
            assert len(cursor.fetchall()) == (1 if SPARK < (4, 0) else 0)
    finally:
        sieve(tmp_path, "thriftserver", "stop", "--port", str(port))
