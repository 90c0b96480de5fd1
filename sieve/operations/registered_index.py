"""Registered indexes of a table. Each index is a record; its class is the state of the index.

A registration is a table property that names the index's folder. A registered index need not be
usable: its folder can be unreachable, damaged, missing, or half deleted by a DROP. `open_index`
returns the record. Each operation accepts some of the states::

    match open_index(name, registration, identity, environment):
        case Ready() | Disabled() as index: ...  # has a store and a current version
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
from sieve.index_key import shown
from sieve.metadata.commit import newest
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import IndexUuid, TableIdentity, same_table
from sieve.metadata.registration import PREFIX, Registration
from sieve.storage.interface import GoneError, Store
from sieve.tables.names import same_value


@dataclass(frozen=True, slots=True)
class _Registered:
    """The members that the records of all states have.

    Attributes:
        name: the index's name as registered, in lower case.
    """

    name: str
    registration: Registration

    state: ClassVar[str]
    """The name of the state that users see in results and messages."""

    @property
    def directory(self) -> str:
        """URI of the index's folder."""
        return self.registration.directory


@dataclass(frozen=True, slots=True)
class _Usable(_Registered):
    """An index whose newest version is readable and is not a tombstone (the version of a DROP).

    Attributes:
        manifest: the manifest of the newest version.
    """

    store: Store
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Ready(_Usable):
    """An index that queries may use."""

    state: ClassVar[str] = "ready"


@dataclass(frozen=True, slots=True)
class Disabled(_Usable):
    """An index that no query uses until a user enables it."""

    state: ClassVar[str] = "disabled"


@dataclass(frozen=True, slots=True)
class _Unusable(_Registered):
    """An index without a usable version.

    Attributes:
        problem: the reason why the index is not usable.
        store: the store that contains the index; None if Sieve refuses the folder or cannot open
            the store.
    """

    problem: str
    store: Store | None


@dataclass(frozen=True, slots=True)
class RootRefused(_Unusable):
    """The registration names a folder outside the roots in which this table may have indexes."""

    state: ClassVar[str] = "root-refused"


@dataclass(frozen=True, slots=True)
class Unreachable(_Unusable):
    """The store does not answer, so the state of the index is unknown.

    Attributes:
        cause: the error that the store or its file system raised.
    """

    cause: UnavailableError

    state: ClassVar[str] = "failed"

    def error(self) -> UnavailableError:
        """The error for operations that cannot run while the index's state is unknown."""
        if isinstance(self.cause, DeniedError):
            return DeniedError(
                self.cause.condition, f"index {self.name} cannot be used: {self.problem}"
            )
        return UnavailableError(
            self.cause.condition,
            f"index {self.name} cannot be read now: {self.problem}; run the statement "
            "again when its store answers",
        )


@dataclass(frozen=True, slots=True)
class Failed(_Unusable):
    """The newest version is damaged, or a later release wrote it."""

    state: ClassVar[str] = "failed"


@dataclass(frozen=True, slots=True)
class Gone(_Unusable):
    """The folder of the index is missing, has no version, or belongs to another table."""

    state: ClassVar[str] = "gone"


@dataclass(frozen=True, slots=True)
class HalfDropped(_Unusable):
    """A DROP published the tombstone, but stopped before it removed the registration."""

    state: ClassVar[str] = "gone"


@dataclass(frozen=True, slots=True)
class Malformed(_Unusable):
    """This release cannot parse the index's registration."""

    state: ClassVar[str] = "malformed"

    @property
    def directory(self) -> str:
        """Returns an empty string, because the index's folder is unknown."""
        return ""


Usable: TypeAlias = Ready | Disabled
RegisteredIndex: TypeAlias = (
    Usable | RootRefused | Unreachable | Failed | Gone | HalfDropped | Malformed
)


def usable(index: RegisteredIndex) -> Usable:
    """Returns the index if it is `Ready` or `Disabled`.

    Raises:
        UnavailableError: the store does not answer.
        UnsupportedError: the index has no usable version.
    """
    if isinstance(index, Ready | Disabled):
        return index
    check_reachable(index)
    raise _not_usable(index)


def check_reachable(index: RegisteredIndex) -> None:
    """Raises UnavailableError if an index's state is unknown because its store does not answer."""
    if isinstance(index, Unreachable):
        raise index.error()


def store_of(index: RegisteredIndex) -> Store:
    """The store of an index. Raises UnsupportedError if Sieve has not opened the store."""
    if index.store is None:
        raise _not_usable(index)
    return index.store


def only_usable(indexes: Iterable[RegisteredIndex]) -> list[Usable]:
    """Returns the indexes that are `Ready` or `Disabled`."""
    return [index for index in indexes if isinstance(index, Ready | Disabled)]


def is_gone(index: RegisteredIndex) -> bool:
    """Returns whether a new index can take the name of this index."""
    return isinstance(index, Gone | HalfDropped | Malformed)


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
    """Opens a registered index. If the index is unreadable, the result contains the error.

    Args:
        name: the registered name.
    """
    store: Store | None = None
    try:
        # Checks the root first, because a registration must not make Sieve open a location outside
        # the allowed roots.
        environment.check_root(registration.root, identity.namespace)
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
    """Returns the record of an index, given its newest version, which must not be a tombstone."""
    kind = Disabled if manifest.state == "disabled" else Ready
    return kind(name, registration, store, manifest)


def list_indexes(
    registrations: Mapping[str, Registration],
    malformed: Iterable[str],
    identity: TableIdentity,
    environment: Environment,
) -> dict[str, RegisteredIndex]:
    """Opens all indexes of a table; returns a dict by name, with malformed indexes at the end."""
    opened = {
        name: open_index(name, registration, identity, environment)
        for name, registration in registrations.items()
    }
    return opened | {name: _malformed(name) for name in malformed}


def _malformed(name: str) -> Malformed:
    problem = (
        f"the table property {PREFIX}{name} is no registration that this release can read; "
        "REFRESH SIEVE INDEX registers the index again if its files are there"
    )
    return Malformed(name, Registration(IndexUuid(""), (), ""), problem, None)


def select(
    indexes: Mapping[str, RegisteredIndex],
    table: str,
    name: str | None,
    column: Sequence[str] | None,
) -> list[RegisteredIndex]:
    """Returns the indexes that a statement selects by name or by column, or all indexes of a table.

    Args:
        table: the table's name in messages.
        name: name of one index, case-insensitive; None if the statement does not name an index.
        column: path of an indexed column, case-insensitive; None if the statement does not name a
            column.

    Raises:
        InvalidInputError: the table has no index with this name or on this column. The message
            suggests similar names.
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
        chosen = [
            index for index in indexes.values() if same_value(index.registration.column, column)
        ]
        if not chosen:
            raise InvalidInputError(
                "SIEVE_UNKNOWN_INDEX", f"table {table} has no index on {shown(column)}"
            )
        return chosen
    return list(indexes.values())


def _label(identity: TableIdentity) -> str:
    return f"table {identity.namespace}.{identity.table} at {identity.location}"
