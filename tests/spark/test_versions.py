"""Tests old versions of an index, files that VACUUM deletes, and indexes of dropped tables."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from spark_session import Lab


def folder(lab: Lab, index: str = "id_sieve") -> Path:
    """The folder of the table's index."""
    told = lab.facts(index)
    return Path(told["path"].removeprefix("file:"))


def members(lab: Lab) -> tuple[int, int, int, int]:
    """Counts the index's runs, location-list parts, pending writes and manifests."""
    at = folder(lab)
    names = ("runs", "locations", "intents", "versions")
    return tuple(  # type: ignore[return-value]
        sum(1 for one in (at / name).iterdir() if not one.name.startswith(".")) for name in names
    )


def create(lab: Lab) -> None:
    """Creates a table of four files with ten keys each, with an index."""
    lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
    lab.sql("CREATE SIEVE INDEX ON t (id)")


@pytest.mark.long
def test_show_lists_the_change_of_each_version(lab: Lab) -> None:
    """SHOW lists the change that made each version; OPTIMIZE merges all runs into one run.

    VACUUM never deletes the current version of an index.
    """
    with lab.database("life"):
        create(lab)
        lab.sql("INSERT INTO t SELECT id FROM range(40, 50, 1, 1)")
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.sql("ALTER SIEVE INDEX id_sieve ON t DISABLE")
        lab.sql("ALTER SIEVE INDEX id_sieve ON t ENABLE")
        lab.sql("ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (budget = '2%')")
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1] == 6
        lab.sql("INSERT INTO t SELECT id FROM range(50, 60, 1, 1)")
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.sql("OPTIMIZE SIEVE INDEX ON t")[0][:3] == ("id_sieve", 8, 6)
        # OPTIMIZE does not change an index that has a single run without gaps.
        assert lab.sql("OPTIMIZE SIEVE INDEX id_sieve ON t")[0][:3] == ("id_sieve", 8, 6)
        told = lab.spark.sql("SHOW SIEVE VERSIONS ON t").collect()
        assert [(row["version"], row["change"], row["state"], row["runs"]) for row in told] == [
            (8, "rebuilt", "ready", 1),
            (7, "refreshed", "ready", 2),
            (6, "rebuilt", "ready", 1),
            (5, "options set", "ready", 2),
            (4, "enabled", "ready", 2),
            (3, "disabled", "disabled", 2),
            (2, "refreshed", "ready", 2),
            (1, "created", "ready", 1),
        ]
        assert {row["retained"] for row in told} == {"true"}
        assert told[0]["instant"] < told[0]["published"]
        assert members(lab) == (5, 5, 0, 8)
        assert lab.sql("VACUUM SIEVE INDEX ON t") == [("id_sieve", 0, 0, 0)]
        ((name, versions, files, size),) = lab.sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS")
        assert (name, versions) == ("id_sieve", 7)
        assert files >= 8
        assert size > 0
        assert members(lab) == (1, 1, 0, 8)
        told = lab.sql("SHOW SIEVE VERSIONS id_sieve ON t")
        assert [row[-1] for row in told] == ["true"] + ["false"] * 7
        lab.check("SELECT * FROM t WHERE id = 55", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert lab.sql("VACUUM SIEVE INDEX id_sieve ON t RETAIN 0 HOURS") == [("id_sieve", 0, 0, 0)]


def test_vacuum_deletes_the_run_of_a_dead_writer_after_a_day(lab: Lab) -> None:
    """A day after a writer died, VACUUM deletes the run that the writer left.

    A dead writer's run has a pending write, but no version contains the run.

    VACUUM keeps a file that has no pending write, even if no version contains the file.
    """
    with lab.database("dead_writer"):
        create(lab)
        at = folder(lab)
        (run,) = (at / "runs").iterdir()
        in_force = at / "intents" / f"run-{run.name}"
        for name in ("a" * 32, "b" * 32):
            (at / "runs" / name).mkdir()
            (at / "runs" / name / "part-0.parquet").write_bytes(b"half")
        claims = [at / "intents" / f"run-{'a' * 32}", at / "intents" / f"run-{'c' * 32}"]
        for claim in (*claims, in_force):
            claim.touch()
        assert lab.sql("VACUUM SIEVE INDEX ON t RETAIN 0 HOURS") == [("id_sieve", 0, 0, 0)]
        yesterday = time.time() - 86_500
        for claim in (*claims, in_force):
            os.utime(claim, (yesterday, yesterday))
        assert lab.sql("VACUUM SIEVE INDEX ON t") == [("id_sieve", 0, 1, 4)]
        assert not (at / "runs" / ("a" * 32)).exists()
        assert (at / "runs" / ("b" * 32)).exists()
        assert members(lab)[2] == 0
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


def test_vacuum_deletes_only_indexes_that_are_not_in_use(lab: Lab) -> None:
    """VACUUM deletes old indexes of dropped tables and dead statements, but no index in use."""
    with lab.database("orphaned"):
        create(lab)
        kept = folder(lab)
        root = kept.parent
        dead = root / "00000000-0000-4000-8000-00000000000d"
        (dead / "versions").mkdir(parents=True)
        (dead / "intent.json").write_bytes((kept / "intent.json").read_bytes())
        stranger = root / "00000000-0000-4000-8000-00000000000e"
        stranger.mkdir()
        # A writer may still be at work on this index, so VACUUM keeps the index for any RETAIN.
        assert lab.sql("VACUUM SIEVE INDEXES IN orphaned RETAIN 0 HOURS") == []
        yesterday = time.time() - 86_500
        os.utime(dead / "intent.json", (yesterday, yesterday))
        assert lab.sql("VACUUM SIEVE INDEXES IN orphaned") == [
            ("id_sieve", "t", "its CREATE did not come to an end", f"file:{dead}"),
        ]
        assert not dead.exists()
        assert stranger.exists()
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


def test_refresh_restores_a_lost_registration(lab: Lab) -> None:
    """If another tool removes the property of an index, REFRESH restores this property.

    VACUUM keeps the index.
    """
    with lab.database("lost_property"):
        create(lab)
        lab.sql("ALTER TABLE t UNSET TBLPROPERTIES ('sieve.index.id_sieve')")
        assert lab.sql("SHOW SIEVE INDEXES ON t") == []
        assert lab.sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS") == []
        assert lab.sql("REFRESH SIEVE INDEX id_sieve ON t")[0][:3] == ("id_sieve", 1, 4)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert lab.sql("SHOW SIEVE INDEXES ON t")[0][2] == "id_sieve"
