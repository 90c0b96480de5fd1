"""The statement EXPLAIN SIEVE: shows what each scan of a query would read."""

from __future__ import annotations

import json

from sieve.reader.reason import labelled
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext


def explain(command: commands.ExplainSieve, context: StatementContext) -> list[Row]:
    """``EXPLAIN SIEVE``: one row per scan of the query."""
    scans = json.loads(
        context.driver.explain().query(context.session, command.margin + command.query)
    )
    return [
        (
            number,
            scan["table"],
            ", ".join(scan.get("used", [])) or None,
            scan["predicate"] or None,
            scan["files_total"],
            scan["files_read"],
            scan["ranges_total"],
            scan["ranges_read"],
            scan["bytes_total"],
            scan["bytes_read"],
            ", ".join(
                f"{labelled(reason, scan.get('functions', ()))}: {count}"
                for reason, count in scan["reasons"].items()
            )
            or None,
        )
        for number, scan in enumerate(scans, 1)
    ]
