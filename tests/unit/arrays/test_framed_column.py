"""A framed column returns the same numbers as a plain array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.arrays.framed_column import FRAME, FramedColumn

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


@given(
    st.sampled_from([0, 1, FRAME - 1, FRAME, FRAME + 1, 3 * FRAME + 7]),
    st.lists(st.sampled_from([0, 1, 8, 16, 31, 33, 56, 57, 63, 64]), min_size=4, max_size=4),
    st.integers(0, 1 << 32),
)
def test_numbers_are_read_back_in_any_order(n: int, bits: list[int], seed: int) -> None:
    """A column's numbers can be read in any order, even if the column's frames differ in width."""
    rng = np.random.default_rng(seed)
    values = np.concatenate(
        [rng.integers(-(1 << b) // 2, -(-(1 << b) // 2), FRAME, endpoint=True)
         if b < 64 else rng.integers(LEAST, GREATEST, FRAME, endpoint=True) for b in bits]
    )[:n]  # fmt: skip
    column = FramedColumn.of(values)
    assert column.take(np.arange(n)).tolist() == values.tolist()
    places = rng.integers(0, max(n, 1), 20 if n else 0)
    assert column.take(places).tolist() == values[places].tolist()
    parts = column.least, column.width, column.start, column.data
    assert column.nbytes == sum(part.nbytes for part in parts)


@pytest.mark.parametrize(("top", "width"), [
    (0, 0), (1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), ((1 << 56) - 1, 7), (1 << 56, 8),
])  # fmt: skip
@pytest.mark.parametrize("least", [LEAST, -5, 0, GREATEST - (1 << 56)])
def test_a_frame_has_as_few_bytes_as_its_range(top: int, width: int, least: int) -> None:
    """A frame's width depends only on the difference of its greatest and its least number."""
    values = np.full(FRAME + 3, least, np.int64)
    values[5] += top
    column = FramedColumn.of(values)
    assert (column.width.tolist(), len(column.data)) == ([width, 0], width * FRAME + 8)
    assert column.take(np.arange(len(values))).tolist() == values.tolist()


def test_the_ends_of_all_integers() -> None:
    """A frame with both ends of the 64-bit domain is read back unchanged."""
    values = np.array([GREATEST, LEAST, 0, -1])
    assert FramedColumn.of(values).take(np.array([3, 2, 1, 0])).tolist() == values[::-1].tolist()


def test_columns_are_the_same_in_all_frames() -> None:
    """`same` returns true only if two columns have equal numbers in every frame."""
    one = FramedColumn.of(np.array([5, 7]))
    assert one.same(FramedColumn.of(np.array([5, 7])))
    for other in ([5, 8], [6, 8], [5, 300], [5], [5, 7, *[7] * FRAME]):
        assert not one.same(FramedColumn.of(np.array(other)))


def test_the_same_bytes_may_be_other_numbers() -> None:
    """Two columns with equal bytes, but with frames of different widths, are not the same."""
    data = np.ones(3 * FRAME, np.uint8)
    data[[0, 1, 2 * FRAME, 2 * FRAME + 1]] = 0
    one, two = (
        FramedColumn.of(np.concatenate([part.astype(np.int64) for part in parts]))
        for parts in (
            (data[:FRAME], data[FRAME:].view("<u2")),
            (data[: 2 * FRAME].view("<u2"), data[2 * FRAME :]),
        )
    )
    assert one.data.tolist() == two.data.tolist()
    assert one.least.tolist() == two.least.tolist()
    assert not one.same(two)
