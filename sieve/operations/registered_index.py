"""The indexes a table has: its registrations, each with the version in force or what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
class Found:
    """A registered index.

    Attributes:
        name: as registered, lower case.
        registration: what the table says of it.
        directory: its folder.
        manifest: the version in force; None where there is none to use.
        state: ready, disabled, root-refused, failed or gone.
        problem: why it is root-refused, failed or gone.
        opened: the store, where it may be used.
        half_dropped: it has its tombstone, but a drop did not come to its end.
        unanswered: why nobody can tell now what it is: the store did not answer.
    """

    name: str
    registration: Registration
    directory: str
    manifest: Manifest | None
    state: str
    problem: str = ""
    opened: Store | None = None
    half_dropped: bool = False
    unanswered: UnavailableError | None = None

    def check_answered(self) -> None:
        """Raise UnavailableError where what is seen of it may not be what there is."""
        if isinstance(self.unanswered, DeniedError):
            raise DeniedError(
                self.unanswered.condition, f"index {self.name} cannot be used: {self.problem}"
            )
        if self.unanswered is not None:
            raise UnavailableError(
                self.unanswered.condition,
                f"index {self.name} cannot be looked at now: {self.problem}; run the statement "
                "again when its store answers",
            )

    @property
    def store(self) -> Store:
        """Where it lies. Raises UnsupportedError where it may not lie or cannot be reached."""
        if self.opened is None:
            raise self._unusable()
        return self.opened

    def need(self) -> Manifest:
        """The version in force.

        Raises:
            UnavailableError: the store did not tell.
            UnsupportedError: there is none.
        """
        self.check_answered()
        if self.manifest is None:
            raise self._unusable()
        return self.manifest

    def _unusable(self) -> UnsupportedError:
        what_to_do = f"; DROP SIEVE INDEX {self.name} and create it again"
        return UnsupportedError(
            "SIEVE_INDEX_NOT_USABLE",
            f"index {self.name} is {self.state}: {self.problem}"
            f"{'' if self.state == 'root-refused' else what_to_do}",
        )


def look_up(
    name: str, registration: Registration, identity: TableIdentity, environment: Environment
) -> Found:
    """One registered index, whatever state it is in; what is wrong becomes its problem."""
    directory = registration.directory
    store: Store | None = None

    def found(manifest: Manifest | None, state: str, problem: str = "") -> Found:
        return Found(name, registration, directory, manifest, state, problem, store)

    try:
        # First of all: a property must not lead to any place that is not meant for indexes.
        environment.check_root(registration.root, identity.database)
        store = environment.open_store(registration.root)
        manifest = newest(store, directory)
    except (RootRefusedError, GoneError) as error:
        state = "gone" if isinstance(error, GoneError) else "root-refused"
        return found(None, state, error.message)
    except SieveError as error:
        unanswered = error if isinstance(error, UnavailableError) else None
        return replace(found(None, "failed", error.message), unanswered=unanswered)
    if manifest is None:
        return found(None, "gone", f"{directory} holds no version")
    if manifest.state == "dropped":
        ours = same_table(manifest.table, identity)
        return replace(found(None, "gone", "it was dropped"), half_dropped=ours)
    if not same_table(manifest.table, identity):
        return found(None, "gone", f"it belongs to {_label(manifest.table)}")
    return found(manifest, manifest.state)


def choose(
    found: Mapping[str, Found], table: str, name: str | None, column: Sequence[str] | None
) -> list[Found]:
    """The indexes a statement means: one by name or column, or all.

    Raises:
        InvalidInputError: there is none of that name or on that column; suggests near names.
    """
    if name is not None:
        if name.lower() in found:
            return [found[name.lower()]]
        near = difflib.get_close_matches(name.lower(), list(found), n=3, cutoff=0.5)
        hint = (
            f"did you mean {', '.join(near)}?"
            if near
            else f"it has {', '.join(found)}"
            if found
            else "it has no index"
        )
        raise InvalidInputError("SIEVE_UNKNOWN_INDEX", f"table {table} has no index {name}; {hint}")
    if column is not None:
        wanted = [part.lower() for part in column]
        chosen = [f for f in found.values() if [p.lower() for p in f.registration.column] == wanted]
        if not chosen:
            raise InvalidInputError(
                "SIEVE_UNKNOWN_INDEX", f"table {table} has no index on {'.'.join(column)}"
            )
        return chosen
    return list(found.values())


def all_of(
    registrations: Mapping[str, Registration], identity: TableIdentity, environment: Environment
) -> dict[str, Found]:
    """All indexes of a table by name."""
    return {
        name: look_up(name, registration, identity, environment)
        for name, registration in registrations.items()
    }


def _label(identity: TableIdentity) -> str:
    return f"table {identity.database}.{identity.table} at {identity.location}"
