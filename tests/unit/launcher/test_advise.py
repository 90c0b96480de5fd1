"""Tests the report of `sieve advise` on event logs. Spark 3.5 recorded one of the logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sieve.workload.column_use import Kind
from sieve.workload.event_log.open_logs import EventLog
from sieve.workload.event_log.replay import Replay
from sql_ext.launcher import cli

RECORDED = Path(__file__).parent / "event_logs"
SPARK = "org.apache.spark.sql.execution.ui.SparkListener"
DAY = 86_400_000
SECRET = "tomsecret"


def plan(constant: str = SECRET, *, table: str = "shop.orders", first: int = 1) -> dict[str, Any]:
    """The plan of a scan with a filter that compares the column `name` with a constant."""
    return {
        "nodeName": f"Scan parquet {table}",
        "simpleString": f"FileScan parquet {table}[name#1] Batched: true, {constant}",
        "metadata": {
            "ReadSchema": "struct<name:string>",
            "PushedFilters": f"[EqualTo(name,{constant})]",
            "DataFilters": f"[(name#1 = {constant})]",
            "Location": f"InMemoryFileIndex[file:/shop/name={SECRET}]",
        },
        "metrics": [
            {"name": "number of files read", "accumulatorId": first},
            {"name": "size of files read", "accumulatorId": first + 1},
        ],
        "children": [],
    }


def started(execution: int, time: int, scan: dict[str, Any]) -> dict[str, Any]:
    """The event that marks the start of a query."""
    return {
        "Event": f"{SPARK}SQLExecutionStart",
        "executionId": execution,
        "time": time,
        "sparkPlanInfo": scan,
        "description": SECRET,
    }


def measured(execution: int, files: int, size: int, first: int = 1) -> dict[str, Any]:
    """The event that contains the metrics of a scan."""
    return {
        "Event": f"{SPARK}DriverAccumUpdates",
        "executionId": execution,
        "accumUpdates": [[first, files], [first + 1, size]],
    }


def ended(execution: int, time: int) -> dict[str, Any]:
    """The event that marks the end of a query."""
    return {"Event": f"{SPARK}SQLExecutionEnd", "executionId": execution, "time": time}


def write(path: Path, *events: Any) -> None:
    """Writes an event log: first an event of a task, then these events."""
    other = {"Event": "SparkListenerTaskEnd", "executionId": 1}
    path.write_text("".join(json.dumps(event) + "\n" for event in [other, *events]))


def replayed(path: Path) -> Replay:
    """Replays one event log."""
    replay = Replay()
    replay.read(EventLog(path.name, (path,)))
    return replay


def advise(folder: Path, *options: str) -> Result:
    """Runs the command `sieve advise`, and returns its output."""
    return CliRunner().invoke(cli.main, ["advise", "--event-log", str(folder), *options])


def test_a_log_of_spark_3_5() -> None:
    """`sieve advise` reads =, IN, ranges, a broadcast join and a top-k in a log of Spark 3.5."""
    replay = replayed(RECORDED / "spark-3.5")
    assert (replay.executions, replay.scans, replay.unread) == (5, 6, {})
    groups = [
        (group.table[1], {".".join(column): kind for column, kind in group.kinds.items()})
        for group in replay.workload
    ]
    assert groups == [
        ("orders", {"id": Kind.EQUALS}),
        ("orders", {"id": Kind.IN, "name": Kind.EQUALS}),
        ("orders", {"ts": Kind.BETWEEN}),
        ("customers", {"city": Kind.EQUALS}),
        ("orders", {"customer": Kind.JOIN}),
        ("orders", {"id": Kind.TOP}),
    ]
    assert {group.bytes for group in replay.workload} == {47890, 785}


def test_the_last_plan_of_a_query_counts(tmp_path: Path) -> None:
    """Adaptive execution can replace a query's plan; only the last plan counts.

    If a scan has no metrics, it did not run.
    """
    replanned = {"Event": f"{SPARK}SQLAdaptiveExecutionUpdate", "executionId": 1}
    write(
        tmp_path / "app",
        started(1, 0, plan(table="shop.early")),
        measured(1, 1, 1),
        replanned | {"sparkPlanInfo": plan(table="shop.late", first=7)},
        measured(1, 2, 30, first=7),
        ended(1, 5),
        started(2, 6, plan(table="shop.never")),
        ended(2, 7),
    )
    replay = replayed(tmp_path / "app")
    assert [(group.table, group.bytes) for group in replay.workload] == [(("shop", "late"), 30)]
    assert (replay.executions, replay.scans, replay.logs) == (2, 1, 1)
    (group,) = replay.workload
    assert group.left == {("name",): 15.0}


def test_a_log_that_ends_in_a_query(tmp_path: Path) -> None:
    """A query counts even if its end is missing in the log; the reads in the log count."""
    write(tmp_path / "app", started(1, 0, plan()), measured(1, 2, 30))
    replay = replayed(tmp_path / "app")
    assert (replay.executions, replay.scans) == (1, 1)


def test_events_of_unknown_queries_are_ignored(tmp_path: Path) -> None:
    """If a query's start is missing, as in a rolling log, the report ignores the query's events."""
    write(
        tmp_path / "app",
        measured(9, 2, 30),
        ended(9, 3),
        {"Event": f"{SPARK}SQLAdaptiveExecutionUpdate", "executionId": 9, "sparkPlanInfo": {}},
        {"Event": f"{SPARK}SQLAdaptiveSQLMetricUpdates", "executionId": 9},
    )
    replay = replayed(tmp_path / "app")
    assert (replay.executions, replay.scans, replay.unread, replay.days) == (0, 0, {}, 1.0)


def test_days_are_those_from_the_first_query_to_the_last(tmp_path: Path) -> None:
    """The report counts the days from the first query to the last, over all logs.

    Queries that span less than a day count as one day, without extrapolation.
    """
    write(tmp_path / "a", started(1, 5 * DAY, plan()), measured(1, 9, 8000), ended(1, 6 * DAY))
    assert replayed(tmp_path / "a").days == 1.0
    write(tmp_path / "b", started(1, 4 * DAY, plan()), measured(1, 9, 8000), ended(1, 4 * DAY + 1))
    record = json.loads(advise(tmp_path, "--json").stdout)
    assert (record["applications"], record["executions"], record["scans"]) == (2, 2, 2)
    assert record["days"] == 2.0
    assert record["advice"] == [
        {
            "table": "shop.orders",
            "column": "name",
            "asked": {"=": 2},
            "scans_a_day": 1.0,
            "bytes_read_a_day": 8000,
            "bytes_saved_a_day": 7111,
            "tested": False,
            "test": "ESTIMATE SIEVE INDEX ON shop.orders (name)",
            "statement": "CREATE SIEVE INDEX ON shop.orders (name)",
        }
    ]
    assert record["unread"] == {}


def test_report_counts_unreadable_parts_by_cause(tmp_path: Path) -> None:
    """The report counts unreadable events, logs and scans by cause, such as damage."""
    write(
        tmp_path / "app",
        started(1, 0, plan(":(")),
        measured(1, 1, 10),
        started(2, 0, plan(table="")),
        started(3, 0, plan(table="ice.shop.orders")),
        started(5, 0, {"nodeName": "Scan parquet shop.orders", "metadata": 1}),
        ended(5, 0),
        {"Event": f"{SPARK}SQLExecutionStart"},
        {"Event": f"{SPARK}SQLExecutionStart", "executionId": 4, "time": "x", "sparkPlanInfo": 1},
    )
    with (tmp_path / "app").open("a") as file:
        file.write(f'{{"Event":"{SPARK}SQLExecutionStart", "exec')
    (tmp_path / "cut.gz").write_bytes(b"no gzip")
    (tmp_path / "old.lzf").touch()
    record = json.loads(advise(tmp_path, "--json").stdout)
    assert record["unread"] == {
        "events that are damaged": 4,
        "logs that end in damage": 1,
        "logs of a codec that is not read (lzf)": 1,
        "scans with filters that are cut off or have unbalanced brackets": 1,
        "scans of paths, not of tables": 1,
        "scans of tables of other catalogs, or whose names have dots": 1,
    }
    assert (record["scans"], record["advice"]) == (1, [])


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_no_constant_is_shown(tmp_path: Path, options: list[str]) -> None:
    """The report contains no constant from predicates, from query texts, or from paths."""
    constants = [SECRET, f"x), EqualTo({SECRET},5", f"{SECRET} :("]
    events = []
    for n, constant in enumerate(constants):
        events += [started(n, n, plan(constant)), measured(n, 9, 8000), ended(n, n)]
    write(tmp_path / "app", *events)
    shown = advise(tmp_path, *options)
    assert shown.exit_code == 0
    assert "CREATE SIEVE INDEX ON shop.orders (name)" in shown.output
    assert SECRET not in shown.output


def test_the_report_for_people(tmp_path: Path) -> None:
    """The report has a table, statements to copy, and counts of readable and unreadable scans."""
    write(
        tmp_path / "app",
        started(1, 0, plan()),
        measured(1, 4, 8_000_000),
        ended(1, 1),
        started(2, 1, plan(table="")),
        ended(2, 2 * DAY),
        started(3, 3, plan(table="shop.visits")),
        measured(3, 4, 5_000),
        ended(3, 4),
    )
    lines = advise(tmp_path).output.splitlines()
    assert lines[0] == "applications: 1, queries: 3, scans of tables: 2, days: 2.0"
    (row,) = [line.split() for line in lines if "shop.orders   name" in line]
    assert row == "shop.orders name 0.5 4.0 MB 3.0 MB = 1".split()
    # Event logs contain no table data, so `sieve advise` cannot test an index. The report shows a
    # statement that tests the index.
    at = next(n for n, line in enumerate(lines) if "these indexes are not tested" in line)
    statements = [line for line in lines[at:] if line.endswith(";")]
    assert statements == [
        "ESTIMATE SIEVE INDEX ON shop.orders (name);",
        "ESTIMATE SIEVE INDEX ON shop.visits (name);",
        "CREATE SIEVE INDEX ON shop.orders (name);",
        "CREATE SIEVE INDEX ON shop.visits (name);",
    ]
    assert lines[-2:] == ["Not in these figures:", "  scans of paths, not of tables: 1"]


def test_tuples_are_proposed_for_a_test(tmp_path: Path) -> None:
    """If queries compare several columns, the report has an ESTIMATE of the tuple of columns."""
    scan = plan()
    scan["metadata"]["ReadSchema"] = "struct<name:string,my col:int,c:int>"
    scan["metadata"]["PushedFilters"] = "[EqualTo(name,x), In(`my col`, [1,2]), GreaterThan(c,3)]"
    write(tmp_path / "app", started(1, 0, scan), measured(1, 4, 8_000_000), ended(1, 1))
    lines = advise(tmp_path).output.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("an index on all of them"))
    assert lines[at + 1] == "ESTIMATE SIEVE INDEX ON shop.orders ((`my col`, name));"
    assert json.loads(advise(tmp_path, "--json").stdout)["tuples"] == [
        {
            "table": "shop.orders",
            "column": "(`my col`, name)",
            "test": "ESTIMATE SIEVE INDEX ON shop.orders ((`my col`, name))",
            "statement": "CREATE SIEVE INDEX ON shop.orders ((`my col`, name))",
        }
    ]


def test_each_statement_is_on_one_line(tmp_path: Path) -> None:
    """Each statement is on one line, and names in it are never interpreted as markup."""
    scan = plan()
    name = "[red]" + "x" * 400
    scan["metadata"]["ReadSchema"] = f"struct<{name}:string>"
    scan["metadata"]["PushedFilters"] = f"[EqualTo(`{name}`,1)]"
    write(tmp_path / "app", started(1, 0, scan), measured(1, 4, 8_000_000), ended(1, 1))
    lines = advise(tmp_path).output.splitlines()
    assert f"CREATE SIEVE INDEX ON shop.orders (`{name}`);" in lines
    assert f"ESTIMATE SIEVE INDEX ON shop.orders (`{name}`);" in lines
    assert (
        "".join(line[15:].split()[0] for line in lines if "x" * 50 in line[:160]).count("x") > 300
    )


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    """Escape sequences and line breaks in names are shown in escaped form."""
    scan = plan()
    name = "a\x1b]0;owned\x07\nDROP"
    scan["metadata"]["ReadSchema"] = f"struct<{name}:string>"
    scan["metadata"]["PushedFilters"] = f"[EqualTo(`{name}`,1)]"
    write(tmp_path / "app", started(1, 0, scan), measured(1, 4, 8_000_000), ended(1, 1))
    shown = advise(tmp_path).output
    spelled = r"`a\x1b]0;owned\x07\nDROP`"
    assert f"CREATE SIEVE INDEX ON shop.orders ({spelled});" in shown.splitlines()
    assert f"ESTIMATE SIEVE INDEX ON shop.orders ({spelled});" in shown.splitlines()
    assert shown.count(spelled) == 3
    assert not {"\x1b", "\x07"} & set(shown)


def test_logs_without_a_filter(tmp_path: Path) -> None:
    """If no scan has a filter, the report says so, and contains no statement to copy."""
    scan = plan()
    scan["metadata"]["PushedFilters"] = "[]"
    write(tmp_path / "app", started(1, 0, scan), measured(1, 1, 10), ended(1, 1))
    output = advise(tmp_path).output
    assert output.splitlines()[1:] == ["No scan has a filter with which an index could save bytes."]


def test_one_log_is_named_by_its_file(tmp_path: Path) -> None:
    """If the argument is the path of one log, `sieve advise` ignores other logs in the folder."""
    for name in ("app-1", "app-2"):
        write(tmp_path / name, started(1, 0, plan()), measured(1, 1, 10), ended(1, 1))
    assert advise(tmp_path).output.startswith("applications: 2, queries: 2,")
    assert advise(tmp_path / "app-1").output.startswith("applications: 1, queries: 1,")


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    """If a folder has no logs, the error names the setting that contains the right folder."""
    result = advise(tmp_path)
    assert result.exit_code == 1
    assert "spark.eventLog.dir" in result.output
    assert advise(tmp_path / "none").exit_code == 2
