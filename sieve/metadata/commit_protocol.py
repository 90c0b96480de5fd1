"""Commit protocol: computes a writer's next step from the store's answer to the previous step.

The protocol is a pure state machine for one attempt to publish one version.
`sieve.metadata.commit.publish` sends the protocol's requests to a store. A test explores every
interleaving of several writers' requests, with a store that loses requests, loses replies and
executes requests late.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

CREATE_TRIES: Final = 3
"""Maximum number of create requests that a writer sends for the same version."""


class Answer(Enum):
    """The store's answer to a step of the protocol: to a create request, or to a read request."""

    MADE = auto()
    """Answer to a create request: this request created the file."""
    TAKEN = auto()
    """Answer to a create request: the file exists.

    Perhaps an earlier request of this writer created the file.
    """
    NO_REPLY = auto()
    """No answer to a create request.

    The request may have created the file, may still create it later, or may be lost.
    """
    REFUSED = auto()
    """Answer to a create request: the request did not create the file, and never will."""

    OURS = auto()
    """Answer to a read request: the file contains the id of this writer's version."""
    OTHERS = auto()
    """Answer to a read request: the file contains the id of another version."""
    ABSENT = auto()
    """Answer to a read request: the file does not exist at present."""
    UNREADABLE = auto()
    """No answer to a read request."""
    DAMAGED = auto()
    """Answer to a read request: the file is damaged, so it does not show who wrote it."""


class End(Enum):
    """The outcome of an attempt to publish a version."""

    PUBLISHED = auto()
    """This writer's version is visible permanently."""
    LOST = auto()
    """Another writer's version has the version number; this writer's version never becomes
    visible."""
    REFUSED = auto()
    """This writer's requests have not created the file, and never will."""
    DAMAGED = auto()
    """A damaged file of another writer has the version number."""
    UNKNOWN = auto()
    """This writer's version may be visible, or may become visible later. So the writer must not
    delete the files that the version names."""


@dataclass(frozen=True, slots=True)
class Create:
    """The step in which the writer sends a create request.

    Attributes:
        tries: the number of create requests that the writer has sent, including this one.
        doubt: whether an earlier request of the writer may still create the file.
    """

    tries: int = 1
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The step in which the writer reads the version's file; it has the attributes of `Create`."""

    tries: int
    doubt: bool


Step = Create | ReadBack
FIRST: Final = Create()


def next_step(step: Step, answer: Answer) -> Step | End:
    """Returns the writer's next step, or the outcome of the attempt.

    Args:
        step: the previous step, which the store answered with ``answer``.
    """
    return (
        _after_create(step, answer) if isinstance(step, Create) else _after_read_back(step, answer)
    )


def _after_create(step: Create, answer: Answer) -> Step | End:
    match answer:
        case Answer.MADE:
            return End.PUBLISHED
        case Answer.TAKEN:
            # Perhaps an earlier request of this writer created the file, so the writer must read
            # the version's id in it.
            return ReadBack(step.tries, step.doubt)
        case Answer.NO_REPLY:
            return ReadBack(step.tries, doubt=True)
        case Answer.REFUSED:
            return End.UNKNOWN if step.doubt else End.REFUSED
    raise ValueError(f"{answer} answers no create")


def _after_read_back(step: ReadBack, answer: Answer) -> Step | End:
    match answer:
        case Answer.OURS:
            return End.PUBLISHED
        case Answer.OTHERS:
            return End.LOST
        case Answer.DAMAGED if not step.doubt:
            return End.DAMAGED
        case Answer.ABSENT if step.tries < CREATE_TRIES:
            # Sending the same create request again is idempotent.
            return Create(step.tries + 1, step.doubt)
    return End.UNKNOWN
