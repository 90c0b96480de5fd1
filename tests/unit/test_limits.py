"""Pages state the same limits as the code, because other programs rely on the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from sieve.encoding import split_points
from sieve.metadata import file_list, manifest, registration
from sieve.predicate import parse_predicate
from sieve.segments.blocks import format as blocks
from sieve.segments.hash_map import format as hash_map
from sieve.segments.hash_map import fuse_function
from sieve.segments.intervals import format as shapes

DOCS = Path(__file__).parents[2] / "docs"
MIB = 1 << 20


@pytest.mark.parametrize(
    ("page", "words", "stated", "limits"),
    [
        ("format", "at most 1,023 characters", [1023], [registration.VALUE_LIMIT]),
        ("format", "ASCII JSON, at most 32 MiB", [32 * MIB], [manifest.MANIFEST_LIMIT]),
        ("format", "`expected` (at most 100)", [100], [manifest.MAX_KINDS]),
        ("format", "Each array has at most 10,000 intervals", [10_000], [manifest.MAX_RANGES]),
        ("format", "further slots of the location, at most 64", [64], [file_list.MOST_ALSO]),
        ("format", "rounded down; 1 to 2^24", [1 << 24], [blocks.MAX_BLOCKS]),
        ("format", "number of postings; 1 to 2^27", [1 << 27], [blocks.MAX_POSTINGS]),
        ("format", "number of entries, 1 to 2^24", [1 << 24], [shapes.MAX_ENTRIES]),
        ("format", "number of blocks, 1 to 2^25", [1 << 25], [2 * shapes.MAX_ENTRIES]),
        ("format", "distinct hashes, at most 2^23", [1 << 23], [fuse_function.MAX_KEYS]),
        ("format", "all these sets; at most 2^25", [1 << 25], [hash_map.MAX_POSTINGS]),
        ("format", "bits of a fingerprint, at most 24", [24], [hash_map.MAX_FINGERPRINT_BITS]),
        (
            "format",
            "1 to 4,096 in at most 16 KiB",
            [4096, 16 << 10],
            [split_points.MOST_POINTS, split_points.MOST_BYTES],
        ),
        ("format", "at most 128 bytes long", [128], [split_points.LONGEST_POINT]),
        ("format", "127 at most", [127], [split_points.WIDEST_ALPHABET]),
        (
            "architecture",
            "200 levels, 10,000 nodes, 200,000 values",
            [200, 10_000, 200_000],
            [parse_predicate.MAX_DEPTH, parse_predicate.MAX_NODES, parse_predicate.MAX_VALUES],
        ),
    ],
)
def test_a_page_states_the_limits_of_the_code(
    page: str, words: str, stated: list[int], limits: list[int]
) -> None:
    """The code has exactly the limits that a page states in certain words."""
    assert words in (DOCS / f"{page}.md").read_text()
    assert limits == stated
