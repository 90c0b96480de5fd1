"""Advice: sentences for the user that accompany a statement's result, such as a warning."""

from __future__ import annotations

from collections.abc import Iterator


class Advice:
    """Collects the advice of one statement, shown in the column ``advice`` of its result.

    A sentence states a problem and its remedy. It concerns one index, or all indexes of the
    statement.
    """

    def __init__(self) -> None:
        self._sentences: dict[tuple[str | None, str], None] = {}

    def add(self, sentence: str, index: str | None = None) -> None:
        """Adds a sentence, once, for one index by name or for all indexes of the statement."""
        self._sentences[index, sentence] = None

    def of(self, index: str) -> list[str]:
        """The sentences for an index, including those for all, in the order of addition."""
        return [text for name, text in self._sentences if name in (None, index)]

    def __iter__(self) -> Iterator[tuple[str | None, str]]:
        """Pairs of an index's name (None for all) and a sentence."""
        return iter(self._sentences)
