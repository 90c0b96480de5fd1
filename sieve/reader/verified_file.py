"""Reads a file of an index, and verifies the file's length and checksum against the manifest."""

from __future__ import annotations

import hashlib

from sieve.errors import CorruptError
from sieve.metadata.records import FileRef
from sieve.storage.interface import Reader


def verified(store: Reader, uri: str, file: FileRef) -> bytes:
    """Returns the bytes of a file.

    Raises:
        CorruptError: the length or the checksum of the file differs from the manifest.
        UnavailableError: the store cannot read the file.
    """
    data = store.read(uri)
    if len(data) != file.length or hashlib.sha256(data).hexdigest() != file.sha256:
        raise CorruptError(
            "SIEVE_INDEX_CORRUPT",
            f"{uri} is not what was written ({len(data)} bytes, {file.length} expected, or another "
            "checksum); REFRESH SIEVE INDEX ... FULL builds the index again",
        )
    return data
