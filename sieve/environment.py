"""Environment: the services that an operation gets as an argument (dependency injection).

An operation reads and writes only through its environment, so a test can pass a fake service, such
as a store that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sieve.metadata.records import CreatedBy
from sieve.storage.interface import Store


class Advice:
    """Collects one statement's advice; users see it in the column ``advice`` of the result.

    Each sentence of the advice states a problem and its remedy, and is about one index or about all
    indexes of the statement.
    """

    def __init__(self) -> None:
        self._sentences: dict[tuple[str | None, str], None] = {}

    def add(self, sentence: str, index: str | None = None) -> None:
        """Adds a sentence about one index, or about all indexes if `index` is None.

        A repeated sentence has no effect.
        """
        self._sentences[index, sentence] = None

    def of(self, index: str) -> list[str]:
        """The sentences about this index or about all indexes, in the order of their addition."""
        return [text for name, text in self._sentences if name in (None, index)]

    def __iter__(self) -> Iterator[tuple[str | None, str]]:
        """Yields pairs of an index's name and a sentence; the name None means all indexes."""
        return iter(self._sentences)


@dataclass(frozen=True, slots=True)
class Environment:
    """The services, versions and limits that one statement uses.

    Attributes:
        open_store: opens the store to which a URI belongs.
        root_for_new: returns the folder for new indexes of a database, given the database's
            location.
        check_root: raises RootRefusedError if a root must not contain indexes of the given
            database.
        check_shared: raises RootRefusedError if other sessions would ignore indexes in the given
            root.
        check_cancelled: raises UnavailableError once the user has cancelled the statement.
        describe_job: sets the description of the Spark jobs that the statement starts afterwards.
        software: the versions of Sieve and Spark, recorded in new index versions.
        range_bytes: the minimum size of a file, in bytes, for which an index can point to ranges of
            the file.
        changing: called before each change that other sessions can see; a statement that fails
            before the first call has changed nothing.
        advice: collects the statement's advice for the user.
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
