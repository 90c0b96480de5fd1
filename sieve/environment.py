"""Environment: everything outside an operation, passed as an argument (dependency injection).

An operation reads and writes only through its environment, so tests pass fakes: a store that fails,
a user who cancels, a root that is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sieve.metadata.records import CreatedBy
from sieve.storage.interface import Store


class Advice:
    """Collects the advice of one statement, shown in the column ``advice`` of its result.

    A sentence states a problem and its remedy. A sentence is about one index, or about all indexes
    of the statement.
    """

    def __init__(self) -> None:
        self._sentences: dict[tuple[str | None, str], None] = {}

    def add(self, sentence: str, index: str | None = None) -> None:
        """Adds a sentence for one index, or for all if ``index`` is None; ignores repetitions."""
        self._sentences[index, sentence] = None

    def of(self, index: str) -> list[str]:
        """The sentences about an index or about all indexes, in the order of addition."""
        return [text for name, text in self._sentences if name in (None, index)]

    def __iter__(self) -> Iterator[tuple[str | None, str]]:
        """Pairs of an index's name (None for all) and a sentence."""
        return iter(self._sentences)


@dataclass(frozen=True, slots=True)
class Environment:
    """The outside world of one statement.

    Attributes:
        open_store: opens the store of a URI.
        root_for_new: the root of new indexes, given the database's location.
        check_root: raises RootRefusedError if indexes of a database are not allowed in a root.
        check_shared: raises RootRefusedError if other sessions would not use indexes in a root.
        check_cancelled: raises UnavailableError once the user has cancelled the statement.
        describe_job: labels the Spark jobs that follow.
        software: the versions of Sieve and Spark, recorded in new index versions.
        range_bytes: the minimum bytes of a file for which an index can point to ranges.
        changing: called before each change that others can see; a statement that fails before the
            first call has changed nothing.
        advice: collects advice for the user, in addition to the result.
    """

    open_store: Callable[[str], Store]
    root_for_new: Callable[[str], str]
    check_root: Callable[[str, str], None]
    check_shared: Callable[[str, str], None]
    check_cancelled: Callable[[], None]
    describe_job: Callable[[str], None]
    software: CreatedBy
    range_bytes: int
    changing: Callable[[], None] = lambda: None
    advice: Advice = field(default_factory=Advice)
