"""The steps that make and check signatures, and the decision whether signatures pay back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sieve.encoding.encoder import Encoder
from sieve.indexing.check_signatures import find_missing_bits, signature_rounds
from sieve.indexing.signature_tasks import cut_signatures, densities, write_signatures
from sieve.indexing.signatures import folded_density, signature_bits
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.paths import run_file
from sieve.metadata.records import RunId, RunRef
from sieve.reader.lru_cache import FileCache
from sieve.reader.run_file import describe_run
from sieve.reader.run_reader import Run
from sieve.storage.interface import READ_LIMIT

BITS = 12


def image(hashes: list[int], bits: int = BITS) -> bytes:
    """The signature with 2^bits bits that has the bits of these hashes."""
    found = np.zeros(1 << bits, np.bool_)
    found[[value >> (32 - bits) for value in hashes]] = True
    return np.packbits(found, bitorder="little").tobytes()


def rows(*found: tuple[int, bytes]) -> Iterator[pa.RecordBatch]:
    """Rows of location and signature."""
    places, images = zip(*found, strict=True)
    columns = [pa.array(places, pa.int32()), pa.array(images, pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, names=["location", "signature"])


class Files:
    """A store of files in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, _uri: str, limit: int = READ_LIMIT) -> bytes:
        """Returns the only file."""
        assert len(self.data) <= limit
        return self.data


def built(*found: tuple[int, bytes], locations: int, most: int = 1 << 20) -> tuple[RunRef, bytes]:
    """A run with these signatures, and the content of its only file."""
    cut = cut_signatures(most)(rows(*found))
    table = pa.Table.from_batches(list(write_signatures(locations)(cut)))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    run = describe_run(RunId("0" * 32), locations, Encoder("int"), [("part-0.parquet", data)])
    assert run is not None
    return run, data


def in_folder(*made: tuple[RunRef, bytes]) -> dict[str, bytes]:
    """The files of runs with one file each, by their URIs."""
    return {run_file("", run.id, run.files[0]): data for run, data in made}


def opened(run: RunRef, data: bytes) -> Run:
    """A reader of the run, which parses the file only once."""
    return Run(Files(data), "", run, FileCache(1 << 20))


def test_look_ups_find_the_locations_with_all_hashes() -> None:
    """A look-up of several hashes finds only locations with all their bits, or no signature."""
    one, other = 7 << 20, 9 << 28
    made = built((0, image([one, other])), (1, image([one])), (2, image([])), locations=4)
    run = opened(*made)
    assert not made[0].files[0].codes
    assert made[0].files[0].signatures == ((0, (1 << 32) - 1),)

    def found(*hashes: int) -> list[int]:
        return np.flatnonzero(run.locations_signed(np.array(hashes, np.int64))).tolist()

    assert found(one) == [0, 1, 3]
    assert found(one, other) == [0, 3]
    assert found((1 << 32) - 1) == [3]


def test_a_run_without_signatures_excludes_no_location() -> None:
    """A version of an earlier release has no signatures, so look-ups find all locations."""
    run = RunRef(RunId("0" * 32), 3, Encoder("int").to_json(), (), 0, 0, 0, 0, 0)
    assert opened(run, b"").locations_signed(np.array([5], np.int64)).tolist() == [True] * 3


def test_parts_of_a_location_are_joined() -> None:
    """If several tasks read a location, its signature has the bits of all tasks, of any size."""
    one, other = 3 << 28, 5 << 12
    run = opened(*built((0, image([one])), (0, image([other], 9)), locations=1))
    for value in (one, other):
        assert run.locations_signed(np.array([value], np.int64)).all()
    assert not run.locations_signed(np.array([(1 << 32) - 1], np.int64)).any()


