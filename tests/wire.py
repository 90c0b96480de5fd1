"""What the driver makes of an answer of the front end: flags, and the files that they are of."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Flags


def unzipped(text: str) -> bytes:
    """The bytes behind a text of the wire."""
    packed = pa.BufferReader(base64.b64decode(text))
    with pa.CompressedInputStream(packed, "zstd") as stream:
        data: bytes = stream.read()
    return data


def flags(text: str, n: int) -> Flags:
    """The first n flags of an answer."""
    bits = np.frombuffer(unzipped(text), np.uint8)
    assert len(bits) == -(-n // 8)
    return np.unpackbits(bits, bitorder="little", count=n).view(np.bool_)


def files_of(dictionary: Mapping[str, Any]) -> list[tuple[tuple[str, int, int], list[int], int]]:
    """Path, length and time of each file of a dictionary, its cuts and the bytes of its footer."""
    rows = np.frombuffer(unzipped(dictionary["rows"]), "<i8").reshape(-1, 5).tolist()
    cuts = np.frombuffer(unzipped(dictionary["cuts"]), "<i8").tolist()
    text = unzipped(dictionary["paths"])
    assert (len(rows), len(cuts)) == (dictionary["files"], dictionary["n_cuts"])
    found = []
    for length, time, count, footer, size in rows:
        own, cuts, path, text = cuts[:count], cuts[count:], text[:size].decode(), text[size:]
        found.append(((path, length, time), own, footer))
    assert not cuts
    assert not text
    return found


def paths_of(dictionary: Mapping[str, Any]) -> list[str]:
    """The path of each file of a dictionary."""
    return [path for (path, _, _), _, _ in files_of(dictionary)]
