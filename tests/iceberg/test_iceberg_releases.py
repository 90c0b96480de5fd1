"""Tests releases of Iceberg without a method that Sieve calls."""

from __future__ import annotations

import contextlib
import sys
import zipfile
from pathlib import Path

import iceberg_jars
import pytest
from iceberg_tables import NO_BOUNDS

sys.path.insert(0, str(Path(__file__).parents[1] / "fault"))

from driver import DriverError, driver

pytestmark = pytest.mark.iceberg


def without(method: str, jar: Path, to: Path) -> None:
    """Copies Iceberg's jar, and renames one method in all declarations and calls."""
    other = method[:-1] + "X"
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".class") and "/shaded/" not in name:
                data = data.replace(method.encode(), other.encode())
            new.writestr(name, data)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a catalog that contains the indexed table `t` and its twin `u`."""
    folder = tmp_path_factory.mktemp("releases")
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in NO_BOUNDS.items())
    with driver(folder / "driver", **iceberg_jars.conf(folder / "own")) as it:
        it.sql("CREATE NAMESPACE files.db")
        for name in ("t", "u"):
            it.sql(f"CREATE TABLE files.db.{name} (id BIGINT, v STRING) USING iceberg "
                   f"TBLPROPERTIES ({listed}, 'write.delete.mode' = 'merge-on-read')")  # fmt: skip
            it.sql(f"INSERT INTO files.db.{name} SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, "
                   "concat('v', id % 7) FROM range(100)")  # fmt: skip
        it.sql("CREATE SIEVE INDEX ON files.db.t (id)")
        assert it.files("SELECT * FROM files.db.t WHERE id = 41") == 1
    return folder / "own"


METHODS = ["resetTasks", "splitOffsets", "snapshotId"]


@pytest.mark.parametrize("k", range(len(METHODS)), ids=METHODS.__getitem__)
def test_a_missing_method(k: int, warehouse: Path, tmp_path: Path) -> None:
    """If Iceberg lacks a method, queries and writes stay right, and the log names the method."""
    changed = tmp_path / "iceberg.jar"
    without(METHODS[k], iceberg_jars.jar(), changed)
    conf = iceberg_jars.conf(warehouse)
    for key in ("spark.jars", "spark.driver.extraClassPath"):
        conf[key] = conf[key].replace(str(iceberg_jars.jar()), str(changed))
    first = 10 * k
    writes = (
        f"DELETE FROM {{t}} WHERE id IN ({first + 3}, {first + 42})",
        (
            f"MERGE INTO {{t}} t USING (SELECT explode(array({first + 4}L, {first + 900}L)) id) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm' "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        ),
    )
    queries = (
        f"SELECT * FROM {{t}} WHERE id IN ({first + 41}, {first + 42}, {first + 4})",
        "SELECT max(id) FROM {t}",
        "SELECT * FROM {t} ORDER BY id LIMIT 5",
    )
    with driver(tmp_path / "driver", **conf) as it:
        for statement in (*queries, *writes, *queries):
            own, other = (
                sorted(map(repr, it.sql(statement.format(t=f"files.db.{name}")))) for name in "tu"
            )
            assert own == other, statement
        with contextlib.suppress(DriverError):
            it.sql("REFRESH SIEVE INDEX ON files.db.t")
        assert it.logged(METHODS[k])
