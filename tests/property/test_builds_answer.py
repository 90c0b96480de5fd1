"""Sends generated columns through all steps of a build. No query misses a file with a match.

The tests cover every shape, type, encoder and budget. The queries look for keys, neighbours of
keys, codes in gaps, values beyond both ends, ranges and lists. The tests compute the expected files
from the values, not from the codes.
"""

from __future__ import annotations

import itertools
import math
import operator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.encoding import hashing
from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.metadata.key_bounds import KeyBounds
from sieve.predicate.key_ranges import key_ranges
from sieve.predicate.parse_predicate import parse
from sieve.reader.extents import concat_ends, ends_of, extents
from tests.build_steps import SHAPES, build
from tests.generated_encoders import encoders_for
from tests.generated_values import KINDS, image, ordered

SIZES = st.sampled_from([0, 1, 1000, 1 << 40])
BUDGETS = st.sampled_from([1, 100, 64 << 10])
FEW = np.uint64(3)
"""If values must share hashes, a test has this number of different hashes."""


def is_nan(value):
    """Returns whether a value is a NaN."""
    return isinstance(value, float) and math.isnan(value)


def hashed(kind, values):
    """Returns Spark's hashes of the values in a file.

    Types with exact codes do not need hashes.
    """
    if kind.of_bytes:
        images = [b"" if v is None else image(v) for v in values]
    elif not Encoder(kind.name).exact:
        images = [hashing.decimal_bytes(v or 0) for v in values]
    else:
        return np.zeros(len(values), np.uint64)
    return hashing.hash_bytes(images)


