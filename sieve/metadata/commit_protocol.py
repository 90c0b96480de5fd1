"""Commit protocol: computes a writer's next step from the store's answer.

The protocol is a pure state machine for one attempt to publish one version number.
`sieve.metadata.commit.publish` runs the protocol against a store. A test explores every
interleaving of several writers, with lost requests, lost replies and late effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

CREATE_TRIES: Final = 3
"""Maximum number of create requests for the same bytes."""


class Answer(Enum):
    """The store's answer to a step of the protocol."""

    MADE = auto()
    """Answer to a create: this request created the file."""
    TAKEN = auto()
    """Answer to a create: the file exists; perhaps an earlier request of this writer created it."""
    NO_REPLY = auto()
    """No answer to a create: the request took effect, will take effect later, or never will."""
    REFUSED = auto()
    """Answer to a create: the request did not take effect and never will."""

    OURS = auto()
    """Answer to a read back: the file has this writer's identity."""
    OTHERS = auto()
    """Answer to a read back: the file has another identity."""
    ABSENT = auto()
    """Answer to a read back: the file does not exist yet."""
    UNREADABLE = auto()
    """Answer to a read back: the store does not answer."""
    DAMAGED = auto()
    """Answer to a read back: the file is damaged, so its writer is unknown."""


class End(Enum):
    """The outcome of an attempt to publish a version."""

    PUBLISHED = auto()
    """The version is visible permanently."""
    LOST = auto()
    """Another version has the number, so this writer's version never becomes visible."""
    REFUSED = auto()
    """No request took effect, and none will."""
    DAMAGED = auto()
    """Another writer's damaged file has the number."""
    UNKNOWN = auto()
    """The version is visible, or can become visible later. Do not delete the files that the version
    names."""


@dataclass(frozen=True, slots=True)
class Create:
    """Send the create request.

    Attributes:
        tries: the number of create requests sent, including this one.
        doubt: whether an earlier request can still take effect.
    """

    tries: int = 1
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read the file of the version number again; attributes as in `Create`."""

    tries: int
    doubt: bool


Step = Create | ReadBack
FIRST: Final = Create()


def next_step(step: Step, answer: Answer) -> Step | End:
    """Returns the writer's next step, or the outcome of the attempt.

    Args:
        step: the previous step.
    """
    return (
        _after_create(step, answer) if isinstance(step, Create) else _after_read_back(step, answer)
    )


def _after_create(step: Create, answer: Answer) -> Step | End:
    match answer:
        case Answer.MADE:
            return End.PUBLISHED
        case Answer.TAKEN:
            # Perhaps an earlier request of this writer created the file, so the identity in the
            # file decides.
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
            # Resending the same bytes is idempotent.
            return Create(step.tries + 1, step.doubt)
    return End.UNKNOWN
