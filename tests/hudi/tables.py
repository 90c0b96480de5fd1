"""Creates, fills and changes Hudi tables for tests, and finds their instants and folders."""

from __future__ import annotations

import contextlib
from pathlib import Path

import bundle
from spark_session import Lab

COLUMNS = "id BIGINT, amount BIGINT, word STRING, ts BIGINT, part INT"
SOURCE = "id, id * 7919 % 1000 AS amount, concat('w', id * 31 % 500) AS word, 1 AS ts, {} AS part"

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
"""Table properties for four buckets. Hudi then writes new keys of MOR tables to log files."""
LOCK = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
"""The lock provider that Hudi requires for several writers, and for any index of Hudi."""
_SORTED = {
    "hoodie.spark.sql.insert.into.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
}


def create(lab: Lab, kind: str, *, name: str = "t", parts: bool = False, **properties: str) -> None:
    """Creates an empty table.

    Args:
        lab: the session.
        kind: ``cow`` (copy-on-write) or ``mor`` (merge-on-read).
        name: name of the table.
        parts: whether the table is partitioned by ``part``.
        properties: additional properties, with two underscores for each dot.
    """
    own = {
        "type": kind,
        "primaryKey": "id",
        "preCombineField": "ts",
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "false",
    }
    own |= {key.replace("__", "."): value for key, value in properties.items()}
    told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items() if value)
    by = "PARTITIONED BY (part)" if parts else ""
    lab.sql(f"CREATE TABLE {name} ({COLUMNS}) USING hudi {by} TBLPROPERTIES ({told})")


def rows(first: int, last: int, part: str = "id div 100") -> str:
    """A query that returns rows with the keys from `first` to `last` - 1."""
    return f"SELECT {SOURCE.format(part)} FROM range({first}, {last})"


def fill(lab: Lab, first: int, last: int, name: str = "t") -> None:
    """Inserts rows with the keys from `first` to `last` - 1 in one commit."""
    lab.sql(f"INSERT INTO {name} {rows(first, last)}")


def fill_sorted(lab: Lab, first: int, last: int, name: str = "t") -> None:
    """Inserts rows into eight slices, each of which contains one range of the keys."""
    # In Hudi 1.0, a bulk insert distributes rows arbitrarily, so a separate commit makes each
    # slice.
    step = (last - first) // 8 if bundle.VERSION.startswith("1.0.") else last - first
    hint = "REPARTITION_BY_RANGE(8, id)" if step == last - first else "COALESCE(1)"
    with contextlib.ExitStack() as stack:
        for key, value in _SORTED.items():
            stack.enter_context(lab.setting(key, value))
        for start in range(first, last, step):
            made = rows(start, start + step).replace("SELECT", f"SELECT /*+ {hint} */", 1)
            lab.sql(f"INSERT INTO {name} {made}")


def upsert(lab: Lab, query: str, name: str = "t") -> None:
    """Upserts the rows of a query.

    A new row replaces the row with the same key if its ordering value is higher.
    """
    with lab.setting("hoodie.spark.sql.insert.into.operation", "upsert"):
        lab.sql(f"INSERT INTO {name} {query}")


def compact(lab: Lab, name: str = "t") -> None:
    """Creates a new base file for each slice that has log files."""
    with lab.setting("hoodie.compact.inline.max.delta.commits", "1"):
        lab.sql(f"CALL run_compaction(op => 'schedule', table => '{name}')")
        lab.sql(f"CALL run_compaction(op => 'run', table => '{name}')")


def folder(lab: Lab, name: str = "t") -> Path:
    """The folder of a table."""
    facts = {row[0]: row[1] for row in lab.sql(f"DESCRIBE EXTENDED {name}")}
    return Path(facts["Location"].removeprefix("file:"))


def instants(lab: Lab, name: str = "t") -> list[str]:
    """The instants of completed commits that change rows, in the format of TIMESTAMP AS OF."""
    return list(completions(lab, name))


def completions(lab: Lab, name: str = "t") -> dict[str, str]:
    """The instants and completion times (ISO 8601, UTC) of completed commits, in order."""
    timeline = folder(lab, name) / ".hoodie" / "timeline"
    kinds = (".commit", ".deltacommit", ".replacecommit")
    done = (path.stem for path in timeline.iterdir() if path.name.endswith(kinds))
    pairs = sorted(stem.split("_") for stem in done if "_" in stem)
    return {began: _iso(ended) for began, ended in pairs}


def _iso(digits: str) -> str:
    date, time = digits[:8], digits[8:]
    return f"{date[:4]}-{date[4:6]}-{date[6:]}T{time[:2]}:{time[2:4]}:{time[4:6]}.{time[6:]}Z"
