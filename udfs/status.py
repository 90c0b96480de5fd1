"""``sieve_status``: what Sieve has done in this driver since it started, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sieve.reader.cache import FileCache

COLUMNS: Final = (("counter", "STRING"), ("reason", "STRING"), ("value", "BIGINT"))

Counter = tuple[str, str | None, int]


def status_rows(counters: Iterable[Counter], cache: FileCache) -> Iterator[Counter]:
    """One row a counter; of those that are kept by reason, one a reason.

    Args:
        counters: those of the driver.
        cache: what this process holds of indexes.
    """
    yield from counters
    yield "cache_bytes", None, cache.nbytes
    yield "cache_bytes_bound", None, cache.max_bytes or 0
