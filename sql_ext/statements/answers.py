"""Result rows of CREATE, REFRESH and OPTIMIZE: each index's change, and advice on the index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sieve.metadata.history import refreshed_or_rebuilt
from sieve.metadata.manifest import Manifest
from sql_ext.statements.commands import quote
from sql_ext.statements.context import Row, StatementContext
from sql_ext.statements.describe import advice_on, index_bytes

Change = Literal["created", "unchanged", "refreshed", "rebuilt"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of one statement on one index.

    Attributes:
        manifest: the index's current version after the statement.
        change: how the statement has changed the index, as one word.
        seconds: time that the statement spent on this index.
    """

    manifest: Manifest
    change: Change
    seconds: float


def change_between(before: Manifest, now: Manifest) -> Change:
    """How an index has changed between two versions; ``unchanged`` if the versions are the same."""
    return "unchanged" if now.version == before.version else refreshed_or_rebuilt(before, now)


def answer_rows(outcomes: Iterable[Outcome], context: StatementContext) -> list[Row]:
    """One row for each index, with the result columns of CREATE.

    The rows show advice that operations on the indexes collect. So callers must first finish all
    operations on the indexes.
    """
    return [
        (
            outcome.manifest.name,
            outcome.manifest.version,
            outcome.manifest.locations.count,
            index_bytes(outcome.manifest),
            round(outcome.seconds, 3),
            outcome.change,
            ". ".join(_sentences(outcome.manifest, context)) or None,
        )
        for outcome in outcomes
    ]


def refused_row(index: str | None, advice: str) -> Row:
    """The row of an index that Sieve cannot build or refresh. The column ``advice`` says why."""
    return (index, None, None, None, None, None, advice)


def _sentences(manifest: Manifest, context: StatementContext) -> Iterable[str]:
    if manifest.state == "disabled":
        table = ".".join(map(quote, manifest.table.name))
        yield (
            "this index is disabled, so no query uses it: ALTER SIEVE INDEX "
            f"{quote(manifest.name)} ON {table} ENABLE"
        )
    if (words := advice_on(manifest)) is not None:
        yield words
    yield from context.environment.advice.of(manifest.name)
