"""Tests the client impyla in an environment without Spark and Sieve."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from client_smoke import check, tour

if TYPE_CHECKING:
    from conftest import Site

pytestmark = pytest.mark.tools

PYTHON = Path(__file__).resolve().parents[2] / "build" / "clients" / "bin" / "python"

SCRIPT = """
import json, sys
from impala.dbapi import connect

cursor = connect("localhost", int(sys.argv[1]), auth_mechanism="PLAIN").cursor()
create, *rest = json.loads(sys.argv[2])
cursor.execute(create)
lines = []
for statement in rest:
    cursor.execute(statement)
    lines += [list(map(str, row)) for row in cursor.fetchall()]
print(json.dumps(lines))
"""


def test_impyla(site: Site) -> None:
    """The client impyla creates, uses, explains, shows and drops an index."""
    if not PYTHON.exists():
        pytest.fail("run `make test-clients`, which installs clients")
    words = [PYTHON, "-c", SCRIPT, str(site.thrift_port), json.dumps(tour("by_impyla"))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    check(json.loads(done.stdout))
