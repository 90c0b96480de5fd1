"""CREATE: builds and registers one or more indexes; if one index fails, CREATE creates none."""

from __future__ import annotations

import contextlib
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sieve.encoding.encoder import Encoder
from sieve.environment import Environment
from sieve.errors import InvalidInputError, SieveError, UnavailableError, UnknownOutcomeError
from sieve.indexing.version_contents import build_contents
from sieve.metadata.commit import publish
from sieve.metadata.contents import Contents
from sieve.metadata.creation_record import delete_index, remove_abandoned, write_creation_record
from sieve.metadata.index_options import AUTO, IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import REGISTERED, pending_writes_dir, versions_dir
from sieve.metadata.pending_writes import release
from sieve.metadata.records import IndexUuid, VersionId
from sieve.metadata.registration import Registration, property_key
from sieve.operations.drop import end_index
from sieve.operations.index_name import Wanted
from sieve.operations.registered_index import RegisteredIndex
from sieve.storage.interface import Store, join
from sieve.tables.snapshot import snapshot_of
from sieve.tables.table import CatalogTable


@dataclass(frozen=True, slots=True)
class _Begun:
    """An index that CREATE has begun: its folder and its creation record exist."""

    wanted: Wanted
    registration: Registration
    store: Store
    directory: str


def create_indexes(
    table: CatalogTable,
    wanted: Sequence[Wanted],
    options: IndexOptions,
    comment: str | None,
    environment: Environment,
    built: Callable[[], None] = lambda: None,
    replaced: Mapping[str, RegisteredIndex] = MappingProxyType({}),
) -> list[Manifest]:
    """Creates indexes on a table.

    Args:
        options: the options, which are the same for all indexes.
        comment: the comment, which is the same for all indexes.
        built: a function that `create_indexes` calls after the build of each index.
        replaced: existing indexes with the same names. CREATE drops the replaced indexes after it
            has registered all new indexes.

    Returns:
        Version 1 of each index, in the order of `wanted`.

    Raises:
        UnsupportedError: Sieve cannot index a column's type, the store cannot restrict access to
            the index's folder, or other sessions would ignore an index in this folder.
        UnknownOutcomeError: the store did not confirm a version. Because the version may exist, its
            files remain.
    """
    for one in wanted:
        check_wanted(table, one, options)
    environment.check_shared(
        environment.root_for_new(table.info.database_location), table.info.identity.namespace
    )
    begun: list[_Begun] = []
    versions: list[Manifest] = []
    registered: list[_Begun] = []
    _sweep(table, environment)
    try:
        for one in wanted:
            begun.append(_begin(table, one, options, environment))
            versions.append(_build(table, begun[-1], options, comment, environment))
            built()
        environment.check_cancelled()
        environment.changing()
        for index in begun:
            table.register(index.wanted.name, index.registration)
            registered.append(index)
        for index in begun:
            index.store.create(join(index.directory, REGISTERED), b"")
    except UnknownOutcomeError:
        raise
    except BaseException:
        _undo(table, begun, registered, replaced)
        raise
    for name, old in replaced.items():
        try:
            end_index(old, table.info.identity, environment)
        except SieveError as error:
            environment.advice.add(
                f"index {name} is replaced, but files of the one before are left: {error.message}; "
                "VACUUM SIEVE INDEXES removes them"
            )
    return versions


def check_wanted(table: CatalogTable, one: Wanted, options: IndexOptions) -> None:
    """Raises UnsupportedError or InvalidInputError if CREATE cannot create this index."""
    property_key(one.name)
    try:
        Encoder.for_type(one.column.type)
    except SieveError as error:
        raise type(error)(
            error.condition, f"{one.column} of {table.info.label}: {error.message}"
        ) from error
    if options.shape == "map" and one.column.type == "boolean":
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"shape 'map' is for columns of many keys, and {one.column} is a boolean; omit the "
            "option shape",
        )


def _begin(
    table: CatalogTable, one: Wanted, options: IndexOptions, environment: Environment
) -> _Begun:
    info = table.info
    root = environment.root_for_new(info.database_location)
    store = environment.open_store(root)
    registration = Registration(
        IndexUuid(str(uuid.uuid4())), one.column.key, root, options.refresh == AUTO
    )
    directory = join(root, registration.uuid)
    try:
        store.mkdirs(directory)
    except UnavailableError as error:
        raise type(error)(
            error.condition,
            f"{error.message}; an index needs a folder that you may write to: name one with "
            "spark.sieve.path, and list it in spark.sieve.roots for all who are to use the index",
        ) from error
    index = _Begun(one, registration, store, directory)
    try:
        # Set permissions while the folder is still empty. Then users without access to the table
        # can never read the table's keys in the index.
        tables = environment.open_store(info.identity.location)
        store.restrict(directory, tables.permissions(info.identity.location))
        write_creation_record(store, directory, one.name, info.identity)
        for folder in (
            versions_dir(directory),
            pending_writes_dir(directory),
            join(directory, "runs"),
            join(directory, "locations"),
        ):
            store.mkdirs(folder)
    except BaseException:
        _undo(table, [index], [], {})
        raise
    return index


def _build(
    table: CatalogTable,
    index: _Begun,
    options: IndexOptions,
    comment: str | None,
    environment: Environment,
) -> Manifest:
    one = index.wanted
    contents = build_contents(
        table,
        one.column,
        options,
        index.store,
        index.directory,
        environment,
        snapshot_of(table, index.store, index.directory),
        name=one.name,
    )
    first = _first_version(table, index, contents, comment, environment)
    version = publish(index.store, index.directory, None, lambda _: first, attempts=1)
    release(index.store, index.directory, version)
    return version


def _first_version(
    table: CatalogTable,
    index: _Begun,
    contents: Contents,
    comment: str | None,
    environment: Environment,
) -> Manifest:
    return Manifest(
        index=index.registration.uuid,
        version=1,
        id=VersionId(secrets.token_hex(16)),
        parent=None,
        state="ready",
        table=table.info.identity,
        name=index.wanted.name,
        column=index.wanted.column.key,
        comment=comment,
        next_options=None,
        created_by=environment.software,
        **contents.members(),
    )


def _undo(
    table: CatalogTable,
    begun: Sequence[_Begun],
    registered: Sequence[_Begun],
    replaced: Mapping[str, RegisteredIndex],
) -> None:
    """Undoes a failed CREATE: removes its registrations first, then the files of its indexes."""
    kept = set()
    for index in registered:
        name, own = index.wanted.name, index.registration
        try:
            if name in replaced:
                table.register(name, replaced[name].registration, in_place_of=own)
            else:
                table.unregister(name, own)
        except SieveError:
            # The registration of this complete index still exists, so the index's files must
            # remain.
            kept.add(index.directory)
    for index in begun:
        if index.directory not in kept:
            # If this deletion fails, too, its error must not hide the error of CREATE.
            with contextlib.suppress(SieveError):
                delete_index(index.store, index.directory)


def _sweep(table: CatalogTable, environment: Environment) -> None:
    """Deletes index folders of the table that an earlier CREATE left because its process died."""
    root = environment.root_for_new(table.info.database_location)
    known = {registration.uuid for registration in table.info.registrations.values()}
    # If this deletion fails, CREATE still creates the new index.
    with contextlib.suppress(SieveError):
        remove_abandoned(environment.open_store(root), root, table.info.identity, known)
