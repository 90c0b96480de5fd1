"""Some rules of Spark change a table's relation; an index stays in use under each such rule."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_session import Lab

from sieve.client.spark_home import find_spark

_RELATIONS = (b"/LogicalRelation", b"/HadoopFsRelation", b"/MultiInstanceRelation")
"""The names of relation classes in class files."""

READS = {
    "FindDataSourceTable": "SELECT * FROM t WHERE id = 5",
    "RelationConversions": "SELECT * FROM hive_t WHERE id = 5",
    "DeduplicateRelations": "SELECT * FROM t JOIN t u ON t.x = u.x WHERE t.id = 5 AND u.id = 5",
    "ApplyCharTypePadding": "SELECT * FROM t WHERE id = 5 AND c = 'c'",
    "SchemaPruning": "SELECT id, s.x FROM t WHERE id = 5",
    "PruneFileSourcePartitions": "SELECT * FROM parted WHERE p = 1 AND id = 5",
    "PartitionPruning": "SELECT * FROM parted JOIN days USING (p) WHERE day = 1 AND id = 5",
    "CleanupDynamicPruningFilters": "SELECT * FROM parted JOIN days USING (p) "
    "WHERE day = 1 AND parted.p = 1 AND id = 5",
    "PushVariantIntoScan": "SELECT id, v:a::INT FROM variants WHERE id = 5",
}
"""For each rule, a query of an indexed column; the rule rewrites the query's plan."""

OTHERS = {
    "DataSourceAnalysis": "statements that write; a test below reads in one",
    "PreprocessTableInsertion": "statements that write, likewise",
    "FileSourceStrategy": "plans the scan of the relation that Sieve has wrapped",
    "DataSourceStrategy": "plans relations that are not of files",
    "DataSourceV2Strategy": "plans tables of catalogs that have no index",
    "SparkStrategies": "plan operators above scans",
    "FallBackFileSourceV2": "writes to tables that have no index",
    "OptimizeMetadataOnlyQuery": "queries of partition columns alone; off by default",
    "ResolveSQLOnFile": "reads by path, which have no index",
    "ResolveDataSource": "reads by path, which have no index",
    "ResolveSessionCatalog": "statements on the catalog",
}
"""For each rule, the reason why the rule cannot affect the use of an index."""


@pytest.fixture(scope="module")
def tables(lab: Lab) -> Iterator[Lab]:
    """Tables of four files each, all with an index on ``id``."""
    rows = "FROM range(0, 40, 1, 4)"
    with lab.database("rules"):
        lab.sql(
            "CREATE TABLE t (id BIGINT, x BIGINT, c CHAR(3), s STRUCT<x: INT, y: INT>) "
            "USING parquet"
        )
        lab.sql(f"INSERT INTO t SELECT id, id, 'c', struct(1, 2) {rows}")
        lab.sql("CREATE TABLE hive_t (id BIGINT) STORED AS PARQUET")
        lab.sql(f"INSERT INTO hive_t SELECT id {rows}")
        lab.sql("CREATE TABLE parted (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
        lab.sql(f"INSERT INTO parted SELECT id, CAST(id / 20 AS INT) + 1 {rows}")
        lab.sql("CREATE TABLE days USING parquet AS SELECT 1 p, 1 day")
        names = ["t", "hive_t", "parted"]
        if str(lab.spark.version) >= "4":
            names.append("variants")
            lab.sql(
                "CREATE TABLE variants USING parquet AS "
                f"SELECT id, parse_json(concat('{{\"a\": ', id, '}}')) v {rows}"
            )
        for name in names:
            lab.sql(f"CREATE SIEVE INDEX ON {name} (id)")
        yield lab


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(k) for k in range(sequence.size()))


def _rules(lab: Lab) -> set[str]:
    """The classes of all rules that Spark applies to plans, from the analyzer to strategies."""
    state = lab.spark._jsparkSession.sessionState()
    batches = [*_each(state.analyzer().batches()), *_each(state.optimizer().batches())]
    rules = [rule for batch in batches for rule in _each(batch.rules())]
    names = {one.getClass().getName() for one in (*rules, *_each(state.planner().strategies()))}
    return {name.partition("$")[0] for name in names if ".sieve." not in name}


def _relation_rules(classes: set[str]) -> set[str]:
    """The simple names of the given classes whose code mentions a class of relations."""
    found, seen = set(), set()
    for jar in Path(find_spark(os.environ).path, "jars").glob("spark-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                owner = entry.removesuffix(".class").partition("$")[0].replace("/", ".")
                if owner in classes:
                    seen.add(owner)
                    content = archive.read(entry)
                    if any(name in content for name in _RELATIONS):
                        found.add(owner.rpartition(".")[2])
    assert seen == classes
    return found


def test_every_rule_that_touches_a_relation_is_known(tables: Lab) -> None:
    """Each rule of Spark that touches relations must be in one of this module's two lists."""
    found = _relation_rules(_rules(tables))
    assert found <= READS.keys() | OTHERS.keys()
    newer = {"PushVariantIntoScan", "ResolveDataSource"} if str(tables.spark.version) < "4" else ()
    assert READS.keys() - found <= set(newer)


@pytest.mark.parametrize("rule", READS)
def test_an_index_stays_in_use_under_a_rule(tables: Lab, rule: str) -> None:
    """If a rule has rewritten the plan, each scan of an indexed table still reads one file."""
    if rule == "PushVariantIntoScan" and str(tables.spark.version) < "4":
        pytest.skip("VARIANT came with Spark 4")
    query = READS[rule]
    # Each scan reads one file, so a join with two scans reads two files.
    tables.check(query, exactly=1 + query.count("JOIN"))
    tracked = tables.spark.sql(query)._jdf.queryExecution()
    tracked.executedPlan()
    summaries = {entry._1(): entry._2() for entry in _each(tracked.tracker().rules().toSeq())}
    (own,) = (one for name, one in summaries.items() if name.rpartition(".")[2] == rule)
    assert own.numEffectiveInvocations() > 0


def test_an_index_stays_in_use_in_a_statement_that_writes(tables: Lab) -> None:
    """DataSourceAnalysis replaces an INSERT by a command; an index still prunes its query."""
    plan = tables.spark.sql("EXPLAIN FORMATTED INSERT INTO days SELECT id, 1 FROM t WHERE id = 5")
    assert "Location: SieveFileIndex" in plan.collect()[0][0]
