"""Tests all orders of the steps of three writers and a foreign tool.

Requests and replies can be lost. The modelled steps are the production code
(`sieve.metadata.commit_protocol`, `transitions`). The model supplies the store, the table's
property, and the last steps of a statement. In some explored orders, a writer stops after one of
its steps, as if its process were killed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from sieve.errors import ConflictError
from sieve.metadata.commit_protocol import FIRST, Answer, Create, End, ReadBack, Step, next_step
from sieve.metadata.contents import Contents
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import CreatedBy, LocationsRef, VersionId
from sieve.metadata.transitions import Change, Disable, Drop, Refresh, check_successor, next_version
from tests.unit.metadata.manifest_sample import SAMPLE

STEPS = 6
"""The maximum number of calls of the store or the metastore per writer."""

BY = CreatedBy("0.1.0", "4.1.4")
(_SHARED,) = SAMPLE.locations.parts
Rule = Callable[[Step, Answer], Step | End]


class Writer(NamedTuple):
    """A statement that is running.

    Attributes:
        kind: the kind of the statement.
        steps: the number of calls that the statement has made.
        doing: the writer's current publishing step, the result of publishing, or a last step of the
            statement.
        proposed: the identity of the version that the writer tries to publish.
        lost: the identities of versions that certainly never become visible.
    """

    kind: str
    steps: int
    doing: Step | End | str
    proposed: str
    lost: tuple[str, ...] = ()


class State(NamedTuple):
    """The complete state of the model.

    Attributes:
        chain: the identities of the existing versions, oldest first.
        flying: the creates that are sent but not answered. Each of these creates can still take
            effect.
        writers: the running statements.
        registered: true if the table has the property that registers the index.
        copied: the property that the foreign tool has read but not yet written back, or None.
        foreign: the number of calls that the foreign tool may still make.
        deleted: the parts of location lists that were deleted.
        folder: true if the folder of the index exists.
    """

    chain: tuple[str, ...]
    flying: frozenset[str]
    writers: tuple[Writer, ...]
    registered: bool = True
    copied: bool | None = None
    foreign: int = 2
    deleted: frozenset[str] = frozenset()
    folder: bool = True


class BrokenError(AssertionError):
    """Raised if the model reaches a forbidden state."""


class Model:
    """The model and its reachable states.

    Args:
        rule: the function that decides the next step of a writer.
        if_absent: true if the store's create fails for a file that exists.
        keep_unknown: true if a writer with an unknown outcome keeps its files.
        keep_shared: true if a writer keeps its files that an earlier version also names.
        tombstone: true if DROP publishes a tombstone before it removes the table's property.
    """

    def __init__(
        self,
        rule: Rule = next_step,
        *,
        if_absent: bool = True,
        keep_unknown: bool = True,
        keep_shared: bool = True,
        tombstone: bool = True,
    ) -> None:
        self._rule, self._if_absent = rule, if_absent
        self._keep_unknown, self._keep_shared = keep_unknown, keep_shared
        self._tombstone = tombstone
        self._versions: dict[str, Manifest] = {"1": replace(SAMPLE, id=VersionId("1"))}
        self._parts_named: dict[tuple[str, ...], frozenset[str]] = {}

    def explore(self, kinds: str) -> set[State]:
        """Returns all states that these writers reach; raises BrokenError at a forbidden state."""
        first = self._versions["1"]
        writers = tuple(
            Writer(kind, 0, FIRST, self._plan(k, kind, first))
            if self._tombstone or kind != "d"
            else Writer(kind, 0, "unregister", "1")
            for k, kind in enumerate(kinds)
        )
        # Without a DROP, calls of the foreign tool change nothing, so the model omits these calls.
        start = State(("1",), frozenset(), writers, foreign=2 if "d" in kinds else 0)
        seen, waiting = {start}, [start]
        while waiting:
            for state in map(self._told_apart, self._next(waiting.pop())):
                if state not in seen:
                    self._check(state)
                    seen.add(state)
                    waiting.append(state)
        return seen

    def _plan(self, number: int, kind: str, base: Manifest) -> str:
        """Returns the identity of the version that a writer would publish after a base version.

        Raises ConflictError if no version can follow the base version.
        """
        name = f"{number}{kind}{base.id}"
        if name not in self._versions:
            made = next_version(base, _change(kind, number), VersionId(name), BY)
            if made is base:
                return str(base.id)
            check_successor(base, made)
            self._versions[name] = made
        return name

    def _told_apart(self, state: State) -> State:
        """Removes the details of a state that cannot affect later states."""
        flying = state.flying
        if flying and self._if_absent:
            free = {n for n in flying if self._versions[n].version > len(state.chain)}
            flying = frozenset(free) if state.folder else frozenset()
        if flying != state.flying:
            state = state._replace(flying=flying)
        if any(w.steps and isinstance(w.doing, End) for w in state.writers):
            ended = (w._replace(steps=0) if isinstance(w.doing, End) else w for w in state.writers)
            state = state._replace(writers=tuple(ended))
        return state

    def _next(self, state: State) -> Iterator[State]:
        for name in state.flying:
            # In some orders, a pending create takes effect here. In other orders, it never takes
            # effect.
            yield self._land(state, name)._replace(flying=state.flying - {name})
        if state.foreign == 2:
            yield state._replace(copied=state.registered, foreign=1)
        if state.foreign == 1 and state.copied is not None:
            yield state._replace(registered=state.copied, copied=None, foreign=0)
        for number, writer in enumerate(state.writers):
            if writer.steps < STEPS and not isinstance(writer.doing, End):
                for environment, now in self._act(state, number, writer):
                    writers = (*state.writers[:number], now, *state.writers[number + 1 :])
                    yield environment._replace(writers=writers)

    def _act(self, state: State, number: int, writer: Writer) -> Iterator[tuple[State, Writer]]:
        writer = writer._replace(steps=writer.steps + 1)
        match writer.doing:
            case Create():
                for environment, answer in self._create(state, writer.proposed):
                    yield self._went_on(environment, number, writer, answer)
            case ReadBack():
                for answer in (self._look(state, writer.proposed), Answer.UNREADABLE):
                    yield self._went_on(state, number, writer, answer)
            case "plan":
                if not state.folder:
                    yield state, writer._replace(doing=End.REFUSED)
                    return
                newest = self._versions[state.chain[-1]]
                try:
                    proposed = self._plan(number, writer.kind, newest)
                except ConflictError:
                    yield self._ended(state, number, writer._replace(doing=End.LOST))
                    return
                doing = End.PUBLISHED if proposed == newest.id else FIRST
                yield state, writer._replace(proposed=proposed, doing=doing)
            case "unregister":
                doing = "delete" if self._tombstone else End.PUBLISHED
                yield state._replace(registered=False), writer._replace(doing=doing)
            case "delete":
                yield state._replace(folder=False), writer._replace(doing=End.PUBLISHED)

    def _create(self, state: State, name: str) -> Iterator[tuple[State, Answer]]:
        yield state, Answer.REFUSED
        if not state.folder:
            return
        yield state._replace(flying=state.flying | {name}), Answer.NO_REPLY
        landed = self._land(state, name)
        yield landed, Answer.NO_REPLY
        yield landed, Answer.TAKEN if landed is state else Answer.MADE

    def _land(self, state: State, name: str) -> State:
        """Lets a create take effect if the folder exists and the create's number is free."""
        number = self._versions[name].version
        if not state.folder or (self._if_absent and number <= len(state.chain)):
            return state
        return state._replace(chain=(*state.chain[: number - 1], name, *state.chain[number:]))

    def _look(self, state: State, name: str) -> Answer:
        number = self._versions[name].version
        if not state.folder or number > len(state.chain):
            return Answer.ABSENT
        return Answer.OURS if state.chain[number - 1] == name else Answer.OTHERS

    def _went_on(
        self, state: State, number: int, writer: Writer, answer: Answer
    ) -> tuple[State, Writer]:
        assert isinstance(writer.doing, Create | ReadBack)
        doing = self._rule(writer.doing, answer)
        if doing is End.LOST:
            lost = (*writer.lost, writer.proposed)
            return state, writer._replace(doing="plan", lost=lost)
        if doing is End.PUBLISHED and writer.kind == "d":
            return state, writer._replace(doing="unregister")
        return self._ended(state, number, writer._replace(doing=doing))

    def _ended(self, state: State, number: int, writer: Writer) -> tuple[State, Writer]:
        """Deletes the files of a refresh that certainly failed."""
        failed = writer.doing in (End.LOST, End.REFUSED)
        failed |= writer.doing is End.UNKNOWN and not self._keep_unknown
        if writer.doing is End.REFUSED:
            writer = writer._replace(lost=(*writer.lost, writer.proposed))
        if failed and writer.kind == "r":
            made = {_part_of(number)} if self._keep_shared else {_part_of(number), _SHARED.name}
            state = state._replace(deleted=state.deleted | made)
        return state, writer

    def _check(self, state: State) -> None:
        if state.chain not in self._parts_named:
            self._parts_named[state.chain] = self._checked(state.chain)
        if state.folder and not state.deleted.isdisjoint(self._parts_named[state.chain]):
            raise BrokenError("a version names what was deleted")
        newest = self._versions[state.chain[-1]]
        for writer in state.writers:
            won = writer.doing is End.PUBLISHED or writer.doing in ("unregister", "delete")
            if won and writer.proposed not in state.chain:
                raise BrokenError("a version that was reported is not there")
            if set(writer.lost) & set(state.chain):
                raise BrokenError("a version that was given up is there")
            in_use = state.registered and state.folder and newest.state == "ready"
            if in_use and writer.kind == "d" and writer.doing is End.PUBLISHED:
                raise BrokenError("a dropped index is in use again")

    def _checked(self, names: tuple[str, ...]) -> frozenset[str]:
        """Returns the list parts that versions name; raises BrokenError if a version is missing."""
        chain = [self._versions[name] for name in names]
        for before, version in itertools.pairwise(chain):
            try:
                check_successor(before, version)
            except (ConflictError, ValueError) as error:
                raise BrokenError(f"no chain: {error}") from error
        made_by = [name[0] for name in names[1:]]
        if len(set(made_by)) < len(made_by):
            raise BrokenError("a change was applied twice")
        return frozenset(part.name for version in chain for part in version.locations.parts)


