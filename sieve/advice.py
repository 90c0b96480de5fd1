"""Advice: what an operation has to say to its user besides its result."""

from __future__ import annotations

from collections.abc import Iterator


class Advice:
    """Collects the advice of one statement; its answer shows it in the column ``advice``.

    A sentence says what is not well and what to do about it. It concerns one index, or all of the
    statement's.
    """

    def __init__(self) -> None:
        self._sentences: dict[tuple[str | None, str], None] = {}

    def add(self, sentence: str, index: str | None = None) -> None:
        """Add a sentence, once, for an index by name or for all that the statement is about."""
        self._sentences[index, sentence] = None

    def of(self, index: str) -> list[str]:
        """The sentences for an index, those for all included, in the order of their coming."""
        return [text for name, text in self._sentences if name in (None, index)]

    def __iter__(self) -> Iterator[tuple[str | None, str]]:
        """Pairs of an index's name, None for all, and a sentence."""
        return iter(self._sentences)
