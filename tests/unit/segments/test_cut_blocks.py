"""Tests segments of blocks: where each segment ends, and how wide the blocks are."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import InvalidInputError
from sieve.metadata.index_options import IndexOptions
from sieve.segments.blocks import cut_blocks as cone
from sieve.segments.blocks.cut_blocks import DEFAULT_ERROR, Segment, cut_segments
from sieve.segments.blocks.key_groups import Keys


def chunk(codes, locations, rows=None):
    """A chunk of pairs, in arrays of the types that a build uses."""
    rows = np.ones(len(codes)) if rows is None else rows
    return np.array(codes, np.int64), np.array(locations, np.int32), np.array(rows, np.int64)


def contents(segment: Segment) -> list[dict[int, int]]:
    """Returns, for each block, the number of rows in each location."""
    blocks = segment.blocks
    return [
        dict(zip(blocks.locations[a:b].tolist(), blocks.rows[a:b].tolist(), strict=True))
        for a, b in zip(blocks.offsets[:-1], blocks.offsets[1:], strict=True)
    ]


def test_one_location_makes_one_block():
    """If all keys are in the same location, one block contains all of them."""
    (segment,) = cut_segments([chunk(range(0, 3000, 3), [7] * 1000)])
    assert (segment.first, segment.last, segment.width) == (0, 2997, 2998)
    assert contents(segment) == [{7: 1000}]


def test_blocks_are_as_many_as_changes_plus_one():
    """If the set of locations changes n times, the segment has n + 1 blocks of equal width.

    Four groups of keys, each in its own file, give four blocks.
    """
    (segment,) = cut_segments([chunk(range(400), np.repeat([0, 1, 2, 3], 100))])
    assert segment.width == 100
    assert contents(segment) == [{0: 100}, {1: 100}, {2: 100}, {3: 100}]


def test_width_is_rounded_up_and_no_block_is_left_over():
    """The width of blocks is rounded up, so no empty block follows the last key.

    Ten keys with five changes give the width ceil(10/6) = 2, and therefore five blocks.
    """
    (segment,) = cut_segments([chunk(range(10), [0, 0, 1, 1, 2, 2, 3, 3, 4, 5])])
    assert segment.width == 2
    assert contents(segment) == [{0: 2}, {1: 2}, {2: 2}, {3: 2}, {4: 1, 5: 1}]


def test_a_change_is_a_change_of_the_set():
    """A different set of locations counts as a change; another order of the locations does not."""
    keys = [1, 1, 2, 2, 3, 3, 4]
    (segment,) = cut_segments([chunk(keys, [0, 1, 1, 0, 1, 2, 1])])
    assert contents(segment) == [{0: 2, 1: 2}, {1: 2, 2: 1}]
    assert segment.width == 2


def test_equal_keys_over_many_chunks_are_one_key():
    """Equal keys in several chunks count as one key, with the sum of the rows.

    A key that occurs again in a later chunk does not end a segment.
    """
    chunks = [chunk([1, 5], [0, 0], [1, 2])] + [chunk([5, 5], [0, 3], [1, 1])] * 5
    for batch in (1, 3, 1 << 18):
        with mock.patch("sieve.segments.blocks.key_groups._BATCH", batch):
            (segment,) = cut_segments([*chunks, chunk([9], [3])])
        assert segment.width == 3
        assert contents(segment) == [{0: 1}, {0: 7, 3: 5}, {3: 1}]


def test_full_segments_close():
    """Each segment has at most `max_keys` distinct keys."""
    segments = list(cut_segments([chunk(range(10), [0] * 10)], max_keys=4))
    assert [(s.first, s.last) for s in segments] == [(0, 3), (4, 7), (8, 9)]


def test_keys_of_many_locations_close_segments_too():
    """A segment ends after 16 * `max_keys` pairs of key and location."""
    codes = np.repeat(np.arange(6), 40)
    segments = list(cut_segments([chunk(codes, np.tile(np.arange(40), 6))], max_keys=5))
    assert [(s.first, s.last) for s in segments] == [(0, 1), (2, 3), (4, 5)]


def test_large_holes_close_segments():
    """A gap longer than `hole` ends a segment, but a gap of exactly `hole` does not."""
    codes = [0, 10, 21, LEAST + 5, GREATEST]
    segments = list(cut_segments([chunk(sorted(codes), [0] * 5)], hole=10))
    assert [(s.first, s.last) for s in segments] == [
        (LEAST + 5, LEAST + 5),
        (0, 10),
        (21, 21),
        (GREATEST, GREATEST),
    ]


def test_holes_between_batches_close_segments():
    """A gap at the end of a batch ends a segment, too."""
    chunks = [chunk([code], [0]) for code in (0, 1, 100, 101)]
    with mock.patch("sieve.segments.blocks.key_groups._BATCH", 1):
        segments = list(cut_segments(chunks, hole=50))
    assert [(s.first, s.last) for s in segments] == [(0, 1), (100, 101)]


def test_segment_ends_if_the_pace_of_change_changes():
    """If locations begin to change more often, the segment ends about `error` changes later.

    In this test, keys in the second half alternate between two files.
    """
    locations = np.concatenate([np.zeros(10_000), np.arange(10_000) % 2])
    segments = list(cut_segments([chunk(range(20_000), locations)], error=10))
    assert segments[0].first == 0
    assert 10_000 < segments[0].last < 10_100
    # In the second segment, locations change at every key, so each key has its own block.
    assert segments[1].width == 1


def test_the_whole_domain_is_one_segment():
    """In a segment over all 2^64 codes, each key is still in the right block.

    The difference of two codes can exceed an int64.
    """
    (segment,) = cut_segments([chunk([LEAST, 0, GREATEST], [0, 1, 0])])
    assert segment.width == -(-(1 << 64) // 3)
    assert contents(segment) == [{0: 1}, {1: 1}, {0: 1}]


def test_the_whole_domain_in_one_location_has_a_width_of_64_bits():
    """A segment over all 2^64 codes in one location has two blocks.

    The width of a single block over all codes would not fit into 64 bits.
    """
    (segment,) = cut_segments([chunk([LEAST, GREATEST], [4, 4])])
    assert segment.width == 1 << 63
    assert contents(segment) == [{4: 1}, {4: 1}]


def test_keys_that_are_equal_as_doubles_stay_different():
    """Each key gets its own block, even if two keys would be equal as doubles."""
    keys = [(1 << 62) + i for i in range(5)]
    (segment,) = cut_segments([chunk(keys, [0, 1, 2, 3, 4])])
    assert contents(segment) == [{i: 1} for i in range(5)]


def test_the_default_error_is_that_of_an_index() -> None:
    """The option `error` and `cut_segments` have the same default."""
    assert IndexOptions("sieve").error == DEFAULT_ERROR


def test_empty_chunk_has_no_effect():
    """A task's batch can have no rows, so an empty chunk between others has no effect."""
    chunks = [chunk([], []), chunk([1, 2], [0, 0]), chunk([], []), chunk([3], [0])]
    (segment,) = cut_segments(chunks)
    assert (segment.first, segment.last, contents(segment)) == (1, 3, [{0: 3}])


