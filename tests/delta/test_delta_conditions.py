"""MERGE, UPDATE and DELETE skip files by conditions on the target, as EXPLAIN SIEVE predicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from delta_tables import NO_STATISTICS, VECTORS, create
from pyspark.errors import PySparkException
from spark_session import INTERPRETED, Lab
from test_delta_merge import assert_same_rows, merge

pytestmark = pytest.mark.delta

SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
COUNTERS = ("scans", "files_listed", "files_skipped", "scans_at_run_time")


@dataclass(frozen=True, slots=True)
class Case:
    """A statement, and the number of files that the first scan of its target reads.

    The target has eight files.

    Attributes:
        text: the statement.
        read: the number of files read if the keys of the source are unknown.
        keyed: the number of files read if Spark broadcasts the keys of the source.
    """

    text: str
    read: int
    keyed: int


ON = "MERGE INTO {t} t USING s ON t.k = s.k AND "
CASES = {
    "on": Case(ON + "t.k >= 70 WHEN MATCHED THEN UPDATE SET v = 'a'", 1, 1),
    "on-both": Case(ON + "t.k >= 70 AND t.k < s.k + 5 WHEN MATCHED THEN UPDATE SET v = 'b'", 1, 1),
    "on-in": Case(ON + "t.k IN (5, 73) WHEN MATCHED THEN DELETE", 2, 1),
    "on-none": Case(ON + "t.k > 1000 WHEN MATCHED THEN DELETE", 0, 0),
    "with-inserts": Case(
        ON + "t.k >= 70 WHEN MATCHED THEN UPDATE SET v = 'c' "
        "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k + 1000, 'c')",
        1,
        1,
    ),
    "inserts": Case(
        ON + "t.k >= 70 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k + 2000, 'd')", 1, 1
    ),
    # MERGE fails if a target row matches two source rows, even if no WHEN clause applies to the
    # target row. Any file can contain a row that matches twice. So the condition of a WHEN clause
    # skips no file.
    "when": Case(
        "MERGE INTO {t} t USING s ON t.k = s.k WHEN MATCHED AND t.k >= 70 THEN DELETE", 8, 2
    ),
    # With WHEN NOT MATCHED BY SOURCE, MERGE must read every row of the target.
    "by-source": Case(
        ON + "t.k >= 70 WHEN MATCHED THEN UPDATE SET v = 'e' "
        "WHEN NOT MATCHED BY SOURCE AND t.k < 5 THEN UPDATE SET v = 'f'",
        8,
        8,
    ),
    "update": Case("UPDATE {t} SET v = 'g' WHERE k >= 70", 1, 1),
    "delete": Case("DELETE FROM {t} WHERE k >= 75", 1, 1),
}


RUNS = [
    *(("vectors", "shuffled", name) for name in CASES),
    *(
        ("vectors", "broadcast", name)
        for name in ("on", "on-in", "on-none", "with-inserts", "when")
    ),
    *(("rewriting", "shuffled", name) for name in ("on", "with-inserts", "by-source")),
]
"""Each run names the way Delta deletes rows, the way Spark joins, and the case."""


@pytest.fixture
def tables(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Creates the indexed table `t`, the table `twin` without an index, and the source `s`.

    `t` and `twin` have eight files each; two files of each table contain keys of the source.
    """
    kind = getattr(request, "param", "vectors")
    own = VECTORS if kind == "vectors" else {"delta.enableDeletionVectors": "false"}
    with lab.database("conditions"), lab.settings(INTERPRETED):
        for table in ("t", "twin"):
            create(lab, table, "k BIGINT, v STRING", stats=NO_STATISTICS, own=dict(own))
            lab.sql(
                f"INSERT INTO {table} SELECT /*+ REPARTITION_BY_RANGE(8, id) */ id, 'old' "
                "FROM range(80)"
            )
        lab.sql(
            "CREATE TABLE s USING parquet AS SELECT /*+ COALESCE(1) */ k "
            "FROM VALUES (65L), (72L), (73L), (500L) AS s(k)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (k)")
        yield lab


def counted(lab: Lab) -> dict[str, int]:
    """The current values of this driver's scan counters that `COUNTERS` lists."""
    rows = lab.sql("SELECT counter, value FROM sieve_status()")
    return {name: int(value) for name, value in rows if name in COUNTERS}


