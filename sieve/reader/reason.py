"""Reasons: the closed list of causes why an index was not used, or a file was read anyway.

``docs/sql.md`` explains each reason and its remedy to users. The shim has the same list.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a scan reads a file. The value is the word that statements and functions show."""

    # Reasons that concern an index.
    NO_INDEX = "no-index"
    ROOT_REFUSED = "root-refused"
    DISABLED = "disabled"
    NO_PREDICATE = "no-predicate"
    UNSUPPORTED_PREDICATE = "unsupported-predicate"
    UNBOUNDED = "unbounded"
    READER_CHANGED = "reader-changed"
    INDEX_GONE = "index-gone"
    INDEX_CORRUPT = "index-corrupt"
    VERSION_TOO_NEW = "version-too-new"
    VERSION_TOO_OLD = "version-too-old"
    # Reasons that concern a file.
    NEW_FILE = "new-file"
    CHANGED_FILE = "changed-file"
    UNSETTLED_FILE = "unsettled-file"
    WHOLE_FILE = "whole-file"
    # Reasons that concern keys of a join.
    KEYS_TOO_MANY = "keys-too-many"
    KEYS_FAILED = "keys-failed"
    JOIN_NOT_SELECTIVE = "join-not-selective"
    JOIN_TOO_COSTLY = "join-too-costly"
    JOIN_NOT_REPEATABLE = "join-not-repeatable"
    EXCHANGE_SHARED = "exchange-shared"
    # Reasons that concern a request.
    IDLE = "idle"
    TIMEOUT = "timeout"
    FRONT_END_DOWN = "front-end-down"
    ERROR = "error"
