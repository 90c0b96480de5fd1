"""Transitions: pure functions from a version and a change to the next version.

The functions have no side effects, so that tests can apply concurrent changes in every order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sieve.errors import ConflictError
from sieve.metadata.contents import Contents
from sieve.metadata.manifest import Manifest
from sieve.metadata.options import IndexOptions
from sieve.metadata.records import CreatedBy, TableIdentity, VersionId


@dataclass(frozen=True, slots=True)
class Enable:
    """Enables the index, so that queries can use the index again."""


@dataclass(frozen=True, slots=True)
class Disable:
    """Disables the index for the queries of all sessions, until `Enable`."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Drops the index. The resulting version is a tombstone, which no version can follow."""


@dataclass(frozen=True, slots=True)
class SetOptions:
    """The next refresh builds with these options; until then, queries use the existing data."""

    options: IndexOptions


@dataclass(frozen=True, slots=True)
class Refresh:
    """New contents from a build or a compaction.

    If another writer sets options during the build, the next refresh uses those options.
    """

    contents: Contents


@dataclass(frozen=True, slots=True)
class Follow:
    """The table was renamed or moved.

    Attributes:
        table: the table's new identity.
        moved: whether the files moved together with the table, as in a rename.
    """

    table: TableIdentity
    moved: bool


Change = Enable | Disable | Drop | SetOptions | Follow | Refresh


def next_version(base: Manifest, change: Change, version_id: VersionId, by: CreatedBy) -> Manifest:
    """Returns the version after ``base`` with ``change`` applied.

    Args:
        version_id: a fresh random identity for the version.
        by: the software that makes the version.

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
    """Raises an error if ``proposed`` cannot follow ``base`` (None before version 1).

    Raises:
        ConflictError: ``base`` is a tombstone.
        ValueError: ``proposed`` belongs to another index, or has a wrong number or parent.
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
            # The option ``refresh`` does not affect the runs, so the option applies at once,
            # without a rebuild.
            built = replace(base.options, refresh=options.refresh)
            return replace(base, options=built, next_options=None if options == built else options)
        case Follow(table, moved):
            old, new = (identity.location.rstrip("/") for identity in (base.table, table))
            roots = tuple(new if moved and root == old else root for root in base.roots)
            # A copy of a Delta table's folder has the same log but other files.
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
