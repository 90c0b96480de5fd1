"""Stores readers' fingerprints by hash, so that a driver sends each fingerprint only once.

A reader's fingerprint lists the settings and types by which Spark converts bytes to values. One
part of a fingerprint is the schema of a table, which can have 100 KB. So a scan sends only the hash
of its fingerprint. If the hash is unknown, the front end requests the parts from the driver.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from sieve.metadata.column_reader import Parts

_MAX_FINGERPRINTS: Final = 256
"""The maximum number of stored fingerprints. The driver sends a removed fingerprint again."""


class Fingerprints:
    """The latest fingerprints that a driver has sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[str, Parts] = OrderedDict()

    def of(self, hashes: Sequence[str], sent: Mapping[str, Parts]) -> tuple[Parts, ...] | None:
        """The parts of the requested fingerprints. None if one of the fingerprints is unknown.

        Args:
            hashes: hashes of the fingerprints.
            sent: the parts of fingerprints that came with the request, by hash.
        """
        with self._lock:
            self._parts.update(sent)
            found = tuple(self._parts[one] for one in hashes if one in self._parts)
            for one in hashes:
                if one in self._parts:
                    self._parts.move_to_end(one)
            while len(self._parts) > _MAX_FINGERPRINTS:
                self._parts.popitem(last=False)
        return found if len(found) == len(hashes) else None
