"""Commit: publishes version n of an index by creating ``versions/<n>.json`` if it does not exist.

While the index exists, nobody deletes a version file, so the version numbers have no gaps. Readers
can therefore find the newest version by probing numbers. A writer that resumes after a long pause
cannot publish under an old number, because the file of that number exists. If a writer does not
know whether its create request succeeded, it reads the file and compares the file's version id with
its own. The protocol is the optimistic commit of Delta Lake's log, with checks as in Iceberg's
commits to the Hive metastore.
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
"""Maximum number of times that a writer plans its version. A writer plans again if another writer
publishes first."""


def newest(store: Store, index_dir: str, hint: int = 0) -> Manifest | None:
    """Returns the newest version of an index, or None if the index has no version.

    Args:
        index_dir: the folder of the index, ``<root>/<index uuid>``.
        hint: a version number that probably exists, or 0. If the hint is wrong, the search only
            takes longer.

    Raises:
        CorruptError: the file of the newest version is damaged, or is a copy from another index or
            version number.
        UnsupportedError: a newer release of Sieve wrote the version.
        UnavailableError: the store does not answer.
    """
    number = newest_number(store, index_dir, hint)
    return None if number == 0 else read_version(store, index_dir, number)


def newest_number(store: Store, index_dir: str, hint: int = 0) -> int:
    """Returns the number of the newest version, or 0 if none exists; arguments as in `newest`."""

    def exists(number: int) -> bool:
        return store.size(version_file(index_dir, number)) is not None

    return last_of_dense(exists, hint if hint > 0 and exists(hint) else 0)


def last_of_dense(exists: Callable[[int], bool], known: int) -> int:
    """Returns the last number of a sequence without gaps; finds it by a galloping search.

    Args:
        exists: returns whether a number, 1 or more, is in the sequence. The sequence can grow
            during the search.
        known: a number in the sequence, or 0.
    """
    step = 1
    while exists(known + step):
        known += step
        step *= 2
    # Invariant: the number `known` is in the sequence, and the last probe of `known + step` failed.
    while step > 1:
        step //= 2
        if exists(known + step):
            known += step
    return known


def read_version(store: Store, index_dir: str, number: int) -> Manifest:
    """Reads one version, and checks that the file belongs to this index and this version number.

    Raises:
        GoneError: the version does not exist.
        CorruptError: the file is damaged, or is a copy from another index or version number.
        UnsupportedError: a newer release of Sieve wrote the version.
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

    If another writer publishes first, the function plans again on top of that writer's version.

    Args:
        index_dir: the folder of the index, which contains ``versions/``.
        base: the newest version that the caller knows, or None if the index has no version yet.
        make: a function that plans the next version, with a new id. The function's argument is the
            newest version or None. If no change is needed, `make` returns its argument. `publish`
            can call `make` several times, and does not catch exceptions of `make`.
        attempts: maximum number of calls of `make`.

    Returns:
        The newest version: the published version, or the last argument of `make` if no change was
        needed.

    Raises:
        ConflictError: another writer published first at every attempt, or dropped the index.
        UnknownOutcomeError: the version may be visible to readers, so the caller must not delete
            the files that it names.
        UnavailableError: the store refused a request, and the version is not visible.
        CorruptError, UnsupportedError: another writer published first, and its version cannot be
            read.
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
    """Returns whether this call published the version ``proposed``.

    If the result is False, another writer's version has the version number permanently.
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
