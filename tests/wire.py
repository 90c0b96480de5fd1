"""Decodes an answer of the front end as the driver does: flags, files, and parts of files."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Flags


def unzipped(text: str) -> bytes:
    """Decompresses a text of an answer, and returns its bytes."""
    packed = pa.BufferReader(base64.b64decode(text))
    with pa.CompressedInputStream(packed, "zstd") as stream:
        data: bytes = stream.read()
    return data


def flags(text: str, n: int) -> Flags:
    """Returns the first n flags of an answer."""
    bits = np.frombuffer(unzipped(text), np.uint8)
    assert len(bits) == -(-n // 8)
    return np.unpackbits(bits, bitorder="little", count=n).view(np.bool_)


def numbers(text: str, columns: int) -> list[list[int]]:
    """Returns the rows of a table of numbers."""
    rows: list[list[int]] = np.frombuffer(unzipped(text), "<i8").reshape(-1, columns).tolist()
    return rows


def files_of(dictionary: Mapping[str, Any]) -> list[tuple[tuple[str, int, int], int]]:
    """Returns the path, length, time and number of ranges of each file in a dictionary."""
    rows, text = numbers(dictionary["rows"], 4), unzipped(dictionary["paths"])
    assert len(rows) == dictionary["files"]
    found = []
    for length, time, cuts, size in rows:
        path, text = text[:size].decode(), text[size:]
        found.append(((path, length, time), cuts + 1))
    assert not text
    return found


def paths_of(dictionary: Mapping[str, Any]) -> list[str]:
    """Returns the path of each file in a dictionary."""
    return [path for (path, _, _), _ in files_of(dictionary)]


@dataclass(frozen=True, slots=True)
class Part:
    """A partly read file: its cuts (byte offsets), footer length, and skipped ranges."""

    cuts: list[int]
    footer: int
    skip: list[bool]


def parts_of(answer: Mapping[str, Any]) -> dict[int, Part]:
    """Returns a dict from a file's number to its `Part`, for each file that is read in part."""
    parts = answer.get("parts")
    if parts is None:
        return {}
    rows = numbers(parts["rows"], 3)
    assert len(rows) == parts["files"]
    sizes = iter(size for (size,) in numbers(parts["sizes"], 1))
    skip = iter(flags(parts["skip"], sum(count for _, count, _ in rows)).tolist())
    found, number = {}, 0
    for step, count, footer in rows:
        number += step
        cuts = list(accumulate(islice(sizes, count - 1)))
        found[number] = Part(cuts, footer, list(islice(skip, count)))
    assert not [*sizes, *skip]
    return found
