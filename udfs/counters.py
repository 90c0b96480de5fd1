"""``sieve_status`` returns the driver's counters since its start, and the size of the cache.

Example: ``SELECT * FROM sieve_status() WHERE value > 0``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sieve.reader.lru_cache import FileCache

COLUMNS: Final = (("counter", "STRING"), ("reason", "STRING"), ("value", "BIGINT"))

Counter = tuple[str, str | None, int]


def counter_rows(counters: Iterable[Counter], cache: FileCache) -> Iterator[Counter]:
    """Yields a row for each counter. A counter that counts by reason has a row for each reason.

    Args:
        counters: the counters of the driver.
        cache: the cache of index files in this process.
    """
    yield from counters
    yield "cache_bytes", None, cache.nbytes
    yield "cache_bytes_bound", None, cache.max_bytes or 0
