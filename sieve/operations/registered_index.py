"""The indexes that a table has registered, each in the state in which it is found.

A registration is a property of the table. It says where an index lies, not whether one is there:
the folder may be out of reach, damaged, gone, or left by a drop that was cut short. So opening one
gives a record of one of these states, and an operation takes the states that it can work on::

    match open_index(name, registration, identity, environment):
        case Ready() | Disabled() as index: ...  # has a store and a version in force
        case Gone() | HalfDropped(): ...         # its name is free
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from sieve.environment import Environment
from sieve.errors import (
    DeniedError,
    InvalidInputError,
    RootRefusedError,
    SieveError,
    UnavailableError,
    UnsupportedError,
)
from sieve.metadata.commit import newest
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.registration import Registration
from sieve.storage.interface import GoneError, Store


@dataclass(frozen=True, slots=True)
class _Registered:
    """What is known of an index in any state.

    Attributes:
        name: as registered, lower case.
        registration: what the table says of it.
    """

    name: str
    registration: Registration

    state: ClassVar[str]
    """The word for it in statements and messages."""

    @property
    def directory(self) -> str:
        """Its folder."""
        return self.registration.directory


@dataclass(frozen=True, slots=True)
class _Usable(_Registered):
    """An index with a version in force.

    Attributes:
        store: where it lies.
        manifest: the version in force.
    """

    store: Store
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Ready(_Usable):
    """Queries use it."""

    state: ClassVar[str] = "ready"


@dataclass(frozen=True, slots=True)
class Disabled(_Usable):
    """No query uses it until it is enabled."""

    state: ClassVar[str] = "disabled"


@dataclass(frozen=True, slots=True)
class _Unusable(_Registered):
    """An index without a version to work on.

    Attributes:
        problem: why.
        store: where it lies; None where it may not lie there, or the store cannot be opened.
    """

    problem: str
    store: Store | None


@dataclass(frozen=True, slots=True)
class RootRefused(_Unusable):
    """The property leads to a place that is not meant for indexes of this table."""

    state: ClassVar[str] = "root-refused"


@dataclass(frozen=True, slots=True)
class Unreachable(_Unusable):
    """The store does not answer, so nobody can tell now what there is.

    Attributes:
        cause: what the store, or its file system, said.
    """

    cause: UnavailableError

    state: ClassVar[str] = "failed"

    def error(self) -> UnavailableError:
        """The error of an operation that must know."""
        if isinstance(self.cause, DeniedError):
            return DeniedError(
                self.cause.condition, f"index {self.name} cannot be used: {self.problem}"
            )
        return UnavailableError(
            self.cause.condition,
            f"index {self.name} cannot be looked at now: {self.problem}; run the statement "
            "again when its store answers",
        )


@dataclass(frozen=True, slots=True)
class Failed(_Unusable):
    """Its newest version is damaged, or of a later release."""

    state: ClassVar[str] = "failed"


@dataclass(frozen=True, slots=True)
class Gone(_Unusable):
    """There is no index of this table: no folder, no version, or that of another table."""

    state: ClassVar[str] = "gone"


@dataclass(frozen=True, slots=True)
class HalfDropped(_Unusable):
    """It has its tombstone, but the drop did not come to its end."""

    state: ClassVar[str] = "gone"


Usable: TypeAlias = Ready | Disabled
RegisteredIndex: TypeAlias = Usable | RootRefused | Unreachable | Failed | Gone | HalfDropped


def usable(index: RegisteredIndex) -> Usable:
    """The index, if it has a version in force.

    Raises:
        UnavailableError: the store does not tell.
        UnsupportedError: it has none.
    """
    if isinstance(index, Ready | Disabled):
        return index
    check_reachable(index)
    raise _not_usable(index)


def check_reachable(index: RegisteredIndex) -> None:
    """Raise UnavailableError where what is seen of an index may not be what there is."""
    if isinstance(index, Unreachable):
        raise index.error()


def store_of(index: RegisteredIndex) -> Store:
    """Where an index lies. Raises UnsupportedError where it may not, or cannot be reached."""
    if index.store is None:
        raise _not_usable(index)
    return index.store


def only_usable(indexes: Iterable[RegisteredIndex]) -> list[Usable]:
    """Those that have a version in force."""
    return [index for index in indexes if isinstance(index, Ready | Disabled)]


def is_gone(index: RegisteredIndex) -> bool:
    """Whether another index may take its name."""
    return isinstance(index, Gone | HalfDropped)


def _not_usable(index: RegisteredIndex) -> UnsupportedError:
    problem = index.problem if isinstance(index, _Unusable) else ""
    what_to_do = f"; DROP SIEVE INDEX {index.name} and create it again"
    return UnsupportedError(
        "SIEVE_INDEX_NOT_USABLE",
        f"index {index.name} is {index.state}: {problem}"
        f"{'' if isinstance(index, RootRefused) else what_to_do}",
    )


def open_index(
    name: str, registration: Registration, identity: TableIdentity, environment: Environment
) -> RegisteredIndex:
    """One registered index in whatever state it is; what is wrong becomes part of the state.

    Args:
        name: as registered.
        registration: what the table says of it.
        identity: of the table.
        environment: the means.
    """
    store: Store | None = None
    try:
        # First of all: a property must not lead to any place that is not meant for indexes.
        environment.check_root(registration.root, identity.database)
        store = environment.open_store(registration.root)
        manifest = newest(store, registration.directory)
    except SieveError as error:
        return _without_version(name, registration, store, error)
    if manifest is None:
        return Gone(name, registration, f"{registration.directory} holds no version", store)
    ours = same_table(manifest.table, identity)
    if manifest.state == "dropped":
        return (HalfDropped if ours else Gone)(name, registration, "it was dropped", store)
    if not ours:
        return Gone(name, registration, f"it belongs to {_label(manifest.table)}", store)
    return with_version(name, registration, store, manifest)


def _without_version(
    name: str, registration: Registration, store: Store | None, error: SieveError
) -> RegisteredIndex:
    match error:
        case RootRefusedError():
            return RootRefused(name, registration, error.message, store)
        case GoneError():
            return Gone(name, registration, error.message, store)
        case UnavailableError():
            return Unreachable(name, registration, error.message, store, error)
        case _:
            return Failed(name, registration, error.message, store)


def with_version(name: str, registration: Registration, store: Store, manifest: Manifest) -> Usable:
    """The index whose version in force is known; one that is no tombstone."""
    kind = Disabled if manifest.state == "disabled" else Ready
    return kind(name, registration, store, manifest)


def list_indexes(
    registrations: Mapping[str, Registration], identity: TableIdentity, environment: Environment
) -> dict[str, RegisteredIndex]:
    """All indexes of a table by name."""
    return {
        name: open_index(name, registration, identity, environment)
        for name, registration in registrations.items()
    }


def select(
    indexes: Mapping[str, RegisteredIndex],
    table: str,
    name: str | None,
    column: Sequence[str] | None,
) -> list[RegisteredIndex]:
    """The indexes a statement means: one by name or column, or all.

    Args:
        indexes: of the table, by name.
        table: its name for messages.
        name: of one index, without case; None: not by name.
        column: path of an indexed column, without case; None: not by column.

    Raises:
        InvalidInputError: there is none of that name or on that column; suggests near names.
    """
    if name is not None:
        if name.lower() in indexes:
            return [indexes[name.lower()]]
        near = difflib.get_close_matches(name.lower(), list(indexes), n=3, cutoff=0.5)
        hint = (
            f"did you mean {', '.join(near)}?"
            if near
            else f"it has {', '.join(indexes)}"
            if indexes
            else "it has no index"
        )
        raise InvalidInputError("SIEVE_UNKNOWN_INDEX", f"table {table} has no index {name}; {hint}")
    if column is not None:
        wanted = [part.lower() for part in column]
        chosen = [
            index
            for index in indexes.values()
            if [part.lower() for part in index.registration.column] == wanted
        ]
        if not chosen:
            raise InvalidInputError(
                "SIEVE_UNKNOWN_INDEX", f"table {table} has no index on {'.'.join(column)}"
            )
        return chosen
    return list(indexes.values())


def _label(identity: TableIdentity) -> str:
    return f"table {identity.database}.{identity.table} at {identity.location}"
