"""Tests the tab "Sieve" of the Thrift server's web UI in headless Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from thrift_session import thrift_session

if TYPE_CHECKING:
    from conftest import Site

pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="apt-get install chromium"),
]

HOSTILE = "<script>document.title='owned'</script>"


def browse(url: str, profile: Path, *options: str) -> str:
    """The HTML source of a page, after a browser has run the page's scripts."""
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}")
    done = subprocess.run(
        ["chromium", *quiet, "--window-size=1200,1400", *options, "--dump-dom", url],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_users_without_access_to_the_ui_do_not_see_the_tab(site: Site) -> None:
    """Spark's access control lists protect the tab in the same way as the page of jobs."""
    for page in ("jobs", "sieve"):
        address = f"http://localhost:{site.ui_port}/{page}/"
        assert urlopen(address, timeout=30).status == 200
        with pytest.raises(HTTPError, match="403"):
            urlopen(f"{address}?doAs=stranger", timeout=30)


def test_the_tab_in_a_browser(site: Site, tmp_path: Path) -> None:
    """The tab shows the index and the scan; a script in a column's name appears as plain text."""
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE web_ui")
        cursor.execute(
            f"CREATE TABLE web_ui.t USING parquet AS SELECT id AS `{HOSTILE}` "
            "FROM range(0, 100000, 1, 10)"
        )
        cursor.execute(f"CREATE SIEVE INDEX named ON web_ui.t (`{HOSTILE}`)")
        cursor.execute(f"SELECT * FROM web_ui.t WHERE `{HOSTILE}` = 86420")
        assert cursor.fetchall() == [(86420,)]
    address = f"http://localhost:{site.ui_port}/sieve/"
    shown = browse(address, tmp_path / "profile").replace("<wbr>", "")
    rows = [re.findall(r"<td>(.*?)</td>", row, re.DOTALL) for row in shown.split("<tr>")]
    (index,) = (row for row in rows if row[:2] == ["web_ui.t", "named"])
    assert [unescape(cell) for cell in index[2:7]] == [
        f"{HOSTILE} bigint", "ready", index[4], "10", "100.0%",
    ]  # fmt: skip
    scan = next(row for row in rows if row[2:3] == ["spark_catalog.web_ui.t"])
    assert unescape(scan[3]).endswith(f"(`{HOSTILE}` = ?)</code>")
    assert scan[4:7] == ["named@1", "1 of 10", "1 of 10"]
    assert "86420" not in shown
    assert "<title>owned" not in shown
    (number,) = re.findall(r'href="\.\./SQL/execution/\?id=(\d+)"', scan[1])
    assert "number of files skipped" in browse(
        f"http://localhost:{site.ui_port}/SQL/execution/?id={number}", tmp_path / "profile"
    )
