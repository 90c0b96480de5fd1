"""Starts Superset by the steps of the recipe, and uses it in a browser over the Thrift server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ports import free_ports
from thrift_session import thrift_session

if TYPE_CHECKING:
    from conftest import Site

pytestmark = pytest.mark.tools

HOME = Path(__file__).resolve().parents[2]
TOOLS = HOME / "build" / "superset" / "bin"
PAGE = (HOME / "docs" / "recipes" / "superset.md").read_text(encoding="utf-8")
BROWSER = ("chromium", "chromedriver")

# The table has twenty files, sorted by arrival; one order in fifty arrives late.
ORDERS = """
CREATE TABLE superset_db.orders USING parquet AS
SELECT /*+ REPARTITION_BY_RANGE(20, arrived) */ id,
  date_add(DATE '2026-01-01', CAST(arrived DIV 3000 AS INT)) AS day, arrived, id % 997 AS amount
FROM (SELECT id, if(id % 50 = 7, id + 20000, id) AS arrived FROM range(0, 100000, 1, 4))
"""


def blocks(language: str) -> list[str]:
    """The code blocks of the recipe's page in one language."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^\1```", PAGE, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for _, marked, text in found if marked == language]


@pytest.fixture(scope="module")
def superset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a new Superset that the commands on the page have started."""
    if not TOOLS.exists():
        pytest.fail("run `make test-clients`, which installs Superset")
    if any(shutil.which(program) is None for program in BROWSER):
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    folder = tmp_path_factory.mktemp("superset")
    (config,) = blocks("python")
    (folder / "superset_config.py").write_text(config)
    (start,) = (block for block in blocks("") if "superset run" in block)
    (port,) = free_ports(1)
    start = start.replace("8088", str(port)).replace("superset run", "exec superset run")
    environ = os.environ | {
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        "SUPERSET_HOME": str(folder / "home"),
    }
    environ.pop("PYTHONPATH", None)
    (folder / "home").mkdir()
    log = folder / "log"
    with log.open("w") as output:
        server = subprocess.Popen(
            ["bash", "-ec", start],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + 300
        while not answers(f"http://localhost:{port}/health"):
            assert server.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.5)
        yield f"http://localhost:{port}"
    finally:
        server.kill()
        server.wait()


def answers(url: str) -> bool:
    """Returns whether a server replies with the status 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def test_statements_of_the_superset_page_work(site: Site, superset: str, tmp_path: Path) -> None:
    """The recipe's SQL works, SQL Lab shows indexes, and a chart of one week reads few files."""
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE superset_db")
        cursor.execute(ORDERS)
        cursor.execute("CREATE SIEVE INDEX ON superset_db.orders (id, day)")
        cursor.execute("CREATE VIEW superset_db.recent AS SELECT * FROM superset_db.orders")
    statements = [block.strip().removesuffix(";") for block in blocks("sql")]
    pictures = Path(os.environ.get("SIEVE_PICTURES", tmp_path))
    done = subprocess.run(
        [
            *(TOOLS / "python", Path(__file__).with_name("superset_browser.py"), superset),
            f"spark+sieve://localhost:{site.thrift_port}/superset_db",
            *(json.dumps(statements), pictures),
        ],
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    explained, refreshed, indexes, described = found["rows"]
    _, printed = (re.split(r" {2,}", line) for line in blocks("")[-1].splitlines())
    table = printed[0].replace("default", "superset_db")
    assert [list(map(str, row.values())) for row in explained] == [[table, *printed[1:]]]
    assert [row["change"] for row in refreshed] == ["unchanged"] * 2
    assert [(row["index"], row["state"]) for row in indexes] == [
        ("day_sieve", "ready"),
        ("id_sieve", "ready"),
    ]
    assert {"property": "column", "value": "id"} in described
    assert (found["indexes"], found["extra"]) == (["day_sieve", "id_sieve"], {})
    assert found["tables"] == [["orders", "table"], ["recent", "view"]]
    assert table in found["sql_lab"]
    assert found["chart"] == "A week"
    assert len(found["chart_rows"]) == 7
    (scan,) = found["chart_scan"]
    assert (scan["indexes"], scan["files_total"]) == ("day_sieve@1", 20)
    assert f"This one reads {scan['files_read']} files of 20" in PAGE
    for name in re.findall(r"\((superset-[a-z-]+)\.png\)", PAGE):
        assert (pictures / f"{name}.png").stat().st_size > 20_000
