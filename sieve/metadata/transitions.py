"""Transitions: pure functions that compute the next version from a version and a change.

The functions have no side effects, so a test can apply concurrent changes in every order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sieve.errors import ConflictError
from sieve.metadata.contents import Contents
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import CreatedBy, TableIdentity, VersionId


@dataclass(frozen=True, slots=True)
class Enable:
    """The change that enables the index, so that queries use it again."""


@dataclass(frozen=True, slots=True)
class Disable:
    """The change that disables the index for the queries of all sessions, until an `Enable`."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The change that drops the index.

    The resulting version is a tombstone, which no version can follow.
    """


@dataclass(frozen=True, slots=True)
class SetOptions:
    """The change that sets the options of the next build.

    Until a refresh builds with the new options, queries use the existing runs.
    """

    options: IndexOptions


@dataclass(frozen=True, slots=True)
class Refresh:
    """The change that replaces a version's contents by the result of a build or a compaction.

    If another writer sets options during the build, the next refresh uses those options.
    """

    contents: Contents


@dataclass(frozen=True, slots=True)
class Follow:
    """The change that records that the table was renamed or moved.

    Attributes:
        table: the table's new identity.
        moved: whether the table's files moved to the new location, as in a rename.
    """

    table: TableIdentity
    moved: bool


Change = Enable | Disable | Drop | SetOptions | Follow | Refresh


def next_version(base: Manifest, change: Change, version_id: VersionId, by: CreatedBy) -> Manifest:
    """Returns the version that results from applying ``change`` to ``base``.

    Args:
        version_id: a new random id for the resulting version.
        by: the releases of Sieve and Spark that make the version.

    Returns:
        The next version, or ``base`` itself if the change has no effect.

    Raises:
        ConflictError: the index has been dropped.
    """
    _refuse_dropped(base)
    changed = _changed(base, change)
    if changed == base:
        return base
    return replace(
        changed,
        version=base.version + 1,
        id=version_id,
        parent=base.id,
        created_by=by,
        is_outdated=False,
    )


def check_successor(base: Manifest | None, proposed: Manifest) -> None:
    """Raises an error if ``proposed`` cannot follow ``base``, which is None before version 1.

    Raises:
        ConflictError: ``base`` is a tombstone.
        ValueError: ``proposed`` belongs to another index, or its number or parent does not fit
            ``base``.
    """
    if base is not None:
        _refuse_dropped(base)
    number, parent = (1, None) if base is None else (base.version + 1, base.id)
    if (proposed.version, proposed.parent) != (number, parent):
        raise ValueError(
            f"version {proposed.version} with parent {proposed.parent} cannot follow {parent}; "
            f"wanted version {number}"
        )
    if base is not None and proposed.index != base.index:
        raise ValueError(f"index {proposed.index} cannot follow index {base.index}")


def _changed(base: Manifest, change: Change) -> Manifest:
    match change:
        case Enable():
            return replace(base, state="ready")
        case Disable():
            return replace(base, state="disabled")
        case Drop():
            return replace(base, state="dropped")
        case SetOptions(options):
            # The option ``refresh`` does not affect the runs, so its new value takes effect at
            # once, without a rebuild.
            built = replace(base.options, refresh=options.refresh)
            return replace(base, options=built, next_options=None if options == built else options)
        case Follow(table, moved):
            old, new = (identity.location.rstrip("/") for identity in (base.table, table))
            roots = tuple(new if moved and root == old else root for root in base.roots)
            # If the files did not move with the table, the folder can be a copy. A copy of a Delta
            # table's folder has the same log but other files, so the new version records no commit.
            commit = base.commit if moved else None
            return replace(base, table=table, roots=roots, commit=commit)
        case Refresh(contents):
            wanted = base.wanted_options
            built = replace(contents.options, refresh=wanted.refresh)
            left = None if wanted == built else wanted
            return replace(base, **contents.members() | {"options": built}, next_options=left)


def _refuse_dropped(base: Manifest) -> None:
    if base.state == "dropped":
        raise ConflictError(
            "SIEVE_INDEX_DROPPED",
            f"index {base.name!r} on {base.table.database}.{base.table.table} was dropped in "
            f"version {base.version}; create it again",
        )
