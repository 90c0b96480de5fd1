"""Stores reader fingerprints by hash, so that the driver sends each fingerprint only once.

A reader fingerprint lists the settings and types by which Spark converts bytes to values. A
fingerprint includes the table's schema, which can have 100 KB. So a scan sends only the hash of its
fingerprint. If the front end does not know this hash, it asks the driver for the whole fingerprint.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from sieve.metadata.column_reader import Parts

_MAX_FINGERPRINTS: Final = 256
"""Maximum number of stored fingerprints. The front end can request a removed fingerprint again."""


class Fingerprints:
    """A cache of the fingerprints that the driver's latest scans used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[str, Parts] = OrderedDict()

    def of(self, hashes: Sequence[str], sent: Mapping[str, Parts]) -> tuple[Parts, ...] | None:
        """The fingerprints with these hashes; None if a hash is unknown.

        Args:
            hashes: hashes of the fingerprints.
            sent: fingerprints that the request contains, as a dict from hash to fingerprint.
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
