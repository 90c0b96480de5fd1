"""With and without an index, each MERGE leaves the same rows, metrics and change feed."""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from delta_tables import MAPPED, NO_STATISTICS, SPARK, VECTORS, create
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from spark_session import INTERPRETED, Lab

pytestmark = pytest.mark.delta
log = logging.getLogger(__name__)

FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
OFF = {"delta.enableDeletionVectors": "false"}
MERGE = "spark.databricks.delta.merge."
COLUMNS = "id BIGINT, k STRING, d DOUBLE, p INT, v STRING"
ROWS = (
    "SELECT /*+ REPARTITION_BY_RANGE({files}, id) */ id, concat('k', id) k, "
    "CAST(id AS DOUBLE) / 2 d, CAST(id % 3 AS INT) p, 'a' v FROM range(0, {rows})"
)
ODD_ROWS = (
    "(NULL, NULL, NULL, 0, 'null'), (NULL, 'knull', double('NaN'), 1, 'nan'), "
    "(1000, 'k1000', -0.0D, 2, 'zero'), (1001, '', double('infinity'), 0, 'inf')"
)
SOURCES = {
    # The source `s` contains four ids of the table, and two new ids.
    "s": "SELECT id, concat('k', id) k, CAST(id AS DOUBLE) / 2 d, CAST(id % 3 AS INT) p, 'm' v "
    "FROM VALUES (3L), (42L), (43L), (77L), (500L), (501L) s(id)",
    "nulls": "SELECT * FROM VALUES (NULL, 'n1'), (44L, 'n2'), (NULL, 'n3') s(id, v)",
    "twice": "SELECT * FROM VALUES (45L, 'w1'), (45L, 'w2'), (78L, 'w3') s(id, v)",
    "odd": "SELECT * FROM VALUES (double('NaN'), 'o1'), (0.0D, 'o2'), (double('infinity'), 'o3') "
    "s(d, v)",
    "few": "SELECT id, CAST(id AS INT) i, CAST(id AS STRING) t, CAST(id AS DECIMAL(20, 2)) e, "
    "CAST(id AS DOUBLE) f, concat('K', id) u, 'c' v FROM VALUES (5L), (46L), (502L) s(id)",
    "none": "SELECT 1L AS id, 'x' v WHERE false",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of target table, and the settings of the session that runs MERGE.

    Attributes:
        more: the SQL text that follows the table's columns.
        properties: the properties of the table.
        settings: the settings of the session.
        picks: whether Spark broadcasts the source's keys, so that scans of the table skip files.
    """

    more: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    picks: bool = True


KINDS = {
    "rewriting": Kind(properties=OFF),
    "vectors": Kind(properties=VECTORS),
    "parts": Kind("PARTITIONED BY (p)", VECTORS | MAPPED | FEED),
    "clustered": Kind("CLUSTER BY (v)", VECTORS | TRACKED),
    "fed": Kind(properties=OFF | FEED, settings={f"{MERGE}materializeSource": "none"}),
    "one-plan": Kind(
        properties=VECTORS | FEED,
        settings={"spark.sql.adaptive.enabled": "false", f"{MERGE}materializeSource": "all"},
    ),
    "all-rows": Kind(
        properties=VECTORS,
        settings={
            f"{MERGE}optimizeMatchedOnlyMerge.enabled": "false",
            f"{MERGE}optimizeInsertOnlyMerge.enabled": "false",
            f"{MERGE}deletionVectors.persistent": "false",
            f"{MERGE}repartitionBeforeWrite.enabled": "false",
        },
    ),
    "shuffled": Kind(
        properties=VECTORS, settings={"spark.sql.autoBroadcastJoinThreshold": "-1"}, picks=False
    ),
}
STATEMENTS = re.sub(
    "^--.*", "", Path(__file__).with_name("merges.sql").read_text(), flags=re.MULTILINE
).split(";")[:-1]


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a new database for each test, with source tables of one file each."""
    with lab.database("merges"), lab.settings(INTERPRETED):
        for name, rows in SOURCES.items():
            lab.sql(
                f"CREATE TABLE {name} USING parquet AS SELECT /*+ COALESCE(1) */ * FROM ({rows})"
            )
        yield


def make(lab: Lab, kind: Kind, files: int = 10) -> None:
    """Creates the table `t` with three indexes, and the table `twin` without an index."""
    for table in ("t", "twin"):
        create(lab, table, COLUMNS, kind.more, stats=stats_of(kind), own=dict(kind.properties))
        lab.sql(f"INSERT INTO {table} {ROWS.format(files=files, rows=10 * files)}")
        lab.sql(f"INSERT INTO {table} VALUES {ODD_ROWS}")
    lab.sql("CREATE SIEVE INDEX ON t (id, k, d)")


def stats_of(kind: Kind) -> dict[str, str]:
    """The properties that make Delta store as few statistics as possible for this kind of table."""
    return {"delta.dataSkippingStatsColumns": "v"} if "CLUSTER" in kind.more else NO_STATISTICS


def merge(lab: Lab, statement: str, table: str) -> tuple[object, ...]:
    """Runs a statement on one of the tables; returns the statement's result and Delta log entry."""
    answer = lab.sql(statement.replace("{t}", table))
    folder = dict(row[:2] for row in lab.sql(f"DESCRIBE EXTENDED {table}"))["Location"]
    newest = max(Path(unquote(folder.removeprefix("file:")), "_delta_log").glob("*.json"))
    (info,) = (
        action["commitInfo"]
        for action in map(json.loads, newest.read_text().splitlines())
        if "commitInfo" in action
    )
    counts = {
        name: value
        for name, value in info["operationMetrics"].items()
        if not name.endswith("TimeMs") and "Bytes" not in name
    }
    return answer, newest.name, info["operation"], counts


def assert_same_rows(lab: Lab, told: str) -> None:
    """Asserts that `t` and `twin` contain the same rows; reads both tables without an index."""
    with lab.setting("spark.sieve.enabled", "false"):
        own, twin = (Counter(map(repr, lab.sql(f"SELECT * FROM {t}"))) for t in ("t", "twin"))
    assert own == twin, f"{told}: {own - twin}, not {twin - own}"


def changes(lab: Lab, table: str) -> Counter[str]:
    """The rows in the change feed of all MERGE statements."""
    feed = f"SELECT * FROM table_changes('{table}', 3)"
    with lab.setting("spark.sieve.enabled", "false"):
        return Counter(map(repr, lab.spark.sql(feed).drop("_commit_timestamp").collect()))


def skipped(lab: Lab) -> int:
    """The number of files that this driver's scans have skipped by indexes so far."""
    ((value,),) = lab.sql("SELECT value FROM sieve_status() WHERE counter = 'files_skipped'")
    return int(value)


@pytest.mark.parametrize("name", KINDS)
def test_merges_of_all_kinds(lab: Lab, name: str) -> None:
    """MERGE has the same effects as on `twin`. Each kind of table runs a third of the statements.

    The compared effects are the rows, the metrics and the change feed.
    """
    kind, first = KINDS[name], [*KINDS].index(name)
    make(lab, kind)
    picked = 0
    with lab.settings(kind.settings):
        for number, statement in enumerate(STATEMENTS):
            if (number + first) % 3:
                continue
            before = skipped(lab)
            found = merge(lab, statement, "t")
            now = skipped(lab) - before
            picked += now > 1
            log.info("%s: %d files skipped: %s", name, now, " ".join(statement.split()))
            assert found == merge(lab, statement, "twin"), statement
            assert_same_rows(lab, statement)
            # Only every second MERGE is followed by a REFRESH. So every other MERGE also reads
            # files that the index does not contain.
            if number % 2:
                lab.sql("REFRESH SIEVE INDEX ON t")
        if kind.properties.get("delta.enableChangeDataFeed"):
            own, twin = (changes(lab, table) for table in ("t", "twin"))
            assert own == twin, f"{own - twin}, not {twin - own}"
    assert (picked > 3) == kind.picks, picked
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


@pytest.mark.parametrize("name", ["rewriting", "vectors", "one-plan"])
def test_rows_that_match_twice_are_refused(lab: Lab, name: str) -> None:
    """If a target row matches twice, MERGE fails and changes nothing, just as without an index."""
    kind = KINDS[name]
    make(lab, kind)
    before = lab.sql("SELECT count(*), sum(id) FROM t")
    twice = "MERGE INTO {} t USING twice s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    with lab.settings(kind.settings):
        for table in ("t", "twin"):
            with pytest.raises(PySparkException, match="MULTIPLE_SOURCE_ROW_MATCHING"):
                lab.sql(twice.format(table))
    assert lab.sql("SELECT count(*), sum(id) FROM t") == before


@pytest.mark.parametrize("how", ["a setting", *(["its words"] if SPARK >= (4, 0) else [])])
def test_columns_that_a_merge_adds(lab: Lab, how: str) -> None:
    """If a MERGE adds a column, the reader changes, but `t` and `twin` still have equal rows."""
    make(lab, KINDS["vectors"])
    evolving = {"spark.databricks.delta.schema.autoMerge.enabled": str(how == "a setting").lower()}
    words = "" if how == "a setting" else "WITH SCHEMA EVOLUTION "
    statement = (
        f"MERGE {words}INTO {{t}} t USING (SELECT *, id * 2 AS more FROM s) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    with lab.settings(evolving):
        for number in range(2):
            assert merge(lab, statement, "t") == merge(lab, statement, "twin")
            assert_same_rows(lab, statement)
            assert lab.check("SELECT * FROM t WHERE id = 42 AND more = 84").rows.total() == 1
            if not number:
                lab.sql("REFRESH SIEVE INDEX ON t")
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_merge_counts_all_rows_of_an_indexed_source(lab: Lab) -> None:
    """MERGE counts all source rows, so join keys from a small target skip no file of the source."""
    kind = KINDS["vectors"]
    make(lab, kind, files=1)
    lab.sql(f"CREATE TABLE large USING parquet AS {ROWS.format(files=20, rows=200)}")
    lab.sql("CREATE SIEVE INDEX ON large (id)")
    for clauses in (
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        "WHEN MATCHED THEN DELETE",
        "WHEN NOT MATCHED AND s.id > 190 THEN INSERT *",
    ):
        for source in ("large", "(SELECT /*+ BROADCAST(l) */ * FROM large l)"):
            hinted = f"MERGE INTO {{t}} t USING {source} s ON t.id = s.id {clauses}"
            assert merge(lab, hinted, "t") == merge(lab, hinted, "twin"), hinted
            assert_same_rows(lab, hinted)


def test_batches_of_a_stream_are_merged(lab: Lab, tmp_path: Path) -> None:
    """A stream can merge its batches into a table; each MERGE runs in the stream's session."""
    kind = KINDS["vectors"]
    make(lab, kind)
    create(lab, "u", "id BIGINT, v STRING")
    lab.sql("INSERT INTO u VALUES (42, 'x'), (77, 'y'), (500, 'z')")

    def upsert(table: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView("batch")
        frame.sparkSession.sql(
            f"MERGE INTO merges.{table} t USING batch s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
        ).collect()

    for table in ("t", "twin"):
        stream = lab.spark.readStream.table("u").writeStream.trigger(availableNow=True)
        stream = stream.option("checkpointLocation", str(tmp_path / table))
        query = stream.foreachBatch(lambda frame, _, to=table: upsert(to, frame)).start()
        assert query.awaitTermination(60)
        assert query.exception() is None
    assert_same_rows(lab, "batches")
    assert lab.check("SELECT * FROM t WHERE id IN (42, 77, 500)").rows.total() == 3


def plan_of_matches(store: Any, after: int) -> str:
    """The plan of MERGE's search for matches, from an execution with an id above `after`."""
    deadline = time.monotonic() + 30
    while True:
        done = store.executionsList()
        for k in range(max(0, done.size() - 30), done.size()):
            one = done.apply(k)
            if one.executionId() > after:
                plan = str(one.physicalPlanDescription())
                if "monotonically_increasing_id" in plan:
                    return plan
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_scan_for_matches_reads_the_columns_that_it_needs(lab: Lab, adaptive: str) -> None:
    """Just as without an index, MERGE's search for matches reads only the condition's columns."""
    make(lab, KINDS["vectors"])
    store = lab.spark._jsparkSession.sharedState().statusStore()
    statement = "MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'x'"
    read = {}
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        for table in ("t", "twin"):
            before = skipped(lab)
            last = store.executionsList().last().executionId()
            merge(lab, statement, table)
            assert (skipped(lab) - before > 4) == (table == "t")
            plan = plan_of_matches(store, last)
            read[table] = sorted(set(re.findall(r"ReadSchema: (struct<.*>)", plan)))
    assert read["t"] == read["twin"]
    assert "struct<id:bigint>" in read["t"]


@pytest.mark.parametrize("source", ["parquet", "delta"])
@pytest.mark.parametrize("join", ["usual", "shuffled"])
def test_merge_of_many_keys_reads_the_files_of_the_keys(lab: Lab, source: str, join: str) -> None:
    """MERGE of 12,000 keys without a predicate reads the two files that contain the keys.

    Delta stores a Parquet source as a checkpoint, and reads a Delta source twice. MERGE has the
    same effects on `twin`, even if some of the keys are new.
    """
    rows = (
        "SELECT pmod(xxhash64(id), 1000000000000) AS k, id AS v, concat(sha2(string(id), 512), "
        "sha2(string(-id), 512), sha2(string(id / 3), 512), sha2(string(id / 7), 512)) AS pad, "
        "id DIV 6000 AS part FROM range({}, {}, 1, {})"
    )
    for table in ("t", "twin"):
        lab.sql(f"CREATE TABLE {table} USING delta AS {rows.format(0, 120_000, 20)}")
    lab.sql("CREATE SIEVE INDEX ON t (k) OPTIONS (shape = 'map')")
    lab.sql(f"CREATE TABLE old USING {source} AS SELECT k, -v AS v, pad, part FROM t "
            "WHERE part IN (3, 11)")  # fmt: skip
    lab.sql(f"CREATE TABLE new USING {source} AS SELECT * FROM old UNION ALL "
            f"{rows.format(-200, 0, 1)}")  # fmt: skip
    update = "WHEN MATCHED THEN UPDATE SET v = s.v"
    statements = {
        f"MERGE INTO {{t}} t USING old s ON t.k = s.k {update}": 18,
        f"MERGE INTO {{t}} t USING new s ON t.k = s.k {update} WHEN NOT MATCHED THEN INSERT *": 0,
        "MERGE INTO {t} t USING old s ON t.k = s.k WHEN MATCHED AND s.v % 2 = 0 THEN DELETE": 18,
    }
    conf = {"spark.sieve.strict": "true"}
    if join == "shuffled":
        conf |= {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sieve.join.pruning": "always"}
    with lab.settings(conf):
        for statement, skips in statements.items():
            before = skipped(lab)
            found = merge(lab, statement, "t")
            assert skipped(lab) - before >= skips, statement
            assert found == merge(lab, statement, "twin"), statement
            assert_same_rows(lab, statement)
            lab.sql("REFRESH SIEVE INDEX ON t")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
