"""Making a version visible: whoever creates ``versions/<n>.json`` first is version n.

Versions are never deleted while the index lives, so their numbers have no gaps: the newest can be
found by probing, and a writer that was paused cannot win an old number. A create whose outcome is
not known is settled by reading the file back and comparing identities (optimistic commit as in
Delta Lake's log, with the checks that Iceberg's Hive commits taught).
"""

from __future__ import annotations

from collections.abc import Callable

from sieve.errors import (
    ConflictError,
    CorruptError,
    SieveError,
    UnavailableError,
    UnknownOutcomeError,
)
from sieve.metadata.commit_protocol import FIRST, Answer, Create, End, Step, next_step
from sieve.metadata.manifest import MANIFEST_LIMIT, Manifest, parse_manifest, render_manifest
from sieve.metadata.paths import version_file
from sieve.metadata.transitions import check_successor
from sieve.storage.interface import GoneError, Store, base_name

ATTEMPTS = 32
"""How many versions of others a writer plans on top of before it gives up."""


def newest(store: Store, index_dir: str, hint: int = 0) -> Manifest | None:
    """The newest version of an index, or None where there is none.

    Args:
        store: where the index lies.
        index_dir: its folder, ``<root>/<index uuid>``.
        hint: a version number known to exist; 0 if none. A wrong hint costs time only.

    Raises:
        CorruptError: the newest version is damaged, or belongs to another index or number.
        UnsupportedError: it was written by a newer release.
        UnavailableError: the store does not answer.
    """
    number = newest_number(store, index_dir, hint)
    return None if number == 0 else read_version(store, index_dir, number)


def newest_number(store: Store, index_dir: str, hint: int = 0) -> int:
    """The number of the newest version, 0 where there is none; arguments as for `newest`."""

    def exists(number: int) -> bool:
        return store.size(version_file(index_dir, number)) is not None

    return last_of_dense(exists, hint if hint > 0 and exists(hint) else 0)


def last_of_dense(exists: Callable[[int], bool], known: int) -> int:
    """The last number of a sequence without gaps, in O(log distance) probes.

    Args:
        exists: whether a number, 1 or more, is in the sequence; it may grow meanwhile.
        known: a number that is in it, or 0.
    """
    step = 1
    while exists(known + step):
        known += step
        step *= 2
    # known exists and known + step does not.
    while step > 1:
        step //= 2
        if exists(known + step):
            known += step
    return known


def read_version(store: Store, index_dir: str, number: int) -> Manifest:
    """One version, checked to be the one that its place says.

    Raises:
        GoneError: there is no such version.
        CorruptError: it is damaged, or was copied from another index or number.
        UnsupportedError: it was written by a newer release.
    """
    uri = version_file(index_dir, number)
    manifest = parse_manifest(store.read(uri, MANIFEST_LIMIT))
    if (manifest.index, manifest.version) != (base_name(index_dir), number):
        raise CorruptError(
            "SIEVE_MANIFEST_CORRUPT",
            f"{uri} holds version {manifest.version} of index {manifest.index}: it was copied "
            "there; drop the index and create it again",
        )
    return manifest


def publish(
    store: Store,
    index_dir: str,
    base: Manifest | None,
    make: Callable[[Manifest | None], Manifest],
    attempts: int = ATTEMPTS,
) -> Manifest:
    """Make the next version visible, planning again on top of other writers that came first.

    Args:
        store: where the index lies.
        index_dir: its folder; ``versions/`` in it exists.
        base: the newest version that the caller knows, None before version 1.
        make: plans the version after its argument, with a fresh id; it may be called repeatedly,
            and returns its argument when nothing is left to do. What it raises passes through.
        attempts: how many plans are tried.

    Returns:
        The version now in force: the one published, or the base that needed no change.

    Raises:
        ConflictError: others were faster every time, or dropped the index.
        UnknownOutcomeError: the version may or may not be visible; delete nothing it names.
        UnavailableError: the store refused before anything became visible.
        CorruptError, UnsupportedError: the version of another writer cannot be read.
        ValueError: ``make`` broke the chain, see `check_successor`.
    """
    for _ in range(attempts):
        proposed = make(base)
        if proposed is base:
            return proposed
        check_successor(base, proposed)
        if proposed.index != base_name(index_dir):
            raise ValueError(f"index {proposed.index} does not belong in {index_dir}")
        if _create(store, index_dir, proposed):
            return proposed
        base = newest(store, index_dir, hint=proposed.version)
    raise ConflictError(
        "SIEVE_PUBLISH_CONFLICT",
        f"{attempts} versions of other writers came first in {index_dir}; try again",
    )


def _create(store: Store, index_dir: str, proposed: Manifest) -> bool:
    """Whether ``proposed`` is the version of its number, now or for good another one."""
    uri = version_file(index_dir, proposed.version)
    data = render_manifest(proposed)
    step: Step | End = FIRST
    cause: SieveError | None = None
    while not isinstance(step, End):
        if isinstance(step, Create):
            answer, error = _send(store, uri, data)
        else:
            answer, error = _look(store, index_dir, proposed)
        cause, step = error or cause, next_step(step, answer)
    match step:
        case End.PUBLISHED | End.LOST:
            return step is End.PUBLISHED
        case End.REFUSED | End.DAMAGED if cause is not None:
            raise cause
    raise UnknownOutcomeError(
        "SIEVE_PUBLISH_UNKNOWN_OUTCOME",
        f"version {proposed.version} of index {proposed.name!r} ({uri}) may or may not be "
        "visible; run the statement again when the store answers",
    ) from cause


def _send(store: Store, uri: str, data: bytes) -> tuple[Answer, SieveError | None]:
    try:
        return (Answer.MADE if store.create(uri, data) else Answer.TAKEN), None
    except UnknownOutcomeError as error:
        return Answer.NO_REPLY, error
    except UnavailableError as error:
        return Answer.REFUSED, error


def _look(store: Store, index_dir: str, proposed: Manifest) -> tuple[Answer, SieveError | None]:
    try:
        there = read_version(store, index_dir, proposed.version)
    except GoneError:
        return Answer.ABSENT, None
    except UnavailableError as error:
        return Answer.UNREADABLE, error
    except CorruptError as error:
        return Answer.DAMAGED, error
    return (Answer.OURS if there.id == proposed.id else Answer.OTHERS), None