def test_no_pairs_make_no_segment():
    """Without pairs there is no segment."""
    assert list(cut_segments([])) == []
    assert list(cut_segments([chunk([], [])])) == []


@pytest.mark.parametrize(
    "options", [{"error": 0}, {"max_keys": 0}, {"max_keys": (1 << 24) + 1}, {"hole": 0}]
)
def test_parameters_out_of_range_are_refused(options):
    """The error for an invalid parameter names all three parameters and their limits."""
    with pytest.raises(InvalidInputError, match="max_keys"):
        list(cut_segments([], **options))
    assert list(cut_segments([], error=1, max_keys=1 << 24, hole=1)) == []


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk([2, 1], [0, 0])],
        [chunk([1, 5], [0, 0]), chunk([4], [0])],
        [chunk([1], [-1])],
        [chunk([1], [0], [0])],
        [chunk([1, 2], [0])],
        [chunk([1], [0], [1, 1])],
        [chunk([1], [0, 1], [1])],
    ],
)
def test_pairs_that_would_lose_rows_are_refused(chunks):
    """Unsorted keys, negative locations, counts below 1 and unequal lengths raise an error."""
    with pytest.raises(InvalidInputError):
        list(cut_segments(chunks))


@pytest.mark.parametrize(
    ("sets", "previous", "changed"),
    [
        ([[0], [0], [1], [1]], None, [0, 0, 1, 0]),
        ([[0], [0]], [0], [0, 0]),
        ([[0], [0]], [1], [1, 0]),
        ([[0, 1], [0, 1], [0, 2], [0, 1]], None, [0, 0, 1, 1]),
        ([[0, 1], [0, 2], [1, 2]], [0, 1], [0, 1, 1]),
        ([[0, 1], [0], [0, 1], [0, 1]], [0], [1, 1, 1, 0]),
        ([[3], [1, 2], [1, 2], [0, 2]], None, [0, 1, 0, 1]),
    ],
)
def test_set_is_compared_with_the_previous_set(sets, previous, changed):
    """Even across chunks, a key's set of locations is compared with the previous key's set."""

    def keys(some):
        offsets = np.cumsum([0, *map(len, some)])
        locations = np.array([k for one in some for k in one], np.int32)
        return Keys(np.arange(len(some)), offsets, locations, np.ones(len(locations), np.int64))

    found = cone._changed(keys(sets), None if previous is None else keys([previous]))
    assert found.tolist() == [bool(one) for one in changed]
