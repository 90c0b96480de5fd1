"""The closed list of reasons why an index was not used, or a file was read in spite of one.

``docs/sql.md`` tells users what each means and what to do. The shim has the same list.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a scan reads a file. The value is the word that statements and functions show."""

    # Of an index.
    NO_INDEX = "no-index"
    ROOT_REFUSED = "root-refused"
    DISABLED = "disabled"
    NO_PREDICATE = "no-predicate"
    UNSUPPORTED_PREDICATE = "unsupported-predicate"
    READER_CHANGED = "reader-changed"
    INDEX_GONE = "index-gone"
    INDEX_CORRUPT = "index-corrupt"
    VERSION_TOO_NEW = "version-too-new"
    VERSION_TOO_OLD = "version-too-old"
    # Of a file.
    NEW_FILE = "new-file"
    CHANGED_FILE = "changed-file"
    UNSETTLED_FILE = "unsettled-file"
    # Of a request.
    TIMEOUT = "timeout"
    FRONT_END_DOWN = "front-end-down"
    ERROR = "error"
