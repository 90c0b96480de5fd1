"""The driver's dictionary of files: hashes in arrays, against a plain dictionary."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import numpy as np
import pytest

from sieve.metadata.path_list import PathList
from sieve.reader.packed_files import Files
from tests.spark_session import Lab

KEY = bytes(range(16))
MASK = (1 << 64) - 1


def siphash(data: bytes) -> tuple[int, int]:
    """SipHash-2-4 with 128 bits, as its authors describe it: the two words of the result."""
    low, high = (int.from_bytes(KEY[k : k + 8], "little") for k in (0, 8))
    v = [low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D ^ 0xEE]
    v += [low ^ 0x6C7967656E657261, high ^ 0x7465646279746573]

    def turned(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & MASK

    def rounds(n: int) -> None:
        for _ in range(n):
            for a, b, by in ((0, 1, 13), (2, 3, 16), (0, 3, 21), (2, 1, 17)):
                v[a] = (v[a] + v[b]) & MASK
                v[b] = turned(v[b], by) ^ v[a]
                if (a, b) in {(0, 1), (2, 1)}:
                    v[a] = turned(v[a], 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for k in range(0, len(padded), 8):
        word = int.from_bytes(padded[k : k + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return first, v[0] ^ v[1] ^ v[2] ^ v[3]


def test_paths_are_hashed_as_siphash_says(lab: Lab) -> None:
    """Its authors' example of an empty text, and texts of any length."""
    sieve = lab.spark._jvm.org.apache.spark.sql.sieve
    words = [int.from_bytes(KEY[k : k + 8], "little", signed=True) for k in (0, 8)]
    draw = random.Random(4)
    texts = [b"", *(draw.randbytes(n) for n in (*range(1, 20), 127, 128, 255, 256, 300))]
    for text in texts:
        found = sieve.SipHash(sieve.Hash(words[1], words[0])).of(text)
        assert (found.low() & MASK, found.high() & MASK) == siphash(text)
    first, second = siphash(b"")
    expected = "a3817f04ba25a8e66df67214c7550293"
    assert (first.to_bytes(8, "little") + second.to_bytes(8, "little")).hex() == expected


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 200])
def test_it_finds_what_a_plain_dictionary_finds(lab: Lab, n: int, *, cut: bool) -> None:
    """Files of few paths, lengths and times, so that many differ in one of them alone."""
    sieve = lab.spark._jvm.org.apache.spark.sql.sieve
    path_of = lab.spark._jvm.org.apache.hadoop.fs.Path
    draw = random.Random(n + cut)

    def any_file() -> tuple[str, int, int]:
        name = draw.randrange(n + 1)
        return f"file:/t/é{name}", draw.choice([-2, -1, 5, 6]), draw.choice([7, 8])

    known = list(dict.fromkeys(any_file() for _ in range(n)))
    cuts = [sorted(draw.sample(range(1, 99), draw.randrange(3) if cut else 0)) for _ in known]
    files, paths = packed(known, cuts), {path for path, _, _ in known}
    node = sieve.Json.read(json.dumps(files))
    dictionary = sieve.FileDictionary.read(node)
    firsts = np.append(0, np.cumsum([len(own) + 1 for own in cuts])).tolist()
    assert dictionary.ranges() == firsts[-1]
    listed = known + [any_file() for _ in range(60)]
    for path, length, time in listed:
        key, state = sieve.FileDictionary.hash(path_of(path)), sieve.State(length, time)
        assert dictionary.knows(key) == (path in paths)
        assert dictionary.isRacy(key, state) == ((path, -2, time) in known)
        found = dictionary.find(key, state)
        assert found.isDefined() == ((path, length, time) in known)
        if found.isDefined():
            file, place = found.get(), known.index((path, length, time))
            assert file.first() == firsts[place]
            assert list(file.cuts()) == cuts[place]
            assert file.footer() == (place if any(cuts) else 0)
            other = sieve.Hash(key.high(), key.low() ^ 1)
            assert not dictionary.find(other, state).isDefined()


def test_paths_are_hashed_under_a_secret(lab: Lab) -> None:
    """Who knew it could name files so that one is taken for another."""
    sieve, path = lab.spark._jvm.org.apache.spark.sql.sieve, "file:/t/a"
    own = sieve.FileDictionary.hash(lab.spark._jvm.org.apache.hadoop.fs.Path(path))
    open_ = sieve.SipHash(sieve.Hash(0, 0)).of(path.encode())
    assert (own.high(), own.low()) != (open_.high(), open_.low())


def packed(known: list[tuple[str, int, int]], cuts: list[list[int]]) -> dict[str, Any]:
    """Files as the front end sends them; the footer of each has the bytes of its number."""
    paths, lengths, times = zip(*known, strict=True) if known else ((), (), ())
    columns = (lengths, times, [len(own) for own in cuts], range(len(known)))
    flat = np.array([at for own in cuts for at in own], np.int64)
    of = Files(PathList.of(paths), *(np.array(c, np.int64) for c in columns), flat).packed()
    parts = {"rows": of.rows, "cuts": of.cuts, "paths": of.text}
    texts = {name: base64.b64encode(part).decode() for name, part in parts.items()}
    return {"files": of.n, "n_cuts": of.n_cuts, **texts}
