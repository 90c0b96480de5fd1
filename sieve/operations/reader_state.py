"""Reports why a session's queries cannot use an index, and what the user can do about it."""

from __future__ import annotations

from sieve.encoding.encoder import Encoder
from sieve.errors import UnsupportedError
from sieve.metadata.manifest import Manifest
from sieve.reader.reason import Reason
from sieve.reader.usable_version import why_unusable
from sieve.tables.column import Column
from sieve.tables.table_info import TableInfo

_MAX_SHOWN = 60
"""A message shows the old and the new value of a changed part only if both values have at most this
many characters."""


def reader_problem(info: TableInfo, manifest: Manifest) -> str | None:
    """Returns the reason and a remedy if this session's queries ignore a ready version, else None.

    Args:
        info: the table as this session resolves it, with the column that the version indexes.
    """
    reason = why_unusable(manifest, info.identity, [info.fingerprint_parts])
    if reason not in {Reason.READER_CHANGED, Reason.VERSION_TOO_OLD}:
        return None
    name, column = manifest.name, info.column_of(manifest.column)
    if column is not None and (problem := _refused(column)) is not None:
        return f"reader changed: {problem}; DROP SIEVE INDEX {name} ON {info.label}"
    refresh = f"REFRESH SIEVE INDEX {name} ON {info.label}"
    if reason is Reason.VERSION_TOO_OLD:
        return f"outdated: an earlier release built it; {refresh}"
    changed = manifest.changed_parts(info.fingerprint_parts)
    what = ", ".join(_difference(part, column, info, manifest) for part in changed)
    settings = all(part.startswith(("conf.", "hadoop.", "zone.")) for part in changed)
    remedy = f"set it back, or {refresh} in such a session" if settings else refresh
    return f"reader changed: {what}; {remedy}"


def refuse_type(info: TableInfo, manifest: Manifest, column: Column) -> None:
    """Raises UnsupportedError if Sieve cannot index the type that a column has now."""
    if (problem := _refused(column)) is not None:
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_TYPE",
            f"index {manifest.name} cannot be refreshed: column {column} of {info.label} was "
            f"{manifest.type}, but {problem}; run DROP SIEVE INDEX {manifest.name} ON {info.label}",
        )


def _refused(column: Column) -> str | None:
    try:
        Encoder.for_type(column.type)
    except UnsupportedError:
        return f"type {column.type} cannot be indexed"
    return None


def _difference(part: str, column: Column | None, info: TableInfo, manifest: Manifest) -> str:
    if part == "schema" and column is not None and column.type != manifest.type:
        return f"type {column.type}, at the build {manifest.type}"
    now, then = (
        parts.get(part, "not set") for parts in (info.fingerprint_parts, manifest.fingerprint_parts)
    )
    short = len(now) <= _MAX_SHOWN and len(then) <= _MAX_SHOWN
    return f"{part} = {now}, at the build {then}" if short else part
