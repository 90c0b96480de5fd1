"""Starts Spark sessions with Sieve, and checks that an index skips files and changes no rows."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sieve.client.spark_conf import wiring
from sieve.client.spark_home import find_spark, shim_jar
from sql_ext.driver.attach import remember_names

THRIFT_PORT = "spark.hadoop.hive.server2.thrift.port"
DERBY = "-Dderby.language.statementCache.size=1000 -Dderby.system.durability=test"
"""JVM options of Derby, the metastore's database:

Derby caches compiled statements, and commits do not wait for the disk.
"""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for queries of so few rows that compiling would take longer than running."""
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Settings for a query of millions of rows, in a session whose other queries are interpreted."""
FRUGAL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    # Spark's shells show only warnings and errors. Without this setting, Spark would also format
    # all other messages.
    "spark.log.level": "WARN",
    # The explain mode determines the format of each plan in the UI.
    "spark.sql.ui.explainMode": "simple",
    # For each broadcast, Spark clears a buffer of one block (4 MB by default). For each sort or
    # aggregation, Spark clears a buffer of one page (32 MB). Tests have only a few kB of data, so
    # smaller buffers reduce a query's CPU time by a tenth.
    "spark.broadcast.blockSize": "128k",
    "spark.buffer.pageSize": "1m",
    # No test uses the times that listeners record.
    "spark.scheduler.listenerbus.metrics.maxListenerClassesTimed": "0",
}
"""Settings of every test driver; each test driver has few rows and two cores."""
RANGES = {
    "spark.sieve.range.bytes": "400",
    "parquet.block.row.count.limit": "25",
    "orc.stripe.row.count": "25",
}
"""Settings that cut the small files of tests into ranges.

