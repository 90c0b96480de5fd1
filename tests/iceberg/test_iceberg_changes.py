"""DELETE, UPDATE and MERGE read only the files that can contain rows to change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from spark_session import Lab

pytestmark = pytest.mark.iceberg

MATCHED = "MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
CHANGES = {
    "DELETE FROM {t} WHERE id = 42": 1,
    "UPDATE {t} SET v = 'u' WHERE id BETWEEN 58 AND 61": 2,
    "DELETE FROM {t} WHERE id IN (SELECT id FROM s)": 3,
    "UPDATE {t} SET v = 'u' WHERE id = (SELECT min(id) FROM s)": 1,
    MATCHED: 3,
    f"{MATCHED} WHEN NOT MATCHED THEN INSERT *": 3,
    "MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED AND t.v = 'v0' THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)": 3,
    "MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *": 3,
    "MERGE INTO {t} t USING s ON t.id = s.id AND t.id < 50 WHEN MATCHED THEN DELETE": 2,
    "MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id = 61 "
    "THEN DELETE": 20,
}
"""For each statement, how many of the 20 files it searches."""
COPY, MERGE = "copy-on-write", "merge-on-read"


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; audits check skipped files, and joins supply keys."""
    always = {"spark.sieve.join.pruning": "always"}
    with namespace(lab, "spark_catalog.changes"), lab.settings(AUDITED | always):
        lab.sql(
            "CREATE TABLE s USING iceberg AS SELECT explode(array(3L, 42L, 77L, 5000L)) id, 'm' v"
        )
        yield


def tables(lab: Lab, version: int, mode: str) -> None:
    """Creates the table `t` with an index, and the table `u` without an index."""
    for name in ("t", "u"):
        create(lab, name, format__version=version, write_delete_mode=mode,
               write_update_mode=mode, write_merge_mode=mode)  # fmt: skip
        insert(lab, name=name, files=20)
    lab.sql("CREATE SIEVE INDEX ON t (id)")


def counts(lab: Lab) -> dict[str, int]:
    """The driver's status counters by reason. A counter without a reason has its name as key."""
    return {row[1] or row[0]: row[2] for row in lab.sql("SELECT * FROM sieve_status()")}


def changed(lab: Lab, name: str) -> tuple[object, ...]:
    """The rows of a table, with the operation and the changes of the table's newest snapshot."""
    ((operation, found),) = lab.sql(
        f"SELECT operation, summary FROM spark_catalog.changes.{name}.snapshots "
        "ORDER BY committed_at DESC LIMIT 1"
    )
    files = {k: v for k, v in found.items() if k.endswith(("files", "records", "deletes"))}
    return sorted(lab.sql(f"SELECT * FROM {name}"), key=repr), operation, files


@pytest.mark.parametrize(
    ("version", "mode", "broadcast"), [(2, COPY, "10m"), (2, MERGE, "-1"), (3, MERGE, "10m")]
)
def test_files_of_a_statement(lab: Lab, version: int, mode: str, broadcast: str) -> None:
    """Each statement skips files, and commits the same changes as on a table without an index."""
    tables(lab, version, mode)
    ((first,), (other,)) = (
        lab.sql(f"SELECT snapshot_id FROM spark_catalog.changes.{name}.snapshots") for name in "tu"
    )
    with lab.setting("spark.sql.autoBroadcastJoinThreshold", broadcast):
        for statement, files in CHANGES.items():
            before = counts(lab)
            lab.sql(statement.format(t="t"))
            after = counts(lab)
            assert after["files_skipped"] - before["files_skipped"] == 20 - files, statement
            lab.sql(statement.format(t="u"))
            assert changed(lab, "t") == changed(lab, "u"), statement
            for name, snapshot in (("t", first[0]), ("u", other[0])):
                lab.sql(
                    f"CALL spark_catalog.system.rollback_to_snapshot('changes.{name}', {snapshot})"
                )


def test_a_copy_on_write_statement_rewrites_files_with_a_match(lab: Lab) -> None:
    """A copy-on-write MERGE of keys in three of twenty files replaces only these three files."""
    tables(lab, 2, COPY)
    lab.sql(f"{MATCHED} WHEN NOT MATCHED THEN INSERT *".format(t="t"))
    ((found,),) = lab.sql(
        "SELECT summary FROM spark_catalog.changes.t.snapshots ORDER BY committed_at DESC LIMIT 1"
    )
    assert (found["deleted-data-files"], found["added-records"]) == ("3", "31")


def test_a_broadcast_source_supplies_its_keys(lab: Lab) -> None:
    """A merge-on-read MERGE gets join keys from the source's broadcast, without a separate job.

    Iceberg's join hint does not affect this broadcast; it prevents only a broadcast of the target.
    """
    tables(lab, 2, MERGE)
    merge = MATCHED.replace("USING s ON", "USING (SELECT id, v FROM s) s ON").format(t="t")
    with lab.setting("spark.sieve.join.pruning", "auto"):
        (scan,) = [row for row in lab.explain(merge) if row["table"].endswith(".t")]
        assert "id IN (keys of spark_catalog.changes.s at run time)" in scan["predicate"]
        before = counts(lab)["files_skipped"]
        lab.sql(merge)
        assert counts(lab)["files_skipped"] - before == 17


@pytest.mark.parametrize(("mode", "broadcast"), [*product([COPY, MERGE], ["10m", "-1"])])
def test_reasons(lab: Lab, mode: str, broadcast: str) -> None:
    """If a statement reads all files, EXPLAIN SIEVE and the status counters name the reason."""
    tables(lab, 2, mode)

    def reasons(statement: str) -> list[str | None]:
        rows = lab.explain(statement.format(t="t"))
        return [row["reasons"] for row in rows if row["table"] == "spark_catalog.changes.t"]

    again = ["found-file: 20"] if mode == COPY else []
    with lab.setting("spark.sql.autoBroadcastJoinThreshold", broadcast):
        assert reasons("DELETE FROM {t} WHERE id = 42") == [
            None, *(["found-file: 1"] if mode == COPY else [])]  # fmt: skip
        by_source = f"{MATCHED} WHEN NOT MATCHED BY SOURCE THEN DELETE"
        assert reasons(by_source) == ["no-predicate: 20"]
        before = counts(lab)
        lab.sql(by_source.format(t="t"))
        assert counts(lab)["no-predicate"] > before["no-predicate"]
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.sql("DROP TABLE t")
        lab.sql("DROP TABLE u")
        tables(lab, 2, mode)
        # A copy-on-write statement finds its files by a subquery. A subquery starts no job for join
        # keys.
        refused = mode == COPY and broadcast == "-1"
        why = "join-not-repeatable: 20" if refused else None
        assert reasons(MATCHED) == [why, *again]
