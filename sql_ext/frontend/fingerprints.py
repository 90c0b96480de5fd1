"""Fingerprints by their hashes: a driver sends the parts of a reader's fingerprint only once.

The parts have the schema of a table, which may take 100 KB. A scan sends the hash of its
fingerprint. If the front end does not know the hash, it requests the parts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from sieve.metadata.column_reader import Parts

_MAX_FINGERPRINTS: Final = 256
"""Maximum number of remembered fingerprints. The driver sends a forgotten one's parts again."""


class Fingerprints:
    """The fingerprints that a driver has sent, up to a limit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[str, Parts] = OrderedDict()

    def of(self, hashes: Sequence[str], sent: Mapping[str, Parts]) -> tuple[Parts, ...] | None:
        """The parts of fingerprints; None if one of them is not known.

        Args:
            hashes: hashes of the fingerprints.
            sent: the parts that came with the request, by hash.
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
