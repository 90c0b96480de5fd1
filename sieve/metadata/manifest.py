"""Manifest: the immutable record of one version of an index, and the record's JSON file.

The file is one line of ASCII JSON. The file's last member, ``"checksum"``, is the SHA-256, in hex,
of the text without that member. Manifests of every format end with a checksum, so a reader can
distinguish a damaged file from an intact file of a newer format.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sieve.errors import CorruptError, InvalidInputError, UnsupportedError
from sieve.index_key import Key, expression_of
from sieve.metadata.column_reader import changed_parts
from sieve.metadata.contents import Contents
from sieve.metadata.index_options import AUTO, MANUAL, IndexOptions, stored_options
from sieve.metadata.json_reader import Fields
from sieve.metadata.paths import HEX_ID, LOCATIONS_FILE, RUN_FILE, UUID
from sieve.metadata.records import (
    BuildStats,
    Commit,
    CreatedBy,
    Expected,
    IndexUuid,
    LocationsRef,
    PartRef,
    RunFileRef,
    RunId,
    RunRef,
    State,
    TableIdentity,
    VersionId,
)

FORMAT = 4
MANIFEST_LIMIT = 32 << 20
"""The maximum length of a manifest in bytes; readers refuse a longer manifest."""

MAX_LOCATIONS = (1 << 31) - 1
MAX_RUNS = 10_000
MAX_KINDS = 100
MAX_FILES = 100_000
MAX_RANGES = 10_000
MAX_ROOTS = 100_000
MAX_FINGERPRINT_PARTS = 1_000
MAX_PARTS = 64
LONG_TEXT = 4 << 20
ENCODER_TEXT = 32 << 10

MEMBERS = (
    *("index", "version", "id", "parent", "instant", "state", "table", "name", "column", "type"),
    *("comment", "options", "next_options", "format_name", "null_proof", "fingerprint"),
    *("fingerprint_parts", "runs", "locations", "roots", "stats", "created_by"),
)
"""The members of a manifest file between ``format`` and ``checksum``, in the order of the file."""

_STATES: Mapping[str, State] = {
    "ready": "ready",
    "disabled": "disabled",
    "dropped": "dropped",
}
_CHECKSUM = re.compile(rb',"checksum":"([0-9a-f]{64})"\}')
_CHECKSUM_BYTES = len(',"checksum":""}') + 64
_SHA256 = re.compile(r"[0-9a-f]{64}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_ROOT = re.compile(r"[a-z][a-z0-9+.-]*:/[^\0]*")
_FORMAT_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,99}")
_NO_STATS = BuildStats(0, 0, 0, 0, 0.0, (), 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Contents):
    """The record of one version of an index: its contents and its metadata.

    Attributes:
        index: the unique id of the index.
        version: the version's number. An index's versions are numbered from 1 without gaps.
        id: the random id of this version.
        parent: the id of the previous version, or None for version 1.
        state: whether the index is enabled for queries, disabled, or dropped.
        table: the identity of the indexed table at the index's creation, or after the table's last
            rename or move.
        name: the index's name, for users.
        column: the key of the indexed column or expression (see `sieve.index_key`).
        comment: the user's comment on the index.
        next_options: the options of the next refresh, or None if the next refresh uses ``options``
            again.
        created_by: the releases of Sieve and Spark that wrote this version.
        is_outdated: whether the manifest's file has an older format. Sieve skips the runs,
            locations and statistics of an older format, and the next REFRESH rebuilds the index.
    """

    index: IndexUuid
    version: int
    id: VersionId
    parent: VersionId | None
    state: State
    table: TableIdentity
    name: str
    column: tuple[str, ...]
    comment: str | None
    next_options: IndexOptions | None
    created_by: CreatedBy
    is_outdated: bool = False

    @property
    def wanted_options(self) -> IndexOptions:
        """The options with which the next refresh builds."""
        return self.next_options or self.options

    def changed_parts(self, parts: Mapping[str, str]) -> tuple[str, ...]:
        """Returns the deciding parts of the fingerprint that differ between a reader and the build.

        Returns:
            The names of the parts; if the tuple is empty, the reader can use the version.
        """
        return changed_parts(self.column, self.fingerprint_parts, parts)


def render_manifest(manifest: Manifest) -> bytes:
    """Encodes a manifest as bytes of a file; equal manifests give equal bytes.

    Raises:
        InvalidInputError: the manifest exceeds a limit of the format, so readers would refuse it.
    """
    members = asdict(manifest)
    record = {"format": FORMAT} | {name: members[name] for name in MEMBERS}
    for options in (record["options"], record["next_options"]):
        if options is not None and options["budget"] != AUTO:
            # The option ``payback`` applies only to the budget ``auto``.
            del options["payback"]
        if options is not None and options["refresh"] == MANUAL:
            # The default ``refresh = 'manual'`` is not written, because earlier releases cannot
            # read the option ``refresh``.
            del options["refresh"]
    for file in (file for run in record["runs"] for file in run["files"]):
        # Earlier releases cannot read the member ``signatures``.
        if not file["signatures"]:
            del file["signatures"]
    if manifest.commit is not None:
        # The member ``commit`` is written only for tables with numbered commits, because earlier
        # releases cannot read a manifest with this member.
        record["commit"] = members["commit"]
    body = json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii")
    data = body[:-1] + b',"checksum":"%s"}' % hashlib.sha256(body).hexdigest().encode("ascii")
    try:
        parse_manifest(data)
    except CorruptError as error:
        raise InvalidInputError(
            "SIEVE_MANIFEST_LIMIT",
            f"version {manifest.version} of index {manifest.name!r} cannot be stored: "
            f"{error.message}",
        ) from error
    return data


def parse_manifest(data: bytes) -> Manifest:
    """Decodes a manifest file.

    Raises:
        CorruptError: the checksum does not match the text, a member is missing or of a wrong kind,
            or a value exceeds its limit.
        UnsupportedError: condition ``SIEVE_VERSION_TOO_NEW``: the file is intact, but this release
            does not know the file's format or one of its options.
    """
    fields = Fields(_decode(_verified(data)), "manifest")
    found = fields.integer("format", low=1)
    if found > FORMAT:
        raise UnsupportedError(
            "SIEVE_VERSION_TOO_NEW",
            f"manifest has format {found}, this release has {FORMAT}; upgrade Sieve or drop the "
            "index and create it again",
        )
    version = fields.integer("version", low=1)
    parent = fields.optional("parent", lambda: fields.text("parent", pattern=HEX_ID))
    if (parent is None) != (version == 1):
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", "manifest: parent does not fit the version")
    outdated = found < FORMAT
    options = _options(fields.record("options"), outdated)
    manifest = Manifest(
        index=IndexUuid(fields.text("index", pattern=UUID)),
        version=version,
        id=VersionId(fields.text("id", pattern=HEX_ID)),
        parent=None if parent is None else VersionId(parent),
        instant=fields.text("instant", pattern=_INSTANT),
        state=_state(fields),
        table=_table(fields.record("table")),
        name=fields.text("name", low=1, high=256),
        column=_key(fields),
        type=fields.text("type", low=1),
        comment=fields.optional("comment", lambda: fields.text("comment", high=LONG_TEXT)),
        options=options,
        next_options=fields.optional(
            "next_options", lambda: _options(fields.record("next_options"), outdated)
        )
        # If ``next_options`` is set, the next REFRESH reads the whole table.
        or (options if outdated else None),
        format_name=fields.text("format_name", pattern=_FORMAT_NAME),
        null_proof=fields.boolean("null_proof"),
        fingerprint=fields.text("fingerprint", pattern=_SHA256),
        fingerprint_parts=fields.text_map("fingerprint_parts", MAX_FINGERPRINT_PARTS, LONG_TEXT),
        runs=() if outdated else tuple(_run(run) for run in fields.records("runs", MAX_RUNS)),
        locations=LocationsRef((), 0) if outdated else _locations(fields.record("locations")),
        roots=fields.texts("roots", high=MAX_ROOTS, pattern=_ROOT),
        stats=_NO_STATS if outdated else _stats(fields.record("stats")),
        commit=_commit(fields.record("commit")) if "commit" in fields.names() else None,
        created_by=fields.record("created_by").made(CreatedBy),
        is_outdated=outdated,
    )
    return manifest if outdated else fields.done(manifest)


def _verified(data: bytes) -> bytes:
    """Verifies the checksum of a manifest file, and returns the text that the checksum covers."""
    if len(data) > MANIFEST_LIMIT:
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", f"manifest of {len(data)} bytes is too long")
    match = _CHECKSUM.fullmatch(data[-_CHECKSUM_BYTES:])
    if match is None:
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", "manifest is cut short: it has no checksum")
    body = data[:-_CHECKSUM_BYTES] + b"}"
    if hashlib.sha256(body).hexdigest().encode("ascii") != match.group(1):
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", "manifest does not match its checksum")
    return body


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body.decode("ascii"), object_pairs_hook=_unique, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", f"manifest is not JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is given twice")
    return members


def _finite(constant: str) -> float:
    raise ValueError(f"{constant} is not a JSON number")


def _state(fields: Fields) -> State:
    text = fields.text("state")
    state = _STATES.get(text)
    if state is None:
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", f"manifest: no such state: {text[:100]!r}")
    return state


def _key(fields: Fields) -> Key:
    key = fields.texts("column", low=1, high=100, shortest=0)
    if not all(key) and not expression_of(key):
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", "manifest: column has an empty name")
    return key


def _table(fields: Fields) -> TableIdentity:
    return fields.made(
        TableIdentity,
        table=lambda name: fields.text(name, low=1),
        create_time_ms=lambda name: fields.integer(name, low=-(1 << 63)),
        location=lambda name: fields.text(name, pattern=_ROOT),
    )


def _options(fields: Fields, outdated: bool) -> IndexOptions:
    raw = {
        "shape": fields.text("shape"),
        "budget": fields.text("budget"),
        "error": str(fields.integer("error")),
    }
    if "payback" in fields.names():
        raw["payback"] = str(fields.integer("payback"))
    for name in ("refresh", "granularity"):
        if name in fields.names():
            raw[name] = fields.text(name)
    try:
        return stored_options(dict.fromkeys(fields.names(), "") | raw)
    except InvalidInputError as error:
        if outdated:
            return IndexOptions()
        # The manifest's checksum matches, so a newer release wrote this unknown option.
        raise UnsupportedError(
            "SIEVE_VERSION_TOO_NEW", f"manifest: {error.message}; upgrade Sieve"
        ) from error


def _run(fields: Fields) -> RunRef:
    return fields.made(
        RunRef,
        id=lambda name: RunId(fields.text(name, pattern=HEX_ID)),
        locations=lambda name: fields.integer(name, high=MAX_LOCATIONS),
        encoder=lambda name: fields.small_object(name, ENCODER_TEXT),
        files=lambda name: tuple(map(_run_file, fields.records(name, MAX_FILES))),
    )


def _run_file(fields: Fields) -> RunFileRef:
    file = fields.made(
        RunFileRef,
        name=lambda name: fields.text(name, pattern=RUN_FILE),
        sha256=lambda name: fields.text(name, pattern=_SHA256),
        codes=lambda name: fields.ranges(name, MAX_RANGES),
        hashes=lambda name: fields.ranges(name, MAX_RANGES),
        signatures=lambda name: fields.ranges(name, MAX_RANGES) if name in fields.names() else (),
    )
    if not (file.codes or file.hashes or file.signatures):
        # A look-up reads a file only if one of the file's ranges contains the key. So no query
        # would find the keys of a file without ranges.
        raise CorruptError("SIEVE_MANIFEST_CORRUPT", f"manifest: {file.name} has no range of keys")
    return file


def _locations(fields: Fields) -> LocationsRef:
    return fields.made(
        LocationsRef,
        parts=lambda name: tuple(map(_part, fields.records(name, MAX_PARTS))),
        count=lambda name: fields.integer(name, high=MAX_LOCATIONS),
    )


def _part(fields: Fields) -> PartRef:
    return fields.made(
        PartRef,
        name=lambda name: fields.text(name, pattern=LOCATIONS_FILE),
        sha256=lambda name: fields.text(name, pattern=_SHA256),
        rows=lambda name: fields.integer(name, high=MAX_LOCATIONS),
    )


def _stats(fields: Fields) -> BuildStats:
    return fields.made(
        BuildStats, expected=lambda name: tuple(map(_expected, fields.records(name, MAX_KINDS)))
    )


def _expected(fields: Fields) -> Expected:
    return fields.made(Expected, kind=lambda name: fields.text(name, low=1, high=100))


def _commit(fields: Fields) -> Commit:
    return fields.made(Commit, table=lambda name: fields.text(name, low=1))