In Spark 3.5, Parquet has no limit on the rows of a row group.
"""

_TICK = 0.01
"""A kernel counts in ticks, so a file's time may lag behind the clock by this many seconds."""
_METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_WRITES = re.compile(
    r"\s*(CREATE\s+(OR\s+REPLACE\s+)?TABLE|INSERT|UPDATE|DELETE|MERGE|FROM|WITH)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's rows with counts, and the number of data files that the query's scans read."""

    rows: Counter[str]
    files: int


class Lab:
    """Runs SQL statements in one session, both with and without the index."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Runs a statement, and returns its rows."""
        return [tuple(row) for row in self.spark.sql(text).collect()]

    def run(self, text: str) -> Answer:
        """Runs a query; returns its rows, and the number of files that its scans read."""
        frame = self.spark.sql(text)
        rows = Counter(repr(tuple(row)) for row in frame.collect())
        return Answer(rows, files_read(frame))

    def check(
        self,
        text: str,
        *,
        at_most: int | None = None,
        exactly: int | None = None,
        known: dict[str, Answer] | None = None,
    ) -> Answer:
        """With `strict`, asserts that a query returns the same rows with and without the index.

        Args:
            text: a query whose rows depend neither on the order of the files nor on the files read.
            at_most: with the index, the query may read at most this number of files.
            exactly: with the index, the query must read exactly this number of files.
            known: a cache of results without the index, for tests that try several indexes on the
                same files.
        """
        known = {} if known is None else known
        if text not in known:
            with self.setting("spark.sieve.enabled", "false"):
                known[text] = self.run(text)
        off = known[text]
        with self.setting("spark.sieve.strict", "true"):
            on = self.run(text)
        assert on.rows == off.rows, f"other rows with the index: {text}"
        assert on.files <= off.files, f"more files with the index: {text}"
        if at_most is not None:
            assert on.files <= at_most, f"read {on.files} files, not {at_most}: {text}"
        if exactly is not None:
            assert on.files == exactly, f"read {on.files} files, not {exactly}: {text}"
        return on

    def explain(self, query: str) -> list[dict[str, Any]]:
        """Runs EXPLAIN SIEVE, and returns its rows as dictionaries."""
        return [row.asDict() for row in self.spark.sql(f"EXPLAIN SIEVE {query}").collect()]

    def files(self, table: str = "t") -> list[Path]:
        """Lists the data files of a table, ordered by name."""
        uris = self.spark.table(table).inputFiles()
        return sorted(Path(uri.removeprefix("file:")) for uri in uris)

    def facts(self, index: str = "id_sieve", table: str = "t") -> dict[str, str]:
        """Returns the result of DESCRIBE EXTENDED as a dictionary."""
        return dict(self.sql(f"DESCRIBE SIEVE INDEX EXTENDED {index} ON {table}"))

    @contextmanager
    def setting(self, key: str, value: str) -> Iterator[None]:
        """Changes one setting of the session within the block."""
        before = self.spark.conf.get(key, None)
        self.spark.conf.set(key, value)
        try:
            yield
        finally:
            if before is None:
                self.spark.conf.unset(key)
            else:
                self.spark.conf.set(key, before)

    @contextmanager
    def settings(self, values: Mapping[str, str]) -> Iterator[None]:
        """Changes several settings of the session within the block."""
        with ExitStack() as stack:
            for key, value in values.items():
                stack.enter_context(self.setting(key, value))
            yield

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """Creates a database, makes it current within the block, and drops it afterwards."""
        self.spark.sql(f"CREATE DATABASE {name}")
        self.spark.sql(f"USE {name}")
        try:
            yield name
        finally:
            self.spark.sql("USE default")
            self.spark.sql(f"DROP DATABASE {name} CASCADE")


def together(queries: Iterable[str]) -> str:
    """Combines many queries into one faster query. Each row has the number of its query."""
    row = "to_json(struct(*), map('ignoreNullFields', 'false'))"
    branches = (f"SELECT {k} AS k, {row} AS r FROM ({query})" for k, query in enumerate(queries))
    return " UNION ALL ".join(branches)


def files_read(frame: DataFrame) -> int:
    """Sums "number of files read" over all scans of an executed query."""
    return sum(
        _files_of(scan.metrics()) for scan in scans(frame._jdf.queryExecution().executedPlan())
    )


def _files_of(metrics: Any) -> int:
    # Scans through Spark's data source API V2 use another name for this metric.
    name = "numFiles" if metrics.contains("numFiles") else "resultDataFiles"
    return int(metrics.apply(name).value())


def scans(plan: Any) -> Iterator[Any]:
    """Returns a physical plan's file scans, including scans in subqueries and adaptive stages."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from scans(plan.plan())
    elif kind == "CommandResultExec":
        yield from scans(plan.commandPhysicalPlan())
    elif kind in ("FileSourceScanExec", "SieveScan", "BatchScanExec", "KeyedBatchScan"):
        yield plan
    for nested in (plan.children(), plan.subqueries()):
        for k in range(nested.size()):
            yield from scans(nested.apply(k))


def shown_scans(lab: Lab, query: str) -> list[dict[str, str]]:
    """Returns the scans of an executed query, each with its text in the UI's SQL tab."""
    lab.sql(query)
    lab.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = lab.spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    number = executions.apply(executions.size() - 1).executionId()
    values = store.executionMetrics(number)
    nodes = store.planGraph(number).allNodes()
    scans = []
    for node in (nodes.apply(k) for k in range(nodes.size())):
        if node.name().startswith("Scan parquet"):
            kinds = (node.metrics().apply(k) for k in range(node.metrics().size()))
            scans.append(
                {m.name(): values.apply(m.accumulatorId()) for m in kinds} | {"": node.name()}
            )
    return scans


def start_session(folder: Path, **conf: str) -> SparkSession:
    """Starts a local session like spark-sql's, on an embedded Derby metastore below ``folder``."""
    remember_names()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = f"-Dderby.system.home={folder} -Duser.timezone=UTC {DERBY}"
    settings = (
        wiring(shim_jar(find_spark(os.environ)))
        | FRUGAL
        | {
            "spark.master": "local[2]",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            _METASTORE: f"jdbc:derby:;databaseName={folder}/metastore;create=true",
            "spark.driver.extraJavaOptions": options,
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "2g",
            "spark.sql.session.timeZone": "UTC",
            # With a short time-out, tests would fail on a busy machine. Tests about time-outs set a
            # shorter time-out themselves.
            "spark.sieve.prune.timeout": "30s",
            "spark.sieve.start.timeout": "120s",
        }
    )
    builder = SparkSession.builder.appName("sieve-tests")
    for key, value in (settings | conf).items():
        builder = builder.config(key, value)
    spark = builder.enableHiveSupport().getOrCreate()
    _age_files(spark, folder / "warehouse")
    return spark


def _age_files(spark: SparkSession, warehouse: Path) -> None:
    """Makes the files that a statement writes two seconds older.

    A build waits until the newest file is a second old. Backdated files save the tests this wait.
    """
    run = spark.sql

    def sql(text: str, *args: Any, **kwargs: Any) -> DataFrame:
        started = time.time() - _TICK
        frame = run(text, *args, **kwargs)
        if _WRITES.match(text):
            for path in (Path(at, name) for at, _, names in os.walk(warehouse) for name in names):
                with suppress(FileNotFoundError):
                    written = path.stat().st_mtime
                    # An index may already contain the older files, so this function backdates only
                    # new files.
                    if written >= started:
                        os.utime(path, (written - 2, written - 2))
        return frame

    spark.sql = sql  # type: ignore[method-assign]
