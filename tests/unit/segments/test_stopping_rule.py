"""The stopping rule of the budget `auto`, and the limits on maps that a build adds by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing import auto_budget
from sieve.indexing.column_profile import Profile
from sieve.indexing.column_sample import Sample
from sieve.indexing.probes import EACH, make_probes, map_may_pay
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import Expected
from sieve.segments.intervals.cut_gaps import concatenated, cut_location
from sieve.segments.intervals.format import CODINGS, IN_BLOCKS, IN_CELLS
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD, plan
from sieve.segments.payload import decode
from sieve.segments.query_model import QueryModel
from sieve.segments.stopping_rule import NEAR, Payback, Stop, mean_read, near, served

ONE = np.zeros((1, 2), np.int64)
LEAST = {"present": 1.0, "absent": 0.0, "range": 2.0}


def stop(budget: float = 1000, little: float = 10, price: float = 1e-6) -> Stop:
    """A stopping rule with one probe of each kind; each sum is therefore also a mean."""
    return Stop(price, budget, little, (ONE, ONE, ONE), LEAST)


def chosen(by: Stop, *trials: tuple[float, tuple[float, float, float]]) -> int:
    """Returns the position of the price that the rule chooses.

    Asserts that each price is tried only once, because a trial needs a Spark job.
    """
    asked = [Mock(return_value=trial) for trial in trials]
    place = by.choose(asked)
    assert max(one.call_count for one in asked) == 1
    return place


def test_byte_must_pay_back_within_its_queries() -> None:
    """If `payback` or the size of all files is doubled, the price is halved."""
    payback = Payback(locations=200, table_bytes=100_000_000, payback=10)
    assert payback.price == pytest.approx(1 / (10 * 500_000))
    # One sixth of all queries look for an absent key.
    assert payback.absent == pytest.approx(5_000_000 / 6)
    assert Payback(200, 200_000_000, 10).price == pytest.approx(payback.price / 2)
    assert Payback(200, 100_000_000, 20).price == pytest.approx(payback.price / 2)
    assert payback.cost(7, {"present": 1.0}) == pytest.approx(7 + 10 * 500_000)
    prices = stop(price=payback.price).prices(200)
    assert np.all(np.diff(prices) < 0)
    assert prices[-1] == pytest.approx(payback.price)


def test_each_kind_of_query_must_be_near_its_minimum() -> None:
    """Reads are near the minimum if each kind of query is near the minimum of the kind.

    Range queries read many files, so in the mean, they would hide the other kinds. For an absent
    key, one file read is near the minimum.
    """
    assert served({"absent": 0.2, "range": 0.5}) == {"absent": 1.0, "range": 0.5}
    assert near({"present": NEAR, "absent": NEAR, "range": 2 * NEAR}, LEAST)
    assert not near({"present": 1.2, "absent": 0.0, "range": 2.0}, LEAST)
    assert not near({"present": 1.0, "absent": 1.2, "range": 2.0}, LEAST)


def test_rule_stops_at_the_first_of_three_limits() -> None:
    """The rule stops near the minimum of reads, at the budget's end, or at the last price."""
    far, close = (9.0, 9.0, 9.0), (1.04, 1.0, 2.0)
    assert chosen(stop(), (1, far), (20, far), (50, close), (100, close), (900, close)) == 2
    assert chosen(stop(), (1, far), (20, far), (900, far), (1100, close)) == 2
    assert chosen(stop(), (1, far), (20, far), (30, far), (40, far)) == 3
    # A version may have exactly the budget's bytes, but not more.
    assert chosen(stop(), (1, far), (20, far), (30, far), (1000, far)) == 3
    assert chosen(stop(), (1, far), (20, far), (30, far), (1001, far)) == 2
    # If the bytes exceed the budget even at the highest price, the highest price is chosen.
    assert chosen(stop(), (2000, far), (3000, far)) == 0


def test_negligible_bytes_are_spent_for_absent_keys() -> None:
    """For a tiny index, the rule goes on until reads for absent keys are minimal, too.

    For a larger index, the rule stops as soon as the mean reads are near the minimum.
    """
    near_by, exact = (1.04, 0.9, 2.0), (1.0, 0.0, 2.0)
    assert chosen(stop(), (1, near_by), (5, near_by), (8, exact), (9, exact)) == 2
    assert chosen(stop(), (1, near_by), (5, near_by), (90, exact)) == 1


def test_bytes_of_one_block_do_not_count() -> None:
    """Bytes up to one block of the store are free, so the rule stops only above this size."""
    exact = (1.0, 0.0, 2.0)
    trials = (1, exact), (3, exact), (6, exact), (9, exact)
    assert chosen(stop(), *trials) == 0
    assert chosen(replace(stop(), free=5), *trials) == 2
    assert chosen(replace(stop(), free=6), *trials) == 2
    assert chosen(replace(stop(), free=50), *trials) == 3