def _change(kind: str, number: int) -> Change:
    if kind == "d":
        return Drop()
    if kind == "o":
        return Disable()
    contents = Contents(
        instant=f"2025-04-01T00:00:0{number}.000Z", type=SAMPLE.type, options=SAMPLE.options,
        format_name="parquet", null_proof=True, fingerprint=SAMPLE.fingerprint,
        fingerprint_parts={}, runs=(), roots=SAMPLE.roots, stats=SAMPLE.stats,
        locations=LocationsRef((_SHARED, replace(_SHARED, name=_part_of(number))), 1),
    )  # fmt: skip
    return Refresh(contents)


def _part_of(number: int) -> str:
    """Returns the name of this writer's part of the location list."""
    return f"part of {number}"


@pytest.mark.parametrize("kinds", ["rrd", "rod"])
def test_no_order_breaks_the_chain(kinds: str) -> None:
    """Two writers and a drop make six calls each. The rules hold for all orders and faults.

    The rules: no version is missing from the chain. Every reported version stays, and no abandoned
    version ever appears. If a version, or a writer with an unknown outcome, names a part, the part
    exists. After DROP, no query uses the index again, even if a foreign tool writes an old property
    back.
    """
    states = Model().explore(kinds)
    assert len(states) > 50_000
    ends = {writer.doing for state in states for writer in state.writers}
    assert ends >= {End.PUBLISHED, End.LOST, End.REFUSED, End.UNKNOWN}