@pytest.mark.parametrize(("tables", "join", "name"), RUNS, indirect=["tables"])
def test_conditions_on_the_target_skip_its_files(tables: Lab, join: str, name: str) -> None:
    """The first scan of the target skips as many files as EXPLAIN SIEVE predicts.

    On `t`, the statement leaves the same rows and returns the same counts as on `twin`.
    """
    case, lab = CASES[name], tables
    with lab.settings(SHUFFLED if join == "shuffled" else {}):
        rows = lab.explain(case.text.replace("{t}", "t"))
        said, *later = (row for row in rows if row["table"].endswith(".t"))
        before = counted(lab)
        assert merge(lab, case.text, "t") == merge(lab, case.text, "twin")
        run = {counter: value - before[counter] for counter, value in counted(lab).items()}
    assert_same_rows(lab, case.text)
    assert (said["files_total"], said["files_read"]) == (8, case.read)
    assert [(row["files_total"], row["indexes"], row["reasons"]) for row in later] == (
        [(case.read, None, f"found-file: {case.read}")] * len(later)
    )
    # Two statements read each file only once: a MERGE that only inserts, and a DELETE with deletion
    # vectors.
    again = case.read > 0 and name not in ("inserts", "delete")
    assert len(later) == again
    assert (run["scans"] > 1) == again
    if not case.read:
        # No source key is above 1000, so the join keys can make scans skip even more files.
        assert run["files_skipped"] == run["files_listed"]
        return
    keys = "at run time" in (said["predicate"] or "")
    assert keys == (run["scans_at_run_time"] > 0)
    read = case.keyed if keys else case.read
    # The first scan lists all files; later scans list only the files in which the first scan found
    # rows.
    assert run["files_skipped"] >= 8 - read
    if join == "shuffled" and name in ("on", "with-inserts", "when"):
        assert "join-not-repeatable" in said["reasons"]


@pytest.mark.parametrize("shuffled", [True, False], ids=["shuffled", "broadcast"])
@pytest.mark.parametrize(
    ("source", "condition", "reads"),
    [
        ("(SELECT k FROM t)", "t.k >= 65", [8, 2]),
        ("(SELECT k + 1 AS k FROM t WHERE k = 42)", "t.k >= 35", [1, 5]),
        ("(SELECT x.k FROM t x, (SELECT k FROM t WHERE k = 3) y)", "t.k >= 65", [8, 1, 2]),
    ],
    ids=["whole", "part", "product"],
)
def test_merge_into_itself_names_the_files_of_the_target(
    tables: Lab, shuffled: bool, source: str, condition: str, reads: list[int]
) -> None:
    """If the source of a MERGE also scans the target, EXPLAIN predicts the files of each scan.

    The second scan of the target reads only files that MERGE's first scan selected.
    """
    text = f"USING {source} b ON t.k = b.k AND {condition} WHEN MATCHED THEN UPDATE SET v = 'm'"
    with tables.settings(SHUFFLED if shuffled else {}):
        rows = tables.explain(f"MERGE INTO t {text}")
        *first, later = rows
        assert [row["files_read"] for row in first] == reads
        assert (later["files_total"], later["reasons"]) == (reads[-1], f"found-file: {reads[-1]}")
        for table in ("t", "twin"):
            own = text.replace("FROM t", f"FROM {table}")
            tables.sql(f"MERGE INTO {table} t {own}")
    assert tables.sql("SELECT * FROM t EXCEPT ALL SELECT * FROM twin") == []
    assert tables.sql("SELECT count(*) FROM t WHERE v = 'm'") != [(0,)]


@pytest.mark.parametrize("shuffled", [True, False], ids=["shuffled", "broadcast"])
def test_merge_refuses_double_match_if_no_clause_applies(tables: Lab, shuffled: bool) -> None:
    """MERGE fails if a row matches twice, even if no WHEN clause applies to this row.

    So a scan must not skip a file because of the condition of a WHEN clause.
    """
    twice = "(SELECT 5L AS k UNION ALL SELECT 5L UNION ALL SELECT 75L)"
    on = "MERGE INTO {} t USING {} s ON t.k = s.k"
    text = f"{on} WHEN MATCHED AND t.k > 70 THEN UPDATE SET v = 'x'"
    with tables.settings(SHUFFLED if shuffled else {}):
        for table in ("t", "twin"):
            with pytest.raises(PySparkException, match="MULTIPLE_SOURCE_ROW_MATCHING"):
                tables.sql(text.format(table, twice))
    assert_same_rows(tables, text)


def test_merge_refuses_double_match_below_a_condition(tables: Lab) -> None:
    """MERGE fails if a row matches twice, even if ON also has a condition on the target.

    MERGE numbers the target's rows. The numbers must stay distinct even if scans skip files.
    """
    twice = "(SELECT 75L AS k UNION ALL SELECT 75L)"
    on = "MERGE INTO {} t USING {} s ON t.k = s.k AND t.k > 70"
    text = f"{on} WHEN MATCHED THEN UPDATE SET v = 'x'"
    for settings in (SHUFFLED, {}):
        with tables.settings(settings):
            for table in ("t", "twin"):
                with pytest.raises(PySparkException, match="MULTIPLE_SOURCE_ROW_MATCHING"):
                    tables.sql(text.format(table, twice))
