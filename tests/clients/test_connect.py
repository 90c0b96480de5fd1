"""Two clients without Spark and Sieve run the code on the page about Spark Connect."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site

pytestmark = pytest.mark.tools

HOME = Path(__file__).resolve().parents[2]
PYTHON = HOME / "build" / "clients" / "bin" / "python"
PAGE = HOME / "docs" / "recipes" / "connect.md"

# This code replaces the lines of the page that create a session.
BEFORE = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("{url}").getOrCreate()
spark.sql(f"CREATE DATABASE {{sys.argv[1]}}")
spark.sql(f"USE {{sys.argv[1]}}")
"""
AFTER = """
query = "SELECT * FROM visits WHERE id IN (77, 5000) ORDER BY id"
spark.sql("INSERT INTO visits VALUES (5000, 1)")
on = spark.sql(query).collect()
(refreshed,) = spark.sql("CALL sieve.refresh(table => 'visits')").collect()
spark.conf.set("spark.sieve.enabled", sys.argv[2])
(scan,) = spark.sql(f"EXPLAIN SIEVE {query}").collect()
assert on == spark.sql(query).collect(), on
try:
    spark.sql("CREATE SIEVE INDEX ON visits (nope)").collect()
except Exception as error:
    failed = "SIEVE_UNKNOWN_COLUMN" in str(error)
picture = spark.sql("SELECT png FROM sieve_inspect('visits', 'id_sieve')").first().png
drawn = bytes(picture).startswith(b"\\x89PNG")
print(len(on), refreshed.change, scan.files_read, scan.reasons, failed and drawn)
"""


def test_two_clients_at_once(site: Site) -> None:
    """Two concurrent clients have separate databases and settings; both print the page's output."""
    if not PYTHON.exists():
        pytest.fail("run `make test-clients`, which installs clients")
    blocks = re.findall(r"```(?:python)?\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    _, code, printed, more, printed_by_more = map(textwrap.dedent, blocks)
    address = f"sc://localhost:{site.other_port}"
    program = BEFORE.format(url=address) + code.replace("sc://localhost:15002", address)
    program += more + AFTER
    started = site.sieve(
        *("connect", "start", "--port", str(site.other_port)),
        *(*site.metastore_option, "--conf", "spark.sql.shuffle.partitions=2"),
        *("--conf", "spark.ui.enabled=false"),
    )
    assert started.split() == [address]
    clients: dict[str, subprocess.Popen[str]] = {}
    try:
        ends = {"true": "2 refreshed 2 None True", "false": "2 refreshed 21 disabled: 21 True"}
        for enabled in ends:
            clients[enabled] = subprocess.Popen(
                [PYTHON, "-c", program, f"of_{enabled}", enabled],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        for enabled, client in clients.items():
            output, errors = client.communicate(timeout=240)
            assert client.returncode == 0, errors[-3000:]
            assert output == f"{printed}{printed_by_more}{ends[enabled]}\n"
    finally:
        for client in clients.values():
            client.kill()
        stopped = site.sieve("connect", "stop", "--port", str(site.other_port))
    assert stopped == f"Stopped the connect-server on port {site.other_port}.\n"
