"""Tests the context of a statement: to resolve a table also prepares the statement's jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sql_ext.statements import commands, context
from sql_ext.statements.context import StatementContext


@pytest.mark.parametrize("jobs", [True, False])
def test_code_is_sent_for_statements_that_may_run_jobs(
    monkeypatch: pytest.MonkeyPatch, jobs: bool
) -> None:
    """Only statements that may run jobs send code to executors.

    SHOW of a database sends no code.
    """
    sent: list[str] = []
    conf: dict[str, str] = {}
    clone = SimpleNamespace(
        sparkContext=lambda: SimpleNamespace(defaultParallelism=lambda: 3),
        conf=lambda: SimpleNamespace(set=conf.__setitem__),
    )
    monkeypatch.setattr(context.attach, "wrap_session", lambda *_: "spark")
    monkeypatch.setattr(context, "open_table", lambda *given: given)
    fields: dict[str, Any] = dict.fromkeys(StatementContext.__dataclass_fields__)
    fields |= {"driver": "driver", "send_code": lambda: sent.append("code")}
    at = StatementContext(
        **fields
        | {
            "session": SimpleNamespace(
                cloneSession=lambda: clone,
                catalog=lambda: SimpleNamespace(currentCatalog=lambda: "spark_catalog"),
            )
        }
    )
    opened: Any = at.table(commands.TableName(("d", "t")), jobs=jobs)
    assert opened == ("driver", "spark", clone, ("d", "t"))
    assert sent == ["code"] * jobs
    assert ("spark.sql.sources.parallelPartitionDiscovery.threshold" in conf) == (not jobs)
    assert conf["spark.sql.shuffle.partitions"] == "3"