@st.composite
def columns(draw):
    """Draws a column type and the values of each file.

    Files get consecutive parts of the sorted values, or every n-th value, or all values, or random
    values.
    """
    kind = draw(st.sampled_from(KINDS))
    value = st.one_of(st.sampled_from(kind.values), st.sampled_from(kind.values), st.none())
    n_files = draw(st.sampled_from([1, 2, 3, 9]))
    pattern = draw(st.sampled_from(["runs", "sawtooth", "alike", "random"]))
    if pattern == "random":
        lists = st.lists(value, max_size=12)
        return kind, draw(st.lists(lists, min_size=n_files, max_size=n_files))
    values = draw(st.lists(value, max_size=30))
    if pattern == "alike":
        return kind, [values] * n_files
    if pattern == "sawtooth":
        return kind, [values[number::n_files] for number in range(n_files)]
    values.sort(key=lambda v: (v is not None, ordered(v) if v is not None else 0))
    size = -(-len(values) // n_files)
    return kind, [values[at * size : (at + 1) * size] for at in range(n_files)]


def made(data, kind, files, shape, hashes=hashed, **more):
    """Builds the run of a column with a random encoder, budget and number of tasks."""
    values = [value for file in files for value in file]
    encoder = data.draw(encoders_for(kind, [v for v in values if v is not None]))
    codes = encoder.encode(kind.column(values)).codes.tolist()
    near = st.sampled_from(codes) if codes else st.nothing()
    borders = st.lists(st.one_of(near, st.sampled_from([LEAST, 0, GREATEST])), max_size=3)
    return build(
        [kind.column(file) for file in files],
        encoder,
        shape,
        data.draw(BUDGETS),
        hashes=[hashes(kind, file) for file in files],
        batch=data.draw(st.sampled_from([1, 3, 1 << 20])),
        tasks_a_file=data.draw(st.sampled_from([1, 2])),
        borders=data.draw(borders),
        sizes=data.draw(st.none() | st.lists(SIZES, min_size=len(files), max_size=len(files))),
        **more,
    )


def files_with_a_match(built, tree):
    """Returns the files in which a comparison can be true, according to the index."""
    return set(np.flatnonzero(built.keep(key_ranges(parse(tree), built.encoder))).tolist())


OPERATORS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def check_values(kind, files, built):
    """Checks comparisons with each value, whether present or absent, and with lists of values."""
    values = [[ordered(v) for v in file if v is not None] for file in files]
    for constant in kind.values:
        bound = ordered(constant)
        for op, holds in OPERATORS.items():
            tree = {"op": op, "col": ["x"], "value": kind.wire(constant)}
            truth = {at for at, file in enumerate(values) if any(holds(v, bound) for v in file)}
            assert truth <= files_with_a_match(built, tree)
    for some in (kind.values, kind.values[::2], kind.values[1:3]):
        tree = {"op": "in", "col": ["x"], "values": [kind.wire(value) for value in some]}
        among = [ordered(value) for value in some]
        truth = {at for at, file in enumerate(values) if any(v in among for v in file)}
        assert truth <= files_with_a_match(built, tree)


def check_codes(kind, files, built):
    """Checks codes of keys, nearby codes, codes in gaps and beyond both ends, ranges and lists."""
    codes = [built.encoder.encode(kind.column(file)) for file in files]
    keys = [set(e.codes[e.valid & ~e.nan].tolist()) for e in codes]
    present = sorted(set().union(*keys))
    middles = [(low + high) // 2 for low, high in itertools.pairwise(present)]
    around = [code + off for code in present for off in (-1, 0, 1)]
    points = sorted({p for p in [*around, *middles, LEAST, GREATEST] if LEAST <= p <= GREATEST})
    intervals = [(p, p) for p in points] + list(zip(points, points[4:], strict=False))
    for low, high in intervals:
        truth = {at for at, some in enumerate(keys) if any(low <= k <= high for k in some)}
        found = built.locations_in(np.array([[low, high]]))
        assert truth <= set(np.flatnonzero(found).tolist())
    together = built.locations_in(np.array([(p, p) for p in points[::2]]))
    truth = {at for at, some in enumerate(keys) if some & set(points[::2])}
    assert truth <= set(np.flatnonzero(together).tolist())


def exact_bounds(encoded):
    """Returns the least and the greatest code of each file."""
    codes = [one.codes[one.valid & ~one.nan] for one in encoded]
    least = np.array([some.min(initial=GREATEST) for some in codes], np.int64)
    return KeyBounds(least, np.array([some.max(initial=LEAST) for some in codes], np.int64))


def check_extents(kind, files, built):
    """Checks each file's first key in ascending and in descending order.

    In each order, the stored first key precedes all keys of a file, and stored counts are low
    enough.
    """
    n = len(files)
    keyed = built.rows - built.nulls - built.nans
    encoded = [built.encoder.encode(kind.column(file)) for file in files]
    ends = concat_ends(built.ends, [one.location.astype(np.int64) for one in built.ends])
    bounds = exact_bounds(encoded)
    for turned, found, exact in (
        (lambda codes: codes, extents(ends, keyed), False),
        (lambda codes: ~codes, extents(ends.falling(), keyed), False),
        (lambda codes: codes, extents(ends, keyed, bounds), True),
        (lambda codes: ~codes, extents(ends.falling(), keyed, bounds.falling()), True),
        (lambda codes: codes, extents(ends_of(bounds), keyed), True),
        (lambda codes: ~codes, extents(ends_of(bounds.falling()), keyed), True),
    ):
        steps = found.steps
        assert np.all(steps.codes[1:] >= steps.codes[:-1])
        assert np.all(steps.rows >= 1)
        assert np.bincount(steps.locations, steps.rows, n).tolist() == keyed.tolist()
        for at, one in enumerate(encoded):
            codes = np.sort(turned(one.codes[one.valid & ~one.nan]))
            assert found.has_keys[at] == (len(codes) > 0)
            assert not len(codes) or found.least[at] <= codes[0]
            own = steps.locations == at
            if exact and len(codes):
                assert found.least[at] == codes[0] == steps.codes[own][0]
                assert steps.codes[own][-1] == codes[-1]
            surely = np.cumsum(steps.rows[own])
            there = np.searchsorted(codes, steps.codes[own], side="right")
            assert np.all(surely <= there)


def check_counts(files, built):
    """Checks the counts of rows, NULLs and NaNs of each file."""
    assert built.rows.tolist() == [len(file) for file in files]
    assert built.nulls.tolist() == [sum(v is None for v in file) for file in files]
    assert built.nans.tolist() == [sum(is_nan(v) for v in file) for file in files]


@pytest.mark.usefixtures("fifth")
@pytest.mark.parametrize("shape", SHAPES)
@given(columns(), st.data())
@settings(max_examples=12)
def test_every_shape_finds_all_files_with_a_match(shape, column, data):
    """For any type, encoder, budget and number of tasks, queries find each file with a match."""
    kind, files = column
    built = made(data, kind, files, shape)
    check_counts(files, built)
    check_codes(kind, files, built)
    check_values(kind, files, built)
    check_extents(kind, files, built)


@pytest.mark.usefixtures("fifth")
@given(columns(), st.data())
@settings(max_examples=12)
def test_values_that_share_a_hash_lose_nothing(column, data):
    """If all values share only three hashes, a map still finds the files of every value."""
    kind, files = column

    def of_codes(codes):
        return hashing.hash_codes(codes) % FEW

    def of_images(images):
        return hashing.hash_bytes(images) % FEW

    with (
        mock.patch("sieve.indexing.hash_map_tasks.hash_codes", of_codes),
        mock.patch("sieve.predicate.key_ranges.hash_codes", of_codes),
        mock.patch("sieve.predicate.key_ranges.hash_bytes", of_images),
    ):
        bits = data.draw(st.sampled_from([0, 8]))
        built = made(data, kind, files, "map", lambda *of: hashed(*of) % FEW, bits=bits)
        check_values(kind, files, built)
        assert all(one.n_keys <= 3 for one in built.maps)


def odd_columns(kind):
    """Unusual columns, such as columns of NULLs. The key of an entry names the unusual property."""
    nans = [v for v in kind.values if is_nan(v)]
    low, high = (at(kind.values, key=ordered) for at in (min, max))
    cases = {
        "one value": [[high], [high], [high]],
        "one file": [kind.values],
        "a file without rows": [[low], [], [high]],
        "no rows at all": [[], []],
        "only NULLs": [[None] * 3, [None]],
        "NULLs in some files": [[None, low], [None], [high]],
        "the type's ends": [[low], [high], [low, high]],
        "the same keys in every file": [kind.values * 2] * 4,
    }
    if nans:
        cases["only NaNs"] = [nans, nans * 2]
        cases["NaNs beside the ends"] = [[low, *nans], nans, [high]]
    return cases


FAMILIES = ("boolean", "bigint", "double", "decimal(38,3)", "string")
"""One type for each kind of key code. All shapes except maps depend only on key codes.

Maps depend on hashes of values, so the test builds maps for every type.
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        pytest.param(kind, shape, id=f"{kind.name}-{shape}")
        for kind in KINDS
        for shape in (SHAPES if kind.name in FAMILIES else ("map", "auto"))
    ],
)
def test_odd_columns_lose_nothing(kind, shape):
    """Queries find each file with a match, even if a column has one value, one file or no row.

    Queries also find each file if all values are NULL, NaN or ends of the domain. Queries also find
    each file if all files have equal values.
    """
    for files in odd_columns(kind).values():
        arrays = [kind.column(file) for file in files]
        hashes = [hashed(kind, file) for file in files]
        for budget in (1, 64 << 10):
            built = build(arrays, Encoder(kind.name), shape, budget, hashes=hashes)
            check_counts(files, built)
            check_codes(kind, files, built)
            check_values(kind, files, built)
            check_extents(kind, files, built)


_RNG = np.random.default_rng(5)
DISTRIBUTIONS = {
    "dense": np.arange(96),
    "dense above 2^53": (1 << 53) + np.arange(96),
    "both ends": np.append(np.arange(48) + LEAST, GREATEST - np.arange(48)),
    "around zero": np.arange(-48, 48) ** 3,
    "many rows of few keys": np.repeat(np.arange(8) * 1000, 12),
    "one key": np.full(96, 7),
    "sawtooth": np.arange(96) % 12 * 10,
    "even steps": np.arange(96) * 1_000_003,
    "uniform": _RNG.integers(LEAST, GREATEST, 96),
    "powers of two": np.append(1 << np.arange(48), -(1 << np.arange(48))),
    "heavy tail": np.minimum(_RNG.zipf(1.3, 96), GREATEST),
    "clusters far apart": np.arange(96) % 24 + np.arange(96) // 24 * 10**12,
    "late arrivals": np.where(np.arange(96) % 8, np.arange(96), np.arange(96) * 5),
    "descending": np.arange(96)[::-1] * 17,
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_key_of_a_distribution_is_found(name, shape):
    """Look-ups find each key. The test also looks up nearby keys, gaps, and codes past both ends.

    The test uses three budgets.
    """
    kind = next(kind for kind in KINDS if kind.name == "bigint")
    keys = DISTRIBUTIONS[name].astype(np.int64)
    files = [part.tolist() for part in np.array_split(keys, 8)]
    for budget in (1, 300, 64 << 10):
        built = build([kind.column(file) for file in files], Encoder("bigint"), shape, budget)
        check_codes(kind, files, built)
        check_values(kind, files, built)
        check_extents(kind, files, built)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_budget_auto_loses_no_key_at_any_price(name):
    """With the budget `auto`, a build loses no key at any price per byte.

    The test also divides the domain between several tasks.
    """
    kind = next(kind for kind in KINDS if kind.name == "bigint")
    keys = DISTRIBUTIONS[name].astype(np.int64)
    files = [part.tolist() for part in np.array_split(keys, 8)]
    arrays = [kind.column(file) for file in files]
    borders = np.unique(keys)[[len(np.unique(keys)) // 3, len(np.unique(keys)) // 2]]
    for payback in (1, 1000):
        for cut_at in ((), borders):
            built = build(
                arrays, Encoder("bigint"), "auto", 64 << 10, borders=cut_at, payback=payback
            )
            check_codes(kind, files, built)
            check_values(kind, files, built)
            check_extents(kind, files, built)


@pytest.mark.parametrize("shape", ["auto", "intervals"])
def test_full_budget_returns_only_files_with_the_key(shape):
    """If the budget is large, a query for a present key returns only the files with this key."""
    kind = next(kind for kind in KINDS if kind.name == "bigint")
    rng = np.random.default_rng(3)
    files = [rng.choice(1000, 30).tolist() for _ in range(12)]
    built = build([kind.column(file) for file in files], Encoder("bigint"), shape, 1 << 30)
    for key in range(1000):
        found = set(np.flatnonzero(built.locations_in(np.array([[key, key]]))).tolist())
        truth = {at for at, file in enumerate(files) if key in file}
        assert found == truth if truth else found >= truth


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_an_entry_in_several_segments_counts_its_keys_once(name):
    """A run counts each key of an entry once, even if the entry is split between two segments.

    In this test, each segment ends after a few entries.
    """
    kind = next(kind for kind in KINDS if kind.name == "bigint")
    keys = DISTRIBUTIONS[name].astype(np.int64)
    files = [keys[number::8].tolist() for number in range(8)]
    arrays = [kind.column(file) for file in files]
    for budget in (1, 300, 64 << 10):
        with mock.patch("sieve.segments.intervals.plan_segments._LEAST_ENTRIES", 2):
            built = build(arrays, Encoder("bigint"), "intervals", budget)
        check_codes(kind, files, built)
        check_extents(kind, files, built)
