"""A refresh lists only the partitions that new commits in the timeline have changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bundle
import pytest
import tables
from spark_session import Lab

from sieve.metadata.commit import newest
from sieve.metadata.manifest import Manifest
from sieve.metadata.timestamps import ms_since_epoch
from sieve.reader.version_reader import read_locations
from sieve.storage.local import LocalStore
from sieve.tables.hudi import list_changed

pytestmark = pytest.mark.hudi

KINDS = ["cow", "mor"]
PARTS = 4
IN_PART = not bundle.VERSION.startswith("1.0.")
"""Whether this version of Hudi can list only some of the partitions."""


def version(lab: Lab) -> tuple[Manifest, set[tuple[str, int, int]]]:
    """The newest version's manifest, and each slice's path, length and modification time."""
    folder = lab.facts("amount_sieve")["path"]
    manifest = newest(LocalStore(), folder)
    assert manifest is not None
    known = read_locations(LocalStore(), folder, manifest)
    facts = zip(known.paths, known.lengths.tolist(), known.mtimes.tolist(), strict=True)
    return manifest, set(facts)


def access(lab: Lab) -> Any:
    """The JVM object through which a new statement would access the table."""
    jvm: Any = lab.spark._jvm
    resolve = jvm.org.apache.spark.sql.sieve.statements.Tables.resolve
    name = jvm.java.util.ArrayList()
    name.add("t")
    return resolve(lab.spark._jsparkSession, name)


def in_full(lab: Lab) -> set[tuple[str, int, int]]:
    """The path, length and modification time of each slice, from a full listing."""
    return {tuple(row) for row in json.loads(access(lab).list())}


def listed(lab: Lab) -> set[int] | None:
    """The partitions (values of `part`) that a refresh would list now; None means all."""
    found = list_changed(access(lab), ms_since_epoch(version(lab)[0].instant))
    if found is None:
        return None
    folders, files = found
    assert {path.rpartition("/")[0] for path, _, _ in json.loads(files)} <= folders
    return {int(folder.rpartition("=")[2]) for folder in folders}


def refreshed(lab: Lab, expected: set[int] | None) -> None:
    """Asserts that REFRESH lists only the ``expected`` partitions, and finds all slices."""
    lab.sql("REFRESH TABLE t")
    assert listed(lab) == (expected if IN_PART else None)
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert version(lab)[1] == in_full(lab)
    lab.check("SELECT * FROM t WHERE amount = 100 * 7919 % 1000")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def indexed(lab: Lab, kind: str, **properties: str) -> None:
    """Makes one slice of a hundred keys in each partition, and an index on `amount`."""
    tables.create(lab, kind, parts=True, **properties)
    tables.fill(lab, 0, 100 * PARTS)
    lab.sql("CREATE SIEVE INDEX ON t (amount)")


@pytest.mark.skipif(not IN_PART, reason="Hudi 1.0 has no such way to list")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_refresh_does_not_list_unchanged_partitions(lab: Lab, kind: str, metadata: str) -> None:
    """A refresh does not list the folder of an unchanged partition.

    The test moves an unchanged partition's folder away during the refresh.
    """
    with lab.database("hudi_not_looked_at"):
        indexed(lab, kind, hoodie__metadata__enable=metadata)
        lab.sql("UPDATE t SET amount = 5000 WHERE id = 250")
        lab.sql("REFRESH TABLE t")
        (folder,) = (p for p in tables.folder(lab).iterdir() if p.name == "part=0")
        aside = folder.rename(Path(f"{folder.parent}.aside"))
        try:
            assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1] == 2
        finally:
            aside.rename(folder)
        assert version(lab)[1] == in_full(lab)
        lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def cluster(lab: Lab) -> None:
    """Runs a clustering, which rewrites all rows into new files."""
    lab.sql("CALL run_clustering(table => 't', order => 'amount')")


def compact(lab: Lab) -> None:
    """Logs an update in one partition, and then compacts the updated slice."""
    lab.sql("UPDATE t SET amount = 7000 WHERE id = 20")
    tables.compact(lab)


def roll_back(lab: Lab) -> None:
    """Updates a row, and rolls back this commit."""
    lab.sql("UPDATE t SET amount = 8000 WHERE id = 120")
    lab.sql(f"CALL rollback_to_instant(table => 't', instant_time => '{tables.instants(lab)[-1]}')")


def restore(lab: Lab) -> None:
    """Creates a savepoint, updates a row, and restores the savepoint."""
    lab.sql(f"CALL create_savepoint(table => 't', commit_time => '{tables.instants(lab)[-1]}')")
    saved = tables.instants(lab)[-1]
    lab.sql("UPDATE t SET amount = 9000 WHERE id = 220")
    lab.sql(f"CALL rollback_to_savepoint(table => 't', instant_time => '{saved}')")


def overwrite(lab: Lab) -> None:
    """Replaces the rows of one partition by a new row."""
    lab.sql("INSERT OVERWRITE t PARTITION (part = 1) SELECT 900, 77, 'x', 5")


STEPS: dict[str, tuple[Callable[[Lab], object], set[int] | None]] = {
    "update": (lambda lab: lab.sql("UPDATE t SET amount = 6000 WHERE id = 250"), {2}),
    "insert": (lambda lab: tables.fill(lab, 400, 450), {4}),
    "delete": (lambda lab: lab.sql("DELETE FROM t WHERE id IN (5, 105)"), {0, 1}),
    "overwrite": (overwrite, {1}),
    "drop partition": (lambda lab: lab.sql("ALTER TABLE t DROP PARTITION (part = 3)"), {3}),
    "clustering": (cluster, {0, 1, 2, 4}),
    "compaction": (compact, {0}),
    "nothing": (lambda _: None, set()),
    "rollback": (roll_back, None),
    "restore": (restore, None),
    "first after it": (lambda lab: lab.sql("UPDATE t SET amount = 1 WHERE id = 250"), None),
    "next after it": (lambda lab: lab.sql("UPDATE t SET amount = 2 WHERE id = 250"), {2}),
}
"""For each command, the partitions that the next refresh lists. None means all partitions."""


@pytest.mark.parametrize("kind", KINDS)
def test_folders_listed_by_refresh_after_each_command(lab: Lab, kind: str) -> None:
    """After most commands, a refresh lists only the changed partitions.

    After all commands, a refresh finds the same slices as a full listing.
    """
    with lab.database("hudi_listed"):
        indexed(lab, kind)
        for name, (step, expected) in STEPS.items():
            if (name, kind) != ("compaction", "cow"):
                step(lab)
                refreshed(lab, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_table_is_listed_whole(lab: Lab, kind: str) -> None:
    """After TRUNCATE, a refresh lists all partitions.

    The timeline no longer contains the indexed commit.
    """
    with lab.database("hudi_anew"):
        indexed(lab, kind)
        lab.sql("TRUNCATE TABLE t")
        tables.fill(lab, 0, 200)
        refreshed(lab, None)


def test_a_table_without_partitions_is_listed_whole(lab: Lab) -> None:
    """For a table without partitions, a refresh lists the only folder."""
    with lab.database("hudi_flat"):
        tables.create(lab, "cow")
        tables.fill(lab, 0, 100)
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        lab.sql("UPDATE t SET amount = 5000 WHERE id = 50")
        refreshed(lab, None)


def test_archived_commit_causes_a_full_listing(lab: Lab) -> None:
    """If Hudi has archived the commit that the index reflects, a refresh lists all partitions."""
    with lab.database("hudi_archived"):
        indexed(
            lab, "cow", hoodie__keep__min__commits="2", hoodie__keep__max__commits="3",
            hoodie__clean__commits__retained="1",
        )  # fmt: skip
        for number in range(7):
            lab.sql(f"UPDATE t SET amount = {5000 + number} WHERE id = 250")
        refreshed(lab, None)
        # The timeline still contains the commit that the index reflects, but Hudi may have archived
        # later commits.
        lab.sql("UPDATE t SET amount = 6000 WHERE id = 250")
        refreshed(lab, None)