def test_large_signatures_are_folded() -> None:
    """A signature above the maximum size is folded, and has a bit for each hash, and no other."""
    hashes = np.random.default_rng(1).integers(0, 1 << 32, 40).tolist()
    made = built((0, image(hashes, 16)), locations=1, most=64)
    run = opened(*made)
    for value in hashes:
        assert run.locations_signed(np.array([value], np.int64)).all()
    # Of the 2^9 bits, each stands for the hashes with the same first 9 bits.
    bits = [k for k in range(1 << 9) if run.locations_signed(np.array([k << 23], np.int64))[0]]
    assert bits == sorted({value >> 23 for value in hashes})


@pytest.mark.parametrize("bits", [9, BITS])
def test_check_finds_a_missing_bit(bits: int) -> None:
    """CHECK reports a location if one bit of its texts is missing, also in a folded signature."""
    hashes = np.random.default_rng(2).integers(0, 1 << 32, 30).tolist()
    for left_out in (None, hashes[0]):
        stored = [value for value in hashes if value != left_out]
        run, data = built((0, image(hashes)), (1, image(stored, bits)), locations=3)
        (one,) = signature_rounds([run])
        files = partial(in_folder, (run, data))
        step = find_missing_bits(one, [[0, 1, 2]], "", files)
        texts = rows((0, image(hashes)), (1, image(hashes)), (2, image(hashes)))
        missing = [place for batch in step(texts) for place in batch.column(0).to_pylist()]
        alone = left_out is not None and left_out >> (32 - bits) not in {
            value >> (32 - bits) for value in stored
        }
        assert missing == ([1] if alone else [])


def test_check_of_a_location_in_several_runs() -> None:
    """A location in two runs needs each bit in one of them; without a signature, it needs none."""
    one, other = 3 << 28, 5 << 28
    runs, contents = zip(
        built((0, image([one])), locations=2),
        built((0, image([other], 9)), (1, image([])), locations=2),
        strict=True,
    )
    # The second run has another id, so its files are in another folder.
    runs = (runs[0], replace(runs[1], id=RunId("2" * 32)))
    (found,) = signature_rounds(list(runs))
    files = in_folder(*zip(runs, contents, strict=True))

    def missing(ordinals: list[list[int]], *hashes: int) -> bool:
        step = find_missing_bits(found, ordinals, "", lambda: files)
        return any(batch.num_rows for batch in step(rows((0, image([*hashes])))))

    assert not missing([[0], [0]], one, other)
    assert missing([[0], [0]], one, other, 7 << 28)
    assert missing([[0], [-1]], one, other)
    assert not missing([[1], [1]], one, other)
    unsigned = RunRef(RunId("1" * 32), 1, {}, (), 0, 0, 0, 0, 0)
    assert list(signature_rounds([runs[0], unsigned])) == []


def test_densities() -> None:
    """The step counts set bits; folding predicts the share of set bits of the smaller signature."""
    hashes = np.random.default_rng(3).integers(0, 1 << 32, 3000).tolist()
    (batch,) = densities(rows((4, image(hashes)), (6, image([]))))
    sizes, bits = (batch.column(k).to_numpy() for k in (1, 2))
    assert batch.column(0).to_pylist() == [4, 6]
    assert sizes.tolist() == [512, 512]
    assert bits.tolist() == [len({value >> 20 for value in hashes}), 0]
    small = np.unpackbits(np.frombuffer(image(hashes, 10), np.uint8)).mean()
    assert folded_density(sizes, bits, 128)[0] == pytest.approx(small, abs=0.02)
    assert folded_density(sizes, bits, 1 << 20)[0] == bits[0] / 4096


def test_size_of_signatures() -> None:
    """A signature takes at most a tenth of a typical location, in bits of a power of two."""
    auto = IndexOptions()
    assert signature_bits(np.array([1 << 20, 1 << 20]), auto) == 19
    assert signature_bits(np.array([1 << 20, *([1] * 1000)]), auto) == 19
    assert signature_bits(np.array([1 << 20, 3 << 20]), auto) == 21
    assert signature_bits(np.array([100, 200]), auto) == 0
    assert signature_bits(np.array([], np.int64), auto) == 0
    assert signature_bits(np.array([1 << 60]), auto) == 26
    assert signature_bits(np.array([1 << 20]), IndexOptions(shape="intervals")) == 0
