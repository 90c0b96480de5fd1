"""Opening a version from its files: only what the manifest speaks of is believed."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sieve.blocks import encode_segment
from sieve.errors import CorruptError
from sieve.keys import Encoder
from sieve.local_store import LocalStore
from sieve.locations import Locations, render_locations
from sieve.manifest import Manifest
from sieve.opened import open_version
from sieve.requirements import Requirement
from sieve.segments import cut_segments
from sieve.store import GoneError
from sieve.types import FileRef, LocationsRef, RunRef
from tests.unit.manifest_sample import SAMPLE

N = 5


def ref(path: Path, data: bytes) -> FileRef:
    """Write a file and say what it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return FileRef(path.name, len(data), hashlib.sha256(data).hexdigest())


@pytest.fixture
def version(tmp_path: Path) -> Manifest:
    """A version over five files, file k with keys 10 k to 10 k + 9, and its two files on disk."""
    keys = np.arange(10 * N, dtype=np.int64)
    pairs = (keys, (keys // 10).astype(np.int32), np.ones_like(keys))
    segments = list(cut_segments(iter([pairs]), error=1, hole=1000))
    sink = io.BytesIO()
    pq.write_table(pa.table({"payload": [encode_segment(segment) for segment in segments]}), sink)
    base = SAMPLE
    name = "part-00000.parquet"
    run = RunRef(
        "ab" * 16,  # type: ignore[arg-type]
        Encoder("bigint").to_json(),
        (ref(tmp_path / "runs" / ("ab" * 16) / name, sink.getvalue()),),
        len(segments),
        0,
        10 * N,
        10 * N,
        len(sink.getvalue()),
    )
    ones, root = np.ones(N, np.int64), "file:/t"
    paths = tuple(f"{root}/{k}" for k in range(N))
    listed = render_locations(Locations(paths, ones, ones, ones * 10, ones * 0, ones * 0), (root,))
    locations = ref(tmp_path / "locations" / f"{'cd' * 16}.parquet", listed)
    return dataclasses.replace(
        base, type="bigint", runs=(run,), roots=(root,), locations=LocationsRef(locations, N)
    )


def files(folder: Path) -> list[Path]:
    """The run file and the list of locations."""
    return sorted(folder.rglob("*.parquet"))


def test_an_undamaged_version_answers(version: Manifest, tmp_path: Path) -> None:
    """Key 23 lies in the third file."""
    opened = open_version(LocalStore(), f"file:{tmp_path}", version)
    kept = opened.keep(Requirement(np.array([[23, 23]], np.int64)))
    assert kept.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("number", [0, 1])
def test_every_cut_is_found_out(version: Manifest, tmp_path: Path, number: int) -> None:
    """A file shortened to any length at all is corrupt, never a smaller index."""
    path = files(tmp_path)[number]
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptError):
            open_version(LocalStore(), f"file:{tmp_path}", version)


@pytest.mark.parametrize("number", [0, 1])
def test_every_flipped_bit_is_found_out(version: Manifest, tmp_path: Path, number: int) -> None:
    """One bit turned over, wherever, is corrupt."""
    path = files(tmp_path)[number]
    data = path.read_bytes()
    rng = random.Random(1)
    for _ in range(1500):
        place, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        with pytest.raises(CorruptError):
            open_version(LocalStore(), f"file:{tmp_path}", version)


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_file_is_gone(version: Manifest, tmp_path: Path, number: int) -> None:
    """Absence is told apart from damage: the reason shown is another."""
    files(tmp_path)[number].unlink()
    with pytest.raises(GoneError):
        open_version(LocalStore(), f"file:{tmp_path}", version)


def test_files_that_fit_their_checksums_but_not_each_other_are_corrupt(
    version: Manifest, tmp_path: Path
) -> None:
    """A list of fewer locations than the run points at must not be looked up in."""
    one = np.ones(1, np.int64)
    short = render_locations(Locations(("file:/t/0",), one, one, one, one, one), ("file:/t",))
    made = ref(tmp_path / "locations" / f"{'ef' * 16}.parquet", short)
    other = dataclasses.replace(version, locations=LocationsRef(made, 1))
    with pytest.raises(CorruptError):
        open_version(LocalStore(), f"file:{tmp_path}", other)
