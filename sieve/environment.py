"""What an operation on an index needs of the world around it, given to it by whoever runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sieve.advice import Advice
from sieve.metadata.records import CreatedBy
from sieve.storage.interface import Store


@dataclass(frozen=True, slots=True)
class Environment:
    """The means of one statement.

    Attributes:
        open_store: the store that serves a URI.
        root_for_new: where new indexes go, given the database's location.
        check_root: raises RootRefusedError unless indexes of a database may lie in a root.
        check_shared: raises RootRefusedError where this session alone would use them there.
        check_cancelled: raises UnavailableError once the user has given up.
        describe_job: labels the Spark jobs that follow.
        software: what writes new versions.
        changing: called before each change that others see; until the first one, a statement
            that breaks off has changed nothing.
        advice: what the operation has to say to the user besides its result.
    """

    open_store: Callable[[str], Store]
    root_for_new: Callable[[str], str]
    check_root: Callable[[str, str], None]
    check_shared: Callable[[str, str], None]
    check_cancelled: Callable[[], None]
    describe_job: Callable[[str], None]
    software: CreatedBy
    changing: Callable[[], None] = lambda: None
    advice: Advice = field(default_factory=Advice)