def instead(answer: Answer, of: type[Create | ReadBack], then: Step | End) -> Rule:
    """Returns the production rule with one change: the given result of a call leads to `then`."""
    return lambda step, came: (
        then if came is answer and isinstance(step, of) else next_step(step, came)
    )


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (Model(if_absent=False), "is not there|no chain|was given up is there"),
        (Model(keep_unknown=False), "names what was deleted"),
        (Model(keep_shared=False), "names what was deleted"),
        (Model(tombstone=False), "in use again"),
        (Model(instead(Answer.NO_REPLY, Create, End.LOST)), "given up is there|applied twice"),
        (Model(instead(Answer.NO_REPLY, Create, End.PUBLISHED)), "reported is not there"),
        (Model(instead(Answer.TAKEN, Create, End.LOST)), "given up is there|applied twice"),
        (Model(instead(Answer.UNREADABLE, ReadBack, End.REFUSED)), "was deleted|given up is there"),
        (Model(instead(Answer.OTHERS, ReadBack, End.PUBLISHED)), "reported is not there"),
        (Model(instead(Answer.REFUSED, Create, End.REFUSED)), "was deleted|given up is there"),
    ],
)
def test_each_rule_is_needed(model: Model, what: str) -> None:
    """Without any one of the protocol's rules, some order reaches a forbidden state."""
    with pytest.raises(BrokenError, match=what):
        _ = [model.explore(kinds) for kinds in ("rd", "rr")]
