"""Tests packed cuts of files: which files a scan skips, reads in full, or reads in part."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.arrays.dtypes import Counts
from sieve.metadata.path_list import PathList
from sieve.reader import packed_cuts
from sieve.reader.packed_cuts import NO_PARTS, PackedCuts
from sieve.reader.packed_files import Files

FOOTER, CUT = st.integers(0, 2**40), st.integers(1, 2**62)
FILES = st.lists(
    st.tuples(FOOTER, st.lists(CUT, max_size=4, unique=True).map(sorted)), min_size=1, max_size=9
)


def columns(files: list[tuple[int, list[int]]]) -> tuple[Counts, Counts, Counts]:
    """Makes three arrays: each file's number of cuts, each file's footer, and all files' cuts."""
    cuts = [cut for _, own in files for cut in own]
    counts, footers = [len(own) for _, own in files], [footer for footer, _ in files]
    return np.array(counts), np.array(footers), np.array(cuts, np.int64)


@given(FILES, st.integers(1, 4), st.data())
def test_files_read_in_part(
    files: list[tuple[int, list[int]]], page: int, data: st.DataObject
) -> None:
    """`skipped` returns which files a scan skips, and the cuts of files that it reads in part."""
    skip = [data.draw(st.lists(st.booleans(), min_size=n, max_size=n)) for n in _counts(files)]
    flags = np.array([flag for own in skip for flag in own])
    share = data.draw(st.sampled_from([0, 2, 1000]))
    with mock.patch.multiple(packed_cuts, PAGE=page, _DENSE=share):
        packed = PackedCuts.of(*columns(files))
        assert len(packed.counts) == -(-len(files) // page)
        for found, given_ in zip(packed.unpacked(), columns(files)[1:], strict=True):
            assert found.tolist() == given_.tolist()
        whole, parts = packed.skipped(~flags)
        assert packed.every(flags).tolist() == whole.tolist() == [all(own) for own in skip]
        assert packed.to_ranges(np.arange(len(files))).tolist() == [
            k for k, own in enumerate(skip) for _ in own
        ]
    some = [k for k, own in enumerate(skip) if any(own) and not all(own)]
    assert parts.numbers.tolist() == some
    assert parts.counts.tolist() == [len(skip[k]) for k in some]
    assert parts.footers.tolist() == [files[k][0] for k in some]
    assert parts.sizes.tolist() == [
        size for k in some for size in np.diff(files[k][1], prepend=0).tolist()
    ]
    assert parts.skip.tolist() == [flag for k in some for flag in skip[k]]
    held = packed.counts, packed.first, packed.footers, packed.sizes
    assert packed.nbytes == sum(part.nbytes for part in held)


def _counts(files: list[tuple[int, list[int]]]) -> list[int]:
    return [len(own) + 1 for _, own in files]


@pytest.mark.parametrize(("cuts", "bits"), [(254, 8), (255, 16)])
def test_counts_up_to_255_need_one_byte(cuts: int, bits: int) -> None:
    """A count of ranges needs one byte up to 255, and more bytes above 255."""
    packed = PackedCuts.of(*columns([(0, list(range(1, cuts + 1))), (0, [])]))
    assert packed.counts.dtype == f"uint{bits}"
    none = np.zeros(cuts + 2, np.bool_)
    whole, parts = packed.skipped(~none)
    assert (whole.tolist(), len(parts.numbers)) == ([False, False], 0)
    assert packed.skipped(none)[0].tolist() == packed.every(~none).tolist() == [True, True]
    none[-1] = True
    assert packed.skipped(~none)[0].tolist() == packed.every(none).tolist() == [False, True]


@pytest.mark.parametrize("kept", [20, 4000])
def test_few_ranges_and_many(kept: int) -> None:
    """`skipped` is right for few and for many kept ranges. Each case has its own algorithm."""
    n = 3 * packed_cuts.PAGE + 5
    packed = PackedCuts.of(np.full(n, 1), np.arange(n), np.arange(n) + 1)
    skip = np.ones(2 * n, np.bool_)
    skip[np.random.default_rng(kept).integers(0, 2 * n, kept)] = False
    skip[[0, 1, 2 * n - 1]] = False
    both, some = skip.reshape(-1, 2).all(axis=1), skip.reshape(-1, 2).any(axis=1)
    whole, parts = packed.skipped(~skip)
    assert whole.tolist() == both.tolist()
    assert parts.numbers.tolist() == np.flatnonzero(some & ~both).tolist()
    assert parts.footers.tolist() == parts.numbers.tolist()
    assert parts.sizes.tolist() == (parts.numbers + 1).tolist()
    assert parts.skip.reshape(-1, 2).tolist() == skip.reshape(-1, 2)[parts.numbers].tolist()


def test_files_without_cuts_are_ranges() -> None:
    """If no file is cut, each file is one range, and no scan reads a file in part."""
    none = np.zeros(2, np.int64)
    packed = Files(PathList.of("ab"), none, none, none, none, none[:0]).packed()
    assert (packed.cuts, packed.n_ranges) == (None, 2)
    skip = np.array([True, False])
    assert packed.every(skip).tolist() == skip.tolist()
    assert packed.to_ranges(np.array([5, 7])).tolist() == [5, 7]
    whole, parts = packed.skipped(~skip)
    assert (whole.tolist(), parts) == (skip.tolist(), NO_PARTS)
