"""Generates distinct strings of several kinds that are common in tables, such as URLs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Rng = np.random.Generator
Words = npt.NDArray[np.str_]

_LETTERS: Final = np.array(list("abcdefghijklmnoprstuvw"))


def _words(rng: Rng, count: int, shortest: int, longest: int) -> Words:
    lengths = rng.integers(shortest, longest + 1, count)
    return np.array(["".join(rng.choice(_LETTERS, length)) for length in lengths])


def _some(rng: Rng, words: Words, rows: int, skew: float = 1.0) -> pa.Array:
    """Chooses a word for each row. Some words are far more frequent than others."""
    weights = 1 / np.arange(1, len(words) + 1) ** skew
    return pa.array(words[rng.choice(len(words), rows, p=weights / weights.sum())])


def _numbers(rng: Rng, rows: int, stop: int, digits: int = 1) -> pa.Array:
    text = pa.array(rng.integers(0, stop, rows)).cast(pa.string())
    return pc.utf8_lpad(text, digits, "0")


def _hex(rng: Rng, rows: int, digits: int) -> pa.Array:
    text = np.frombuffer(rng.bytes(digits * rows // 2).hex().encode(), f"S{digits}")
    return pa.array(text).cast(pa.string())


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _urls(rng: Rng, rows: int) -> pa.Array:
    hosts, topics = _words(rng, 300, 5, 12), _words(rng, 40, 4, 10)
    titles = _some(rng, _words(rng, 600, 5, 14), rows, 0.7)
    parts = (_some(rng, hosts, rows), ".com/", _some(rng, topics, rows), "/", titles, "-")
    return _joined("https://www.", *parts, _numbers(rng, rows, 10**6))


def _mails(rng: Rng, rows: int) -> pa.Array:
    first, last = _words(rng, 400, 3, 8), _words(rng, 2000, 4, 10)
    names = (_some(rng, first, rows, 0.8), ".", _some(rng, last, rows, 0.8))
    at = _some(rng, _words(rng, 50, 4, 9), rows)
    return _joined(*names, _numbers(rng, rows, 1000), "@", at, ".com")


def _uuids(rng: Rng, rows: int) -> pa.Array:
    sizes = (8, 4, 4, 4, 12)
    return pc.binary_join_element_wise(*(_hex(rng, rows, size) for size in sizes), "-")


def _padded(rng: Rng, rows: int) -> pa.Array:
    return _numbers(rng, rows, 10**13, 20)


def _orders(rng: Rng, rows: int) -> pa.Array:
    year = pa.array(rng.integers(2015, 2026, rows)).cast(pa.string())
    return _joined(
        "ORD-", year, "-", _numbers(rng, rows, 40, 3), "-", _numbers(rng, rows, 10**7, 10)
    )


def _names(rng: Rng, rows: int) -> pa.Array:
    """Names of three to eight characters, out of 3,000 Chinese characters."""
    signs = rng.choice(np.arange(0x4E00, 0x9FA5), 3000, replace=False)
    weights = 1 / np.arange(1, 3001)
    drawn = signs[rng.choice(3000, (rows, 8), p=weights / weights.sum())].astype("<u4")
    drawn[np.arange(8) >= rng.integers(3, 9, rows)[:, None]] = 0
    return pa.array(drawn.view("<U8").ravel())


def _hashes(rng: Rng, rows: int) -> pa.Array:
    return _hex(rng, rows, 64)


def _paths(rng: Rng, rows: int) -> pa.Array:
    base, table = _words(rng, 12, 4, 9), _words(rng, 80, 5, 15)
    days = np.datetime_as_string(np.datetime64("2024-01-01") + np.arange(700))
    folder = (_some(rng, base, rows), ".db/", _some(rng, table, rows), "/dt=")
    day = _some(rng, days, rows, 0)
    file = ("/part-", _numbers(rng, rows, 200, 5), "-", _hex(rng, rows, 8), ".parquet")
    return _joined("/data/warehouse/", *folder, day, *file)


TEXTS: Final[Mapping[str, Callable[[Rng, int], pa.Array]]] = {
    "URLs": _urls,
    "e-mail addresses": _mails,
    "file paths": _paths,
    "order numbers": _orders,
    "Chinese names": _names,
    "zero-padded numbers": _padded,
    "UUIDs": _uuids,
    "hex hashes": _hashes,
}


def texts(name: str, rows: int) -> pa.Array:
    """About `rows` distinct strings of one kind, in ascending order."""
    rng = np.random.default_rng(list(TEXTS).index(name))
    distinct = TEXTS[name](rng, rows).unique()
    return distinct.take(pc.sort_indices(distinct))
