"""The six kinds of query of the comparison; a build's probes have the same kinds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench.rivals.columns import Codes, Column
from sieve.segments.query_model import LONG_RANGE, RANK_RANGE, SHORT_RANGE

KINDS = (
    "occurring key",
    "occurring key by rows",
    "any code",
    "range of 0.05 %",
    "range of 1 %",
    "range over 0.1 % of the keys",
)


def queries(column: Column, count: int) -> Mapping[str, tuple[Codes, Codes]]:
    """`count` queries of each kind, as first and last key codes."""
    rng = np.random.default_rng(2)
    distinct = np.unique(column.codes)
    least, greatest = int(distinct[0]), int(distinct[-1])
    keys = rng.choice(distinct, count)
    by_rows = rng.choice(column.codes, count)
    anywhere = _between(rng, least, greatest, count)
    made = [(keys, keys), (by_rows, by_rows), (anywhere, anywhere)]
    for share in (SHORT_RANGE, LONG_RANGE):
        length = int((greatest - least) * share)
        low = _between(rng, least, greatest - length, count)
        made.append((low, low + length))
    length = int(len(distinct) * RANK_RANGE)
    place = rng.integers(0, len(distinct) - length, count)
    made.append((distinct[place], distinct[place + length]))
    return dict(zip(KINDS, made, strict=True))


def _between(rng: np.random.Generator, low: int, high: int, count: int) -> Codes:
    return rng.integers(low, high, count, endpoint=True, dtype=np.int64)
