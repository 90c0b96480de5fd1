"""A list of locations that is stored in parts equals the whole list, even after changes."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.indexing.write_file_list import NOTHING_STORED, STEP, Stored, store_list
from sieve.metadata.file_list import (
    COLUMNS,
    FileState,
    Locations,
    diff,
    merge,
)
from sieve.reader.version_reader import read_part
from sieve.storage.interface import READ_LIMIT
from sieve.storage.local import LocalStore

ROOTS = ("file:/t", "hdfs://n/other", "file:/t/below")

Row = tuple[str, int, int, int, int, int, int, int, tuple[int, ...]]

states = st.sampled_from(FileState).filter(lambda state: state != FileState.REMOVED)
rows = st.tuples(
    st.builds("{}/{}".format, st.sampled_from(ROOTS), st.integers(0, 30)),
    states,
    st.sampled_from([0, 7, 1 << 40]),
    *([st.integers(0, 2)] * 4),
    st.integers(-1, 40),
    st.just(()) | st.lists(st.integers(0, 40), max_size=3).map(tuple),
)
lists = st.lists(rows, max_size=40)


@dataclass(frozen=True, slots=True)
class MemoryStore(LocalStore):
    """Files in memory."""

    files: dict[str, bytes] = field(default_factory=dict)

    def create(self, uri: str, data: bytes) -> bool:
        """Stores a file."""
        self.files[uri] = data
        return True

    def read(self, uri: str, _limit: int = READ_LIMIT) -> bytes:
        """Returns the bytes of a file."""
        return self.files[uri]


def listed(told: list[Row]) -> Locations:
    """A list of locations with the given rows. Several rows can have the same path."""
    columns = zip(*told, strict=True) if told else [()] * 9
    paths, states, *numbers, also = columns
    width = max(map(len, also), default=0)
    places = np.array([[*one, *[-1] * (width - len(one))] for one in also], np.int64)
    return Locations(
        tuple(paths), np.array(states, np.int8),
        *(np.array(column, np.int64) for column in numbers),
        also=places.reshape(len(told), width) if width else None,
    )  # fmt: skip


def canonical_rows(by: Locations) -> Counter[Row]:
    """The rows of a list, in a canonical order."""
    columns = (getattr(by, name).tolist() for name in COLUMNS)
    also = [tuple(k for k in one if k >= 0) for one in by.places[:, 1:].tolist()]
    return Counter(zip(by.paths, *columns, also, strict=True))


@given(lists, lists)
def test_difference_turns_one_list_into_the_other(before: list[Row], now: list[Row]) -> None:
    """The difference of two lists turns the first list into the second, without unchanged rows."""
    part = diff(listed(before), listed(now))
    assert canonical_rows(merge([listed(before), part])) == Counter(now)
    paths = Counter(row[0] for row in [*before, *now])
    once = {row for row in now if paths[row[0]] == 2 and row in before}
    assert not once & set(canonical_rows(part))


changes = st.lists(
    st.tuples(st.sets(st.integers(0, 200), max_size=12), st.sets(st.integers(0, 200), max_size=12)),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(changes)
def test_each_stored_list_reads_back_unchanged(steps: list[tuple[set[int], set[int]]]) -> None:
    """Each stored list is read back unchanged, even if files and slots change between versions.

    Within a list, each part has several times as many rows as the part after it. A new version
    writes only parts that are not in the previous version.
    """
    store, before = MemoryStore(), NOTHING_STORED
    files: dict[int, Row] = {}
    for number, (written, gone) in enumerate(steps):
        files |= {
            k: (
                f"{ROOTS[k % 3]}/{k}",
                FileState.READ,
                1,
                number,
                1,
                0,
                0,
                len(files),
                (k,) * (number % 4),
            )
            for k in written
        }
        for k in gone - written:
            files.pop(k, None)
        now = listed(list(files.values()))
        had = len(store.files)
        used = tuple(sorted({path.rpartition("/")[0] for path in now.paths}))
        ref, roots = store_list(store, "file:/i", now, used, before)
        assert len(store.files) == had + 2  # one file for a part, and one for its pending write
        parts = tuple(read_part(store, "file:/i", part, roots) for part in ref.parts)
        before = Stored(ref.parts, parts, roots, merge(parts))
        assert canonical_rows(before.whole) == canonical_rows(now)
        assert ref.count == len(now.paths)
        sizes = [part.rows for part in ref.parts]
        assert all(one >= STEP * after for one, after in itertools.pairwise(sizes))
        assert sum(sizes) <= 2 * len(files) or len(sizes) == 1
