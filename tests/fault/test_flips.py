"""Sieve detects flipped bits, truncation and zeros in each index file that a scan needs."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_scenarios import prepared

from tests.fake_scan import scan
from tests.fake_spark import MODES, Warehouse, without_spark

SHORT, MORE, LONG = 70, 200, 10_000
HARMLESS = frozenset({"intent.json", "registered", "_SUCCESS"})
"""Files that no scan reads."""


@pytest.fixture(autouse=True, params=MODES)
def plain(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs each test with `tests.fake_spark` instead of Spark."""
    with without_spark(request.param):
        yield


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Flips one bit of the data in four of five cases; otherwise cuts or partly zeroes the data."""
    place = chance.randrange(len(data))
    match chance.randrange(10):
        case 0:
            return data[:place]
        case 1:
            end = min(len(data), place + chance.randrange(1, 4096))
            return data[:place] + bytes(end - place) + data[end:]
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def play(folder: Path, times: int) -> None:
    """Repeatedly damages a random file of an index, runs a query, and restores the file."""
    seed = os.environ.get("SIEVE_SEED", str(random.SystemRandom().getrandbits(32)))
    chance = random.Random(seed)
    warehouse, _ = prepared(folder, "optimize")
    files = [path for path in warehouse.root.rglob("*") if path.is_file() and path.stat().st_size]
    ends: Counter[str] = Counter()
    for _ in range(times):
        path = chance.choice(files)
        data = path.read_bytes()
        path.write_bytes(now := damaged(chance, data))
        ends[looked_at(warehouse, chance.randrange(60), path, now == data)] += 1
        path.write_bytes(data)
    sys.stdout.write(f"SIEVE_SEED={seed}: {times} times, 0 wrong rows: {dict(ends)}\n")


def looked_at(warehouse: Warehouse, key: int, path: Path, same: bool) -> str:
    """Returns the reason that a scan reports, or "not needed" if the scan did not read the file."""
    told = scan(warehouse, "t", key)
    if told.reasons:
        assert path.name not in HARMLESS
        assert set(told.reasons) <= {"index-corrupt", "version-too-new", "index-gone"}, told
        assert told.files == told.total
        return told.reasons[0]
    in_force = f"@{max(int(p.stem) for p in warehouse.root.glob('*/versions/*'))}"
    assert told.used[0].endswith(in_force)
    assert same or path.name != f"{in_force[1:]}.json", "a damaged manifest was believed"
    return "not needed"


@pytest.mark.parametrize("times", [SHORT, pytest.param(MORE, marks=pytest.mark.long)])
def test_damage_anywhere(tmp_path: Path, times: int) -> None:
    """Random damage to an index causes no wrong row.

    A scan that needs a damaged file reports a reason.
    """
    play(tmp_path, times)


@pytest.mark.soak
def test_much_damage_anywhere(tmp_path: Path) -> None:
    """Random damage, ten thousand times, causes no wrong row."""
    play(tmp_path, LONG)
