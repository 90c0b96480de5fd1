"""A CREATE that fails: neither the metastore nor the store shows that it ever began."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from sieve.errors import SieveError
from tests.fake_spark import MetastoreFault, Session, Warehouse, registrations, without_spark

CREATE = "CREATE SIEVE INDEX ON t (id)"


def test_a_create_that_cannot_register_deletes_its_files(tmp_path: Path) -> None:
    """All versions are complete by then; the same statement works once the metastore answers."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1, 2], [3]])
    built: list[Path] = []

    def refuse(what: str) -> None:
        if what.startswith("before metastore"):
            built.extend(warehouse.root.glob("*/versions/1.json"))
            raise MetastoreFault("the metastore hung up")

    with without_spark():
        with pytest.raises((SieveError, PySparkException)):
            Session(warehouse, refuse).sql(CREATE)
        assert built
        assert list(warehouse.root.iterdir()) == []
        assert registrations(warehouse.properties("t")) == {}
        Session(warehouse).sql(CREATE)
    assert len(registrations(warehouse.properties("t"))) == 1
