"""What a writer does next, given what the store has answered: publishing without the store.

One attempt at one version number, as a transition system. `sieve.publish` drives it with a store;
a test plays every order of several writers, lost requests and replies, and what lands late.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

CREATE_TRIES: Final = 3
"""How often a create of the same bytes is sent while nobody knows whether it took effect."""


class Answer(Enum):
    """What came back."""

    MADE = auto()
    """To a create: this request made the file."""
    TAKEN = auto()
    """To a create: there is one already, which may be that of an earlier request of ours."""
    NO_REPLY = auto()
    """To a create: it took effect, or did not, or will yet."""
    REFUSED = auto()
    """To a create: this request had no effect and never will."""

    OURS = auto()
    """To a look: the file there has our identity."""
    OTHERS = auto()
    """To a look: it has another identity."""
    ABSENT = auto()
    """To a look: there is none, so far."""
    UNREADABLE = auto()
    """To a look: the store did not tell."""
    DAMAGED = auto()
    """To a look: whose it is cannot be told."""


class End(Enum):
    """How an attempt ended."""

    PUBLISHED = auto()
    """The version is there for good."""
    LOST = auto()
    """Another has the number: this version never becomes visible."""
    REFUSED = auto()
    """No request took effect, and none will."""
    DAMAGED = auto()
    """Another's damaged file has the number."""
    UNKNOWN = auto()
    """It may be visible, or become so: nothing that it names may be deleted."""


@dataclass(frozen=True, slots=True)
class Create:
    """Send the create.

    Attributes:
        tries: how many times it will then have been sent.
        doubt: whether an earlier one may still take effect.
    """

    tries: int = 1
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read the number back; attributes as of `Create`."""

    tries: int
    doubt: bool


Step = Create | ReadBack
FIRST: Final = Create()


def next_step(step: Step, answer: Answer) -> Step | End:
    """What to do next, or how it ended.

    Args:
        step: what was done.
        answer: what came back to it.
    """
    return (
        _after_create(step, answer) if isinstance(step, Create) else _after_read_back(step, answer)
    )


def _after_create(step: Create, answer: Answer) -> Step | End:
    match answer:
        case Answer.MADE:
            return End.PUBLISHED
        case Answer.TAKEN:
            # The answer to a repeat of our own success, it may be: so it too is checked by id.
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
            # The same bytes may be sent again: arriving twice they count once.
            return Create(step.tries + 1, step.doubt)
    return End.UNKNOWN
