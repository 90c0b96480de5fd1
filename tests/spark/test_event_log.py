"""`sieve advise` reads Spark's event logs, compressed or not, in one file or in rolling files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from spark_session import Lab

from sql_ext.launcher import cli
from tests.event_log import logged

SECRET = "utrecht"
QUERIES = (
    "SELECT * FROM orders WHERE id = 7",
    "SELECT * FROM orders WHERE id IN (1, 2, 3) AND note = 'utrecht''s (1) [2], 3'",
    "SELECT * FROM orders WHERE year(ordered) = 1970",
    "SELECT * FROM orders WHERE `my col` BETWEEN 3 AND 9 OR `my col` = 20",
    "SELECT * FROM orders WHERE s.`b b` > 30",
    (
        "SELECT /*+ BROADCAST(c) */ * FROM orders JOIN customers c ON customer = c.id "
        f"WHERE city = '{SECRET}3'"
    ),
    "SELECT * FROM orders ORDER BY note LIMIT 3",
    "SELECT * FROM orders WHERE note = ':('",
)


def advised(folder: Path) -> Any:
    """The JSON output of `sieve advise`, which must contain no constant of a query."""
    result = CliRunner().invoke(cli.main, ["advise", "--event-log", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    return json.loads(result.output)


@pytest.fixture(scope="module")
def tables(lab: Lab) -> Iterator[None]:
    """Creates a table of ten files, and a small table."""
    with lab.database("event_logs"):
        lab.sql(
            "CREATE TABLE orders USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, "
            "id % 10 AS customer, string(id) AS note, timestamp_millis(id) AS ordered, "
            "named_struct('b b', id) AS s, id AS `my col` FROM range(1000)"
        )
        lab.sql(
            "CREATE TABLE customers USING parquet AS "
            f"SELECT id, concat('{SECRET}', id) AS city FROM range(10)"
        )
        yield


@pytest.mark.usefixtures("tables")
def test_the_queries_of_a_log(lab: Lab, tmp_path: Path) -> None:
    """For each column, the advice counts the forms of predicates and the bytes that Spark read."""
    with logged(lab, tmp_path, compress="false"), lab.setting("spark.sieve.enabled", "false"):
        for query in QUERIES:
            lab.sql(query)
    told = advised(tmp_path)
    size = sum(file.stat().st_size for file in lab.files("orders"))
    assert (told["applications"], told["scans"]) == (1, len(QUERIES) + 1)
    assert told["unread"] == {"scans with filters that are cut off or have unbalanced brackets": 1}
    found = {one["column"]: one for one in told["advice"] if one["table"] == "event_logs.orders"}
    assert {column: one["asked"] for column, one in found.items()} == {
        "id": {"=": 1, "in": 1},
        "note": {"=": 1, "order by limit": 1},
        "ordered": {"between": 1},
        "`my col`": {"between": 1},
        "s.`b b`": {"range": 1},
        "customer": {"join": 1},
    }
    assert found["id"]["bytes_read_a_day"] == 2 * size
    assert abs(found["id"]["bytes_saved_a_day"] - size * 1.6) <= 1
    assert next(iter(found)) == "id"


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy"])
def test_compressed_and_rolling_logs(lab: Lab, tmp_path: Path, codec: str) -> None:
    """`sieve advise` reads logs in all of Spark's codecs except LZF, also in rolling files."""
    settings = {"compress": "true", "compression_codec": codec, "rolling_enabled": "true"}
    with logged(lab, tmp_path, **settings), lab.setting("spark.sieve.enabled", "false"):
        lab.sql(QUERIES[0])
    assert list(tmp_path.glob(f"eventlog_v2_app-1/events_1_app-1.{codec}*"))
    told = advised(tmp_path)
    assert (told["scans"], told["unread"]) == (1, {})
    assert [one["statement"] for one in told["advice"]] == [
        "CREATE SIEVE INDEX ON event_logs.orders (id)"
    ]
