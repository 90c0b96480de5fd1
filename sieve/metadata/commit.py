"""Commit: publishes version n by creating ``versions/<n>.json``; the first creator wins.

While an index exists, none of its versions is deleted, so the numbers have no gaps. Therefore a
reader finds the newest version by probing numbers. A writer that was paused for a long time cannot
publish a version with an old number. If the outcome of a create is unknown, the writer reads the
file again, and compares the identity in the file with its own. This is the optimistic commit of
Delta Lake's log, with checks learned from Iceberg's Hive commits.
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
"""The maximum number of plans that a writer makes on top of other writers' versions."""


def newest(store: Store, index_dir: str, hint: int = 0) -> Manifest | None:
    """The newest version of an index, or None if there is none.

    Args:
        index_dir: the folder of the index, ``<root>/<index uuid>``.
        hint: a version number known to exist, or 0. A wrong hint costs time only.

    Raises:
        CorruptError: the newest version is damaged, or belongs to another index or number.
        UnsupportedError: a newer release wrote the version.
        UnavailableError: the store does not answer.
    """
    number = newest_number(store, index_dir, hint)
    return None if number == 0 else read_version(store, index_dir, number)


def newest_number(store: Store, index_dir: str, hint: int = 0) -> int:
    """The number of the newest version, or 0 without versions; same arguments as `newest`."""

    def exists(number: int) -> bool:
        return store.size(version_file(index_dir, number)) is not None

    return last_of_dense(exists, hint if hint > 0 and exists(hint) else 0)


def last_of_dense(exists: Callable[[int], bool], known: int) -> int:
    """Finds the last number of a sequence without gaps by a galloping search.

    Args:
        exists: whether a number, 1 or more, is in the sequence, which can grow during the search.
        known: a number in the sequence, or 0.
    """
    step = 1
    while exists(known + step):
        known += step
        step *= 2
    # Invariant: the number `known` exists, and `known + step` does not.
    while step > 1:
        step //= 2
        if exists(known + step):
            known += step
    return known


def read_version(store: Store, index_dir: str, number: int) -> Manifest:
    """Reads one version, and checks its index and number.

    Raises:
        GoneError: the version does not exist.
        CorruptError: the version is damaged, or was copied from another index or number.
        UnsupportedError: a newer release wrote the version.
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
    """Publishes the next version.

    After a conflict, plans again on top of the other writer's version.

    Args:
        index_dir: the folder of the index, which contains ``versions/``.
        base: the newest version that the caller knows, or None before version 1.
        make: a function that plans the version after its argument, with a fresh id. `publish` can
            call it repeatedly. `make` returns its argument if there is nothing to do. `publish`
            raises the exceptions of `make` unchanged.
        attempts: maximum number of plans.

    Returns:
        The newest version: the published version, or the base if no change was needed.

    Raises:
        ConflictError: other writers published first at every attempt, or dropped the index.
        UnknownOutcomeError: the version is possibly visible; delete no file that the version names.
        UnavailableError: the store refused before the version became visible.
        CorruptError, UnsupportedError: the version of another writer cannot be read.
        ValueError: `check_successor` rejects the version that ``make`` returned.
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
        f"other writers published {attempts} versions in {index_dir} first; try again",
    )


def _create(store: Store, index_dir: str, proposed: Manifest) -> bool:
    """Returns whether the version ``proposed`` is published.

    The result is false if another version has taken the number permanently.
    """
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
