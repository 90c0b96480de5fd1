"""Tests indexes of older and newer formats.

REFRESH rebuilds an index of an older format, and queries ignore an index of a newer format.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sieve.metadata.manifest import FORMAT
from tests.fake_scan import scan
from tests.fake_spark import Session, Warehouse, without_spark

(SAMPLE,) = (Path(__file__).parent / "format-2").iterdir()
"""An index of format 2 with two versions, as a release of this format wrote it."""


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A table with eight files of ten keys each."""
    made = Warehouse(tmp_path / "shop")
    made.create_table("t", [range(10 * k, 10 * k + 10) for k in range(8)])
    return made


def sealed(path: Path, body: Mapping[str, Any]) -> None:
    """Writes a manifest that includes its checksum."""
    text = json.dumps({k: v for k, v in body.items() if k != "checksum"}, separators=(",", ":"))
    seal = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(f'{text[:-1]},"checksum":"{seal}"}}')


def test_an_older_format_is_rebuilt_by_refresh(warehouse: Warehouse) -> None:
    """If an index has an older format, queries read every file and advise users to run REFRESH.

    REFRESH keeps the options, comment and name of the old index.

    Statements that only show an index also work for an older format.
    """
    with without_spark():
        Session(warehouse).sql("CREATE SIEVE INDEX ON t (id)")
        (folder,) = (path.parent for path in warehouse.root.glob("*/versions"))
        now = json.loads((folder / "versions/1.json").read_bytes())
        for kind in ("versions", "runs", "locations"):
            shutil.rmtree(folder / kind)
            shutil.copytree(SAMPLE / kind, folder / kind)
        of_table = ("index", "table", "name", "column", "fingerprint", "fingerprint_parts", "roots")
        for number in (1, 2):
            path = folder / f"versions/{number}.json"
            old = json.loads(path.read_bytes())
            assert old["format"] == 2
            sealed(path, old | {name: now[name] for name in of_table} | {"comment": "by id"})
        session = Session(warehouse)
        before = scan(warehouse, "t", 13)
        ((*_, state, _, _, _, _),) = session.sql("SHOW SIEVE INDEXES ON t")
        described = dict(session.sql("DESCRIBE SIEVE INDEX EXTENDED id_sieve ON t"))
        changes = [row[2] for row in session.sql("SHOW SIEVE VERSIONS ON t")]
        session.sql("REFRESH SIEVE INDEX ON t")
        after = scan(warehouse, "t", 13)
        session.sql("VACUUM SIEVE INDEX id_sieve ON t")
    assert (before.files, before.used, before.reasons) == (8, (), ("version-too-old",))
    assert "REFRESH SIEVE INDEX id_sieve" in state
    assert described["comment"] == "by id"
    assert changes == ["earlier format", "created"]
    assert (after.files, after.used) == (1, ("id_sieve@3",))
    made = json.loads((folder / "versions/3.json").read_bytes())
    assert (made["format"], made["comment"], made["next_options"]) == (FORMAT, "by id", None)
    assert (made["options"]["shape"], made["options"]["error"]) == ("sieve", 100)


def test_a_disabled_index_of_an_older_format_is_rebuilt_too(warehouse: Warehouse) -> None:
    """ALTER of an index in an older format makes an empty version, so REFRESH reads every file."""
    with without_spark():
        Session(warehouse).sql("CREATE SIEVE INDEX ON t (id)")
        (path,) = warehouse.root.glob("*/versions/1.json")
        sealed(path, json.loads(path.read_bytes()) | {"format": FORMAT - 1})
        Session(warehouse).sql("ALTER SIEVE INDEX id_sieve ON t DISABLE")
        Session(warehouse).sql("ALTER SIEVE INDEX id_sieve ON t ENABLE")
        before = scan(warehouse, "t", 13)
        Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
        after = scan(warehouse, "t", 13)
    assert (before.files, after.files, after.used) == (8, 1, ("id_sieve@4",))
    assert json.loads(path.with_name("4.json").read_bytes())["stats"]["files_total"] == 8


@pytest.mark.parametrize("later", [FORMAT + 1, 77])
def test_later_format_makes_queries_read_all_files(warehouse: Warehouse, later: int) -> None:
    """If a manifest has a newer format, queries read all files with the reason version-too-new."""
    with without_spark():
        Session(warehouse).sql("CREATE SIEVE INDEX ON t (id)")
        (path,) = warehouse.root.glob("*/versions/1.json")
        body = json.loads(path.read_bytes())
        later_version = {"format": later, "version": 2, "parent": body["id"], "id": "2" * 32}
        sealed(path.with_name("2.json"), body | later_version)
        found = scan(warehouse, "t", 13)
    assert (found.files, found.used, found.reasons) == (8, (), ("version-too-new",))
