"""Packed files: `unpacked` returns the same files as a reader of the wire format."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sieve.metadata.path_list import PathList
from sieve.reader.packed_files import Files
from tests.wire import files_of

FILE = st.tuples(
    st.sampled_from(["", "file:/t/a", "s3://b/é", "x\ny"]),
    st.sampled_from([-2, -1, 0, 7, 2**62]),
    st.integers(-1, 2**62),
    st.lists(st.integers(1, 2**62), max_size=3, unique=True).map(sorted),
    st.integers(0, 2**40),
)


def made(files: list[Any]) -> Files:
    """Packs the files into columns."""
    paths, lengths, times, cuts, footers = zip(*files, strict=True) if files else ((),) * 5
    counts = np.array([len(own) for own in cuts], np.int64)
    flat = np.array([at for own in cuts for at in own], np.int64)
    columns = (np.array(one, np.int64) for one in (lengths, times))
    return Files(PathList.of(paths), *columns, counts, np.array(footers, np.int64), flat)


@given(st.lists(FILE, max_size=8), st.integers(0, 3))
def test_unpacked_files_equal_the_original_files(files: list[Any], first: int) -> None:
    """Unpacking returns the packed files, from a whole list or from a part of a list."""
    of = made(files)
    of = replace(of, paths=PathList.of(["?"] * first + list(of.paths))[first:])
    packed = of.packed()
    assert packed.n == len(files)
    assert packed.n_ranges == sum(len(cuts) + 1 for _, _, _, cuts, _ in files)
    assert packed.is_distinct == (len({path for path, *_ in files}) == len(files))
    back = packed.unpacked()
    assert back.paths == of.paths
    for name in ("lengths", "times", "cut_counts", "cuts"):
        assert getattr(back, name).tolist() == getattr(of, name).tolist()
    is_cut = any(cuts for _, _, _, cuts, _ in files)
    assert back.footers.tolist() == [foot if is_cut else 0 for *_, foot in files]
    parts = {"rows": packed.rows, "paths": packed.text}
    wire = {name: base64.b64encode(part).decode() for name, part in parts.items()}
    told = files_of(wire | {"files": packed.n})
    assert told == [((path, size, time), len(cuts) + 1) for path, size, time, cuts, _ in files]
    every = [(k, at) for k, (_, _, _, cuts, _) in enumerate(files) for at in (0, *cuts)]
    assert list(zip(of.range_owners.tolist(), of.range_starts.tolist(), strict=True)) == every
    cuts = 0 if packed.cuts is None else packed.cuts.nbytes
    assert (cuts > 0) == is_cut
    assert packed.nbytes == len(packed.rows) + len(packed.text) + cuts


def test_files_are_the_same_in_all_columns() -> None:
    """`same` is true exactly if all columns of two packed lists are equal."""
    file: Any = ("file:/t/a", 5, 6, [3], 1)
    one = made([file]).packed()
    assert one.same(made([file]).packed())
    others: list[Any] = [
        ("file:/t/b", 5, 6, [3], 1), ("file:/t/a", 4, 6, [3], 1), ("file:/t/a", 5, 7, [3], 1),
        ("file:/t/a", 5, 6, [2], 1), ("file:/t/a", 5, 6, [3], 2), ("file:/t/a", 5, 6, [3, 4], 1),
    ]  # fmt: skip
    assert not any(one.same(made([other]).packed()) for other in others)
