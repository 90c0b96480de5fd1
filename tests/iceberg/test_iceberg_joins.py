"""The keys in a broadcast select the files to read of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from spark_session import Lab

pytestmark = pytest.mark.iceberg

JOIN = "SELECT /*+ BROADCAST(d) */ t.id, t.v FROM t JOIN d ON t.id = d.id WHERE d.k = 3"


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """A large table with an index, and a small table of one file."""
    with namespace(lab, "spark_catalog.joins"), lab.settings(AUDITED):
        create(lab, more="PARTITIONED BY (truncate(1, v))", write_distribution__mode="none")
        insert(lab, files=24)
        create(lab, "d", "id BIGINT, k INT")
        lab.sql("INSERT INTO d SELECT /*+ COALESCE(1) */ * FROM "
                "VALUES (42, 3), (43, 3), (77, 4), (NULL, 3), (1000, 3)")  # fmt: skip
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        yield


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_keys_of_a_broadcast_pick_files(lab: Lab, adaptive: str) -> None:
    """Inner and semi joins, and unions below them, read only the files that contain the keys."""
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        lab.check(JOIN, exactly=2)
        lab.check("SELECT * FROM t WHERE id IN (SELECT id FROM d WHERE k = 4)", exactly=2)
        lab.check(f"{JOIN} AND t.v = 'v0'", exactly=2)
        lab.check("SELECT /*+ BROADCAST(d) */ u.id FROM (SELECT id FROM t UNION ALL "
                  "SELECT id + 0 FROM t WHERE id > 100) u JOIN d ON u.id = d.id WHERE d.k = 4",
                  at_most=26)  # fmt: skip
        # No row of an empty side has a partner.
        lab.check("SELECT /*+ BROADCAST(d) */ t.id FROM t JOIN d ON t.id = d.id WHERE d.k = 9",
                  at_most=1)  # fmt: skip
        lab.check("SELECT /*+ BROADCAST(d) */ count(*) FROM t LEFT JOIN d ON t.id = d.id",
                  exactly=25)  # fmt: skip


def test_explain_names_the_keys(lab: Lab) -> None:
    """EXPLAIN SIEVE names the index and the table with the keys; the status counts the keys."""
    (scan,) = [row for row in lab.explain(JOIN) if row["table"].endswith(".t")]
    assert scan["indexes"] == "id_sieve@1"
    assert "IN (keys of spark_catalog.joins.d at run time)" in scan["predicate"]

    def received() -> int:
        return next(row[2] for row in lab.sql("SELECT * FROM sieve_status()")
                    if row[0] == "keys_received")  # fmt: skip

    before = received()
    lab.sql(JOIN)
    assert received() - before == 3
    with lab.setting("spark.sieve.join.pruning", "off"):
        lab.check(JOIN, exactly=25)
