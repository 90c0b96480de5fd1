"""With and without an index, DELETE, UPDATE and MERGE write the same rows and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from spark_session import Lab

pytestmark = pytest.mark.iceberg

STATEMENTS = (
    "DELETE FROM {t} WHERE id IN (3, 42, 43)",
    "UPDATE {t} SET v = 'u' WHERE id BETWEEN 20 AND 25",
    "UPDATE {t} SET id = id + 1000 WHERE v IN (SELECT v FROM {t} WHERE id = 77)",
    "DELETE FROM {t} WHERE id = (SELECT max(id) FROM {t} WHERE id < 90)",
    "MERGE INTO {t} t USING (SELECT explode(array(5, 55, 500)) id) s ON t.id = s.id "  # noqa: ISC004
    "WHEN MATCHED AND s.id = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')",
    "MERGE INTO {t} t USING (SELECT 60L id) s ON t.id = s.id AND t.id > 50 "  # noqa: ISC004
    "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED BY SOURCE AND t.id = 61 THEN DELETE",
    "MERGE INTO {t} t USING (SELECT * FROM VALUES (7L, 'i'), (700L, 'i') AS x(id, v)) s "  # noqa: ISC004
    "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} t USING (SELECT * FROM VALUES (8L, 'i'), (800L, 'i'), "  # noqa: ISC004
    "(801L, 'j') AS x(id, v)) s ON t.id = s.id WHEN NOT MATCHED AND s.v = 'j' "
    "THEN INSERT (id, v) VALUES (s.id, 'first') "
    "WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO {t} SELECT 900L, 'k' WHERE NOT EXISTS (SELECT 1 FROM {t} WHERE id = 900)",
    "DELETE FROM {t} WHERE id >= 1000",
)
OWN = ("spark.app.id", "app-id", "size")
"""Words in keys of a snapshot's summary. The values of these keys differ between runs."""


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks every skipped file."""
    with namespace(lab, "spark_catalog.writes"), lab.settings(AUDITED):
        yield


def summary(lab: Lab, name: str) -> tuple[str, dict[str, Any]]:
    """The operation and the summary of a table's newest snapshot."""
    ((operation, found),) = lab.sql(
        f"SELECT operation, summary FROM spark_catalog.writes.{name}.snapshots "
        "ORDER BY committed_at DESC LIMIT 1"
    )
    return operation, {k: v for k, v in found.items() if not any(word in k for word in OWN)}


def files_skipped(lab: Lab) -> int:
    """The number of files that indexes have skipped since the driver's start."""
    rows = lab.sql("SELECT * FROM sieve_status()")
    return next(int(value) for counter, _, value in rows if counter == "files_skipped")


@pytest.mark.parametrize(
    ("version", "mode"), [*product([2, 3], ["copy-on-write", "merge-on-read"])]
)
def test_the_same_commits(lab: Lab, version: int, mode: str) -> None:
    """Each statement commits the same changes as on a table without an index."""
    for name in ("t", "u"):
        create(lab, name, format__version=version, write_delete_mode=mode,
               write_update_mode=mode, write_merge_mode=mode)  # fmt: skip
        insert(lab, name=name)
    lab.sql("CREATE SIEVE INDEX ON t (id, v)")
    for number, statement in enumerate(STATEMENTS):
        if number % 3 == 2:
            lab.sql("REFRESH SIEVE INDEX ON t")
        for name in ("t", "u"):
            lab.sql(statement.format(t=name))
        assert summary(lab, "t") == summary(lab, "u"), statement
        rows = [sorted(lab.sql(f"SELECT * FROM {name}")) for name in ("t", "u")]
        assert rows[0] == rows[1], statement


def test_rollback_restores_rows_deleted_before_the_build(lab: Lab) -> None:
    """After a rollback, queries find rows that were deleted before the build of the index."""
    create(lab, write_delete_mode="merge-on-read")
    insert(lab)
    ((first,),) = lab.sql("SELECT snapshot_id FROM spark_catalog.writes.t.snapshots")
    lab.sql("DELETE FROM t WHERE id IN (42, 43, 44)")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 0
    sql = f"SELECT * FROM t VERSION AS OF {first} WHERE id = 43"
    assert lab.check(sql, exactly=1).rows.total() == 1
    lab.sql(f"CALL spark_catalog.system.rollback_to_snapshot('writes.t', {first})")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 1


def test_copy_on_write_skips_files_in_its_search(lab: Lab) -> None:
    """While a copy-on-write statement searches for files to rewrite, it skips files."""
    create(lab, write_delete_mode="copy-on-write", write_merge_mode="copy-on-write")
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")

    before = files_skipped(lab)
    lab.sql("DELETE FROM t WHERE id = 42")
    assert files_skipped(lab) - before == 9
    operation, found = summary(lab, "t")
    assert (operation, found["deleted-data-files"], found["added-records"]) == (
        "overwrite",
        "1",
        "9",
    )


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_insert_only_merge_skips_files_without_a_match(lab: Lab, mode: str) -> None:
    """A MERGE that only inserts reads only the files that can match a row of the source."""
    create(lab, write_merge_mode=mode)
    insert(lab)
    create(lab, "s")
    lab.sql(
        "INSERT INTO s SELECT /*+ COALESCE(1) */ * FROM VALUES (42, 'n'), (43, 'n'), (500, 'n')"
    )
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    merge = "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"

    (scan,) = [row for row in lab.explain(merge) if row["table"].endswith(".t")]
    assert (scan["files_total"], scan["reasons"]) == (10, "join-too-costly: 10")
    with lab.setting("spark.sieve.join.pruning", "always"):
        (scan,) = [row for row in lab.explain(merge) if row["table"].endswith(".t")]
        assert (
            "IN (keys of spark_catalog.writes.s, read for them, at run time)" in scan["predicate"]
        )
        before = files_skipped(lab)
        lab.sql(merge)
        assert files_skipped(lab) - before == 9
    operation, found = summary(lab, "t")
    assert (operation, found["added-records"]) == ("append", "1")
    assert lab.check("SELECT * FROM t WHERE id IN (42, 43, 500)").rows.total() == 3
    # This MERGE reads all files, because it changes target rows without a matching source row.
    by_source = (
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'x'"
    )
    (scan,) = [row for row in lab.explain(by_source) if row["table"].endswith(".t")]
    assert scan["files_read"] == scan["files_total"]
    assert scan["reasons"]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_merge_of_one_constant_row_skips_files(lab: Lab, mode: str) -> None:
    """A MERGE of one constant row searches only the files that can contain the row's key.

    Spark turns the condition on the constant key into a filter. The filter stays above the
    projection in which MERGE numbers rows.
    """
    create(lab, write_merge_mode=mode)
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")

    for insert_too in ("", " WHEN NOT MATCHED THEN INSERT *"):
        lab.sql("REFRESH SIEVE INDEX ON t")
        before = files_skipped(lab)
        lab.sql(
            "MERGE INTO t USING (SELECT 42L AS id, 'm' AS v) s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET t.v = s.v{insert_too}"
        )
        assert files_skipped(lab) - before >= 9
        assert lab.check("SELECT * FROM t WHERE id = 42").rows == {"(42, 'm')": 1}