def column(codes: np.ndarray, files: np.ndarray) -> tuple[Any, list[Any], QueryModel]:
    """Makes the intervals of a column, the keys of each file, and the query model."""
    query_model = QueryModel.of_sample(codes)
    of_files = [np.unique(codes[files == k]) for k in range(int(files.max()) + 1)]
    cuts = [
        cut_location(keys, np.ones_like(keys), k, query_model, 0.0)
        for k, keys in enumerate(of_files)
    ]
    return concatenated(cuts), of_files, query_model


@pytest.mark.parametrize("codings", [CODINGS, (IN_CELLS,), (IN_BLOCKS,)])
def test_trial_estimates_the_bytes_and_reads_of_a_price(codings: Sequence[int]) -> None:
    """A trial estimates a build's bytes, and the files that probes read, within a tenth."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 1 << 40, 6000)
    cuts, of_files, query_model = column(codes, rng.integers(0, 20, 6000))
    points = np.sort(rng.choice(codes, 50))
    begin = np.sort(rng.integers(0, 1 << 40, 50))
    probes = (np.stack([points, points], axis=1), np.stack([begin, begin + (1 << 33)], axis=1))
    planned = plan(cuts, query_model, codings=codings)
    for price in (1e-2, 1e-4, 1e-6):
        size, reads = planned.trial(price, probes)
        segments = list(planned.emit(price))
        entries = [decode(segment.payload) for segment in segments]
        assert size == pytest.approx(
            sum(len(s.payload) + SEGMENT_OVERHEAD for s in segments), rel=0.1
        )
        for kind, told in zip(probes, reads, strict=True):
            named = sum(
                len({int(k) for e in entries for k in e.location[(e.low <= b) & (e.high >= a)]})
                for a, b in kind.tolist()
            )
            held = sum(
                int(any(np.any((keys >= a) & (keys <= b)) for keys in [of]))
                for of in of_files
                for a, b in kind.tolist()
            )
            assert named >= held
            assert told == pytest.approx(named, rel=0.1)


def profile(rows: int, files: int, row_bytes: int = 50) -> Profile:
    """The profile of a column whose numbers are random and unique."""
    codes = np.sort(np.random.default_rng(3).integers(0, 1 << 60, 1000))
    encoder, hashes = Encoder("bigint"), hash_codes(codes)
    sample = Sample(encoder, QueryModel.of_sample(codes), codes, hashes, rows, 8, rows)
    sizes = np.diff(np.arange(files + 1) * row_bytes * rows // files)
    return Profile(sizes=sizes, sample=sample)


def reads(of: Profile, kind: str, files: float, exact: float) -> Expected:
    """The expected reads if all files have the same size."""
    each = of.location_bytes
    return Expected(kind, files, exact, of.n_files, files * each, exact * each)


def expected(of: Profile, present: float, least: float = 1.0) -> list[Expected]:
    """The expected reads with intervals, for each kind of query."""
    return [
        reads(of, "present", present, least),
        reads(of, "absent", present, 0),
        reads(of, "range", 180, 180),
    ]


def test_map_is_planned_for_scattered_keys() -> None:
    """If keys are scattered, a build plans a map without an option.

    A build plans no map if intervals are as good, or if the map costs more than it saves.
    """
    options, wide = IndexOptions(), profile(5_000_000, 643)
    planned = auto_budget.plan_map(wide, options, expected(wide, 150), 5_000_000, 400_000)
    assert planned is not None
    assert planned.limit is None
    assert planned.options.shape == "map"
    assert planned.options.budget_bytes(1) <= wide.budget(options) == 25_000_000
    assert auto_budget.plan_map(wide, options, expected(wide, 1.04), 5_000_000, 400_000) is None
    assert (
        auto_budget.plan_map(wide, options, expected(wide, 2.0, least=1.95), 5_000_000, 400_000)
        is None
    )
    # If rows have ten bytes each, the map would have more than a tenth of the table's bytes.
    narrow = profile(5_000_000, 643, row_bytes=10)
    assert auto_budget.plan_map(narrow, options, expected(narrow, 150), 5_000_000, 400_000) is None
    # If files are tiny, a query would read more bytes of the map than of the files.
    cheap = profile(2_000, 1000, row_bytes=20)
    assert auto_budget.plan_map(cheap, options, expected(cheap, 1.2), 20_000, 100) is None


@pytest.mark.parametrize(("files", "mapped"), [(1, False), (2, True), (9, True)])
def test_a_run_of_one_file_gets_no_map(files: int, mapped: bool) -> None:
    """A run of one file gets no map, because a point query reads at most this file.

    Until OPTIMIZE, queries read the run's only file even if the base run has a map.
    """
    delta = profile(20_000 * files, files)
    told = [
        reads(delta, "present", files, 1.0),
        reads(delta, "absent", files, 0.0),
        reads(delta, "range", files, files),
    ]
    planned = auto_budget.plan_map(delta, IndexOptions(), told, 20_000 * files, 20_000)
    assert (planned is not None) == mapped
    assert map_may_pay(delta, told, 20_000 * files, 1 << 20) == mapped


def test_too_expensive_map_is_not_built_automatically() -> None:
    """No build makes an automatic map that needs too many bytes or too many seconds."""
    assert auto_budget.map_limit(10 << 20, 5_000_000, 5_000_000, 643) is None
    assert auto_budget.map_limit((1 << 30) + 1, 5_000_000, 5_000_000, 643) == "bytes"
    assert auto_budget.map_limit(10 << 20, 50_000_000, 1_000_000, 10) == "seconds"


def test_more_cuts_are_read_only_once_if_they_can_save_reads() -> None:
    """If more cuts can save reads, a build reads the column once more.

    The build reads no more cuts if reads are near the minimum, or if it has read all allowed cuts.
    """
    of, options = profile(5_000_000, 200), IndexOptions()
    allowed = of.intervals_budget(options, "auto")
    assert auto_budget.more_may_pay(of, options, expected(of, 150), 1000, allowed)
    assert auto_budget.more_may_pay(of, options, expected(of, 150), of.most_cuts(options), 1000)
    assert not auto_budget.more_may_pay(of, options, expected(of, 150), 1000, 1000)
    assert not auto_budget.more_may_pay(
        of, options, expected(of, 1.0), of.most_cuts(options), allowed
    )
    wider = of.wider(options)
    assert wider is not None
    assert allowed < wider.intervals_budget(options, "auto") <= of.budget(options)
    assert wider.wider(options) is None
    assert of.wider(IndexOptions(budget="1%")) is None
    # The intervals of a small column get the bytes that one task can compare, but at most 320 KB.
    assert profile(100_000, 20).intervals_budget(options, "auto") == 320 << 10
    assert profile(1_000, 20).intervals_budget(options, "auto") < 320 << 10


def test_probes_ascend_and_absent_keys_do_not_occur() -> None:
    """In a stopping rule, the probes of each kind ascend, and absent keys are in no location."""
    of = profile(100_000, 20)
    probes = make_probes(of.sample)
    hits = np.where(np.arange(len(probes.kinds)) % 7 == 0, 3, 0)
    held = np.stack([hits, hits * of.sizes[0]])
    found = auto_budget.stop_for(of, IndexOptions(), probes, held)
    met = int(np.count_nonzero(hits[EACH : 2 * EACH]))
    assert [len(kind) for kind in found.probes] == [EACH, EACH - met, EACH]
    for kind in found.probes:
        assert np.all(np.diff(kind[:, 0]) >= 0)
        assert np.all(np.diff(kind[:, 1]) >= 0)
    assert found.least["absent"] == 0
    assert found.price == Payback(20, 5_000_000, 10).price


def version(options: IndexOptions, present: float, keys: int, **hashes: object) -> Any:
    """A manifest whose members show whether the build omitted a map."""
    kinds = tuple(expected(profile(1_000_000, 10), present))
    stats = SimpleNamespace(expected=kinds, ranges_total=10, rows=1_000_000)
    file = SimpleNamespace(hashes=hashes.get("hashes", ()))
    return SimpleNamespace(
        options=options, stats=stats, runs=(SimpleNamespace(keys=keys, files=(file,)),)
    )


def test_map_left_out_names_the_limit() -> None:
    """If a map would have saved reads, `map_left_out` names the limit that prevented it.

    For a version with another budget, another shape, or a map, `map_left_out` returns None.
    """
    many = 3_000_000_000
    assert auto_budget.map_left_out(version(IndexOptions(), 9.0, many)) == "bytes"
    assert auto_budget.map_left_out(version(IndexOptions(), 9.0, 50_000_000)) == "seconds"
    assert auto_budget.map_left_out(version(IndexOptions(), 9.0, 1_000_000)) is None
    assert auto_budget.map_left_out(version(IndexOptions(), 1.0, many)) is None
    assert auto_budget.map_left_out(version(IndexOptions(budget="1%"), 9.0, many)) is None
    assert auto_budget.map_left_out(version(IndexOptions("intervals"), 9.0, many)) is None
    assert auto_budget.map_left_out(version(IndexOptions(), 9.0, many, hashes=((1, 2),))) is None


@pytest.mark.parametrize(
    ("reads", "mean"),
    [
        ({}, 0.0),
        ({"present": 3.0}, 3.0),
        ({"present": 3.0, "absent": 9.0}, 5.0),
        ({"present": 3.0, "absent": 9.0, "range": 5.0}, 5.0),
        ({"absent": 9.0, "range": 5.0}, 6.0),
    ],
)
def test_each_of_six_kinds_of_query_counts_the_same(reads: dict[str, float], mean: float) -> None:
    """The mean number of reads weighs six kinds of query equally.

    Of the six kinds, two look for present keys, one for absent keys, and three for ranges.
    """
    assert mean_read(reads) == mean


def test_table_without_locations_has_prices() -> None:
    """Even a table without locations has prices, of at most one file per byte."""
    assert Payback(0, 0, 10).file == Payback(1, 0, 10).price == 1.0
    assert Payback(1, 700, 10).file == 7000.0
    assert Payback(2, 700, 10, 0.5).file == 1750.0
    prices = stop(price=1e-9).prices(0)
    assert (len(prices), prices[0]) == (24, 4 / 2048)
    assert stop(price=1e-9).prices(1)[0] == prices[0]
    assert stop(price=1e-9).prices(2)[0] == 8 / 2048
    assert stop(price=1.0).prices(2)[0] == 4.0
