"""Compares the driver's dictionary of files, which stores hashes, with a plain dictionary."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sieve.metadata.path_list import PathList
from sieve.reader.packed_cuts import FileParts
from sieve.reader.packed_files import Files
from sieve.reader.request import PruneAnswer, Skip
from sql_ext.frontend.pruning import dictionary_to_wire, to_wire
from tests.spark_session import Lab

KEY = bytes(range(16))
MASK = (1 << 64) - 1


def siphash(data: bytes) -> tuple[int, int]:
    """SipHash-2-4 as its authors define it, with a 128-bit result in two words."""
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


def test_path_hashes_are_those_of_siphash(lab: Lab) -> None:
    """For texts of any length, the hash is SipHash.

    The authors of SipHash publish the hash of the empty text, so the test checks this hash, too.
    """
    sieve = lab.spark._jvm.org.apache.spark.sql.sieve
    words = [int.from_bytes(KEY[k : k + 8], "little", signed=True) for k in (0, 8)]
    draw = random.Random(4)
    texts = [b"", *(draw.randbytes(n) for n in (*range(1, 20), 127, 128, 255, 256, 300))]
    for text in texts:
        found = sieve.base.SipHash(sieve.base.Hash(words[1], words[0])).of(text)
        assert (found.low() & MASK, found.high() & MASK) == siphash(text)
    first, second = siphash(b"")
    expected = "a3817f04ba25a8e66df67214c7550293"
    assert (first.to_bytes(8, "little") + second.to_bytes(8, "little")).hex() == expected


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 200])
def test_both_dictionaries_find_the_same_files(lab: Lab, n: int, *, cut: bool) -> None:
    """Both dictionaries find the same files, even if files have equal paths, lengths or times."""
    sieve = lab.spark._jvm.org.apache.spark.sql.sieve
    path_of = lab.spark._jvm.org.apache.hadoop.fs.Path
    draw = random.Random(n + cut)

    def any_file() -> tuple[str, int, int]:
        name = draw.randrange(n + 1)
        return f"file:/t/é{name}", draw.choice([-2, -1, 5, 6]), draw.choice([7, 8])

    known = list(dict.fromkeys(any_file() for _ in range(n)))
    cuts = [sorted(draw.sample(range(1, 99), draw.randrange(3) if cut else 0)) for _ in known]
    n_known, paths = len(known), {path for path, _, _ in known}
    files = packed(known, cuts)
    node = sieve.base.Json.read(json.dumps(files))
    dictionary = sieve.ask.FileDictionary.read(node)
    assert dictionary.files() == n_known
    listed = known + [any_file() for _ in range(60)]
    for path, length, time in listed:
        key, state = sieve.ask.FileDictionary.hash(path_of(path)), sieve.formats.State(length, time)
        assert dictionary.knows(key) == (path in paths)
        marks = {-1: "unproven-file", -2: "unsettled-file"}
        whys = [reason for mark, reason in marks.items() if (path, mark, time) in known]
        why = dictionary.whyUnread(key, state)
        assert [why.get().toString()] == whys[:1] if why.isDefined() else not whys
        found = dictionary.find(key, state)
        assert found.isDefined() == ((path, length, time) in known)
        if found.isDefined():
            file, place = found.get(), known.index((path, length, time))
            assert (file.number(), file.ranges()) == (place, len(cuts[place]) + 1)
            other = sieve.base.Hash(key.high(), key.low() ^ 1)
            assert not dictionary.find(other, state).isDefined()


def test_numbers_follow_the_listing_and_the_dictionary(lab: Lab, tmp_path: Path) -> None:
    """If a listing has other files or another order, the dictionary looks the files up again."""
    jvm = lab.spark._jvm
    sieve, none = jvm.org.apache.spark.sql.sieve, getattr(jvm, "scala.collection.immutable.Nil$")
    nothing = getattr(none, "MODULE$")
    lab.spark.range(0, 4, 1, 4).write.parquet(str(tmp_path / "t"))
    frame = lab.spark.read.parquet(str(tmp_path / "t"))
    location = frame._jdf.queryExecution().analyzed().relation().location()
    whole = location.listFiles(nothing, nothing).apply(0)

    def states(files: Any) -> list[tuple[str, int, int]]:
        each = [files.apply(k) for k in range(files.size())]
        return [(one.getPath().toString(), one.getLen(), one.getModificationTime()) for one in each]

    order = states(whole.files())
    dictionaries = []
    for known in (order, order[::-1], order[:3], [*order[:3], (*order[3][:2], 7)]):
        node = sieve.base.Json.read(json.dumps(packed(known, [[] for _ in known])))
        dictionaries.append((known, sieve.ask.FileDictionary.read(node)))
    given = whole.files()
    listings = [given, given.dropRight(1), given, given.reverse(), given.drop(1)]
    for (known, dictionary), files in itertools.product(dictionaries, listings):
        listed = nothing.appended(whole.copy(whole.values(), files))
        found = dictionary.numbersOf(listed, sieve.formats.Locations())
        each = found.iterator().toList()
        values = [each.apply(k).value() for k in range(each.size())]
        why = "changed-file" if len(known) == 4 else "new-file"
        assert [
            known.index(file) == value.number() if file in known else value.toString() == why
            for file, value in zip(states(files), values, strict=True)
        ] == [True] * len(values)
        assert found.areKnown() == set(known).issuperset(states(files))


def test_paths_are_hashed_under_a_secret(lab: Lab) -> None:
    """The driver hashes paths with a secret key.

    Without this key, an attacker could choose two file names with the same hash.
    """
    sieve, path = lab.spark._jvm.org.apache.spark.sql.sieve, "file:/t/a"
    own = sieve.ask.FileDictionary.hash(lab.spark._jvm.org.apache.hadoop.fs.Path(path))
    open_ = sieve.base.SipHash(sieve.base.Hash(0, 0)).of(path.encode())
    assert (own.high(), own.low()) != (open_.high(), open_.low())


@pytest.mark.parametrize("n", [0, 1, 9, 300])
def test_byte_ranges_apply_only_to_files_of_their_answer(lab: Lab, n: int) -> None:
    """An answer's byte ranges apply only to the files that the same answer lists."""
    sieve, draw = lab.spark._jvm.org.apache.spark.sql.sieve, random.Random(n)
    numbers = sorted(draw.sample(range(3 * n), n))
    cuts = [sorted(draw.sample(range(1, 2**40), draw.randint(1, 5))) for _ in numbers]
    skip = [[draw.random() < 0.5 for _ in range(len(own) + 1)] for own in cuts]
    footers = [draw.randrange(2**33) for _ in numbers]
    answer = PruneAnswer(Skip("n", np.zeros(n, np.bool_), FileParts(
        np.array(numbers, np.int64), np.array([len(own) for own in skip], np.int64),
        np.array(footers, np.int64),
        np.array([size for own in cuts for size in np.diff(own, prepend=0)], np.int64),
        np.array([flag for own in skip for flag in own], np.bool_),
    ), (), True, None), {}, "")  # fmt: skip
    wire = to_wire(answer)
    parts = sieve.ask.FileParts.none()
    assert ("parts" in wire) == (n > 0)
    if n:
        parts = sieve.ask.FileParts.read(sieve.base.Json.read(json.dumps(wire["parts"])))
    of = {number: k for k, number in enumerate(numbers)}
    for number in range(3 * n + 1):
        found = parts.of(number, 2**41)
        assert found.isDefined() == (number in of)
        if number in of:
            k = of[number]
            kept, skipped = found.get()._1(), found.get()._2()
            ends = list(zip([0, *cuts[k]], [*cuts[k], 2**41], strict=True))
            own = list(zip(ends, skip[k], strict=True))
            assert ranges_of(kept.ranges()) == [ends for ends, gone in own if not gone]
            assert ranges_of(skipped) == [ends for ends, gone in own if gone]
            assert kept.footer() == footers[k]


def ranges_of(ranges: Any) -> list[tuple[int, int]]:
    """For each byte range, the offsets of its first byte and of its end."""
    return [(ranges.apply(k).start(), ranges.apply(k).end()) for k in range(ranges.size())]


def packed(known: list[tuple[str, int, int]], cuts: list[list[int]]) -> dict[str, Any]:
    """The bytes in which the front end sends the files to the driver."""
    paths, lengths, times = zip(*known, strict=True) if known else ((), (), ())
    columns = (lengths, times, [len(own) for own in cuts], [0] * len(known))
    flat = np.array([at for own in cuts for at in own], np.int64)
    of = Files(PathList.of(paths), *(np.array(c, np.int64) for c in columns), flat).packed()
    return dict(dictionary_to_wire(of))
