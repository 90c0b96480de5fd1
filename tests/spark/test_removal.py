"""Users can remove Sieve by statements or by hand, as docs/operations.md describes."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from urllib.parse import urlparse

from spark_session import Lab

from sieve.metadata.manifest import FORMAT


def _table(lab: Lab) -> Path:
    """Creates a table of 8 files with an index; returns the folder of its database."""
    lab.spark.range(0, 8000, 1, 8).write.saveAsTable("t")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    database = lab.spark.catalog.currentDatabase()
    rows = {row[0]: row[1] for row in lab.sql(f"DESCRIBE DATABASE {database}")}
    return Path(urlparse(rows["Location"]).path)


def _properties(lab: Lab) -> str:
    return " ".join(row[0] for row in lab.sql("SHOW TBLPROPERTIES t"))


def _index_dir(root: Path) -> Path:
    (index,) = (root / ".sieve").iterdir()
    return index


def test_drop_leaves_an_empty_root(lab: Lab) -> None:
    """After DROP, no property of Sieve is on the table, and no file is in the root."""
    with lab.database("gone_by_drop"):
        folder = _table(lab)
        assert "sieve" in _properties(lab)
        lab.sql("DROP SIEVE INDEX id_sieve ON t")
        assert "sieve" not in _properties(lab)
        assert list((folder / ".sieve").iterdir()) == []
        lab.check("SELECT * FROM t WHERE id = 5", exactly=8)


def test_removal_by_hand_needs_no_sieve(lab: Lab) -> None:
    """ALTER TABLE UNSET and the deletion of the root folder remove all traces of Sieve."""
    with lab.database("gone_by_hand"):
        folder = _table(lab)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        shutil.rmtree(folder / ".sieve")
        assert lab.run("SELECT * FROM t WHERE id = 5").rows == {"(5,)": 1}
        lab.sql("ALTER TABLE t UNSET TBLPROPERTIES ('sieve.index.id_sieve')")
        assert "sieve" not in _properties(lab)
        assert lab.run("SELECT * FROM t WHERE id = 5").rows == {"(5,)": 1}
        assert lab.sql("SHOW SIEVE INDEXES") == []
        assert sorted(path.name for path in folder.iterdir()) == ["t"]
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


def test_queries_read_all_files_after_a_downgrade(lab: Lab) -> None:
    """If Sieve is downgraded, queries read all files until the index is built again."""
    with lab.database("gone_back"):
        versions = _index_dir(_table(lab)) / "versions"
        record = json.loads((versions / "1.json").read_bytes())
        del record["checksum"]
        body = json.dumps(
            record | {"format": FORMAT + 1, "version": 2}, separators=(",", ":")
        ).encode()
        mark = hashlib.sha256(body).hexdigest()
        (versions / "2.json").write_bytes(body[:-1] + f',"checksum":"{mark}"}}'.encode())
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 5")
        assert (scan["files_read"], scan["reasons"]) == (8, "version-too-new: 8")
        assert lab.run("SELECT * FROM t WHERE id = 5").rows == {"(5,)": 1}
        assert [row[6] for row in lab.sql("SHOW SIEVE INDEXES ON t")] == ["failed"]
        lab.sql("DROP SIEVE INDEX id_sieve ON t")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
