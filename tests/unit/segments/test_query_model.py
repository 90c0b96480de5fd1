"""Tests the query model: the share of six kinds of queries that falls into a gap."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import InvalidInputError
from sieve.segments.query_model import MOST_KEYS, QueryModel


def codes(*numbers):
    """An array of key codes."""
    return np.array(numbers, np.int64)


def test_a_gap_counts_keys_rows_and_length():
    """The shares of a gap count the keys, the rows and the codes between its two ends.

    The range from 30 to 70 contains 3 of the 11 keys, 30 of the 110 rows, and 39 of the 101 codes.
    """
    query_model = QueryModel.of_sample(np.repeat(np.arange(0, 101, 10), 10))
    (shares,) = query_model.shares(codes(31), codes(69)).T
    assert shares[:3] == pytest.approx([3 / 11, 30 / 110, 39 / 101])
    assert shares[3] == pytest.approx((39 / 101 - 0.0005) / (1 - 0.0005))
    assert shares[4] == pytest.approx((39 / 101 - 0.01) / (1 - 0.01))
    assert shares[5] == pytest.approx((3 / 11 - 0.001) / (1 - 0.001))
    assert query_model.skip_probability(codes(30), codes(70)) == pytest.approx([shares.mean()])


def test_only_ranges_count_next_to_a_map():
    """If a map answers equality queries, the value of a gap counts only range queries.

    Range queries have the same weights as without a map. If a map answers equality queries, a tiny
    gap has no value.
    """
    model = QueryModel.of_sample(np.repeat(np.arange(0, 100_000, 10), 3)).of_ranges
    (shares,) = model.shares(codes(31), codes(69_990)).T
    assert model.mean(shares) == pytest.approx(shares[3:].sum() / 6)
    saved = model.skip_probability(codes(30, 0), codes(69_991, 20))
    assert saved == pytest.approx([shares[3:].sum() / 6, 0])
    assert model.density(np.arange(100_000)).sum() == pytest.approx(1 / 2, abs=0.01)


def test_gap_next_to_a_frequent_key_has_a_higher_value():
    """A gap next to a frequent key has a higher value than other gaps of the same width.

    Queries for the key of a random row mostly look for this frequent key.
    """
    query_model = QueryModel.of_sample(codes(10, 20, 30, 40), codes(2, 96, 2, 2))
    skip_probability = query_model.skip_probability(codes(10, 20), codes(30, 40))
    assert skip_probability[0] > skip_probability[1] + 0.1


def test_neighbours_have_no_gap():
    """The gap between neighbouring codes has the value 0, even at the domain's ends."""
    query_model = QueryModel.of_sample(codes(LEAST, 0, GREATEST))
    low = codes(LEAST, -1, 0, GREATEST - 1, 7)
    high = codes(LEAST + 1, 0, 1, GREATEST, 7)
    assert query_model.skip_probability(low, high).tolist() == [0.0] * 5


def test_domain_contains_all_queries_of_each_kind():
    """The whole 64-bit domain, and a column's range of keys, contain all queries of each kind."""
    for sample in (codes(LEAST, GREATEST), codes(5), codes(-3, 8, 9), np.arange(200_000)):
        query_model = QueryModel.of_sample(sample)
        ends = codes(LEAST, sample.min()), codes(GREATEST, sample.max())
        assert query_model.shares(*ends) == pytest.approx(np.ones((6, 2)))


def test_model_expects_keys_between_the_sampled_keys():
    """If a sample has only some of many unique keys, the model expects more keys in the gaps.

    If a model expects keys in a gap, half of the gap contains half of these keys. If the sampled
    keys repeat, the model expects no keys in gaps.
    """
    query_model = QueryModel.of_sample(np.arange(0, 1_000_000, 1000))
    assert query_model.shares(codes(500_001), codes(500_500))[0] == pytest.approx(0.0005, rel=0.01)
    repeated = QueryModel.of_sample(np.repeat(np.arange(0, 1_000_000, 1000), 10))
    assert repeated.shares(codes(500_001), codes(500_500))[0] == 0


def test_large_sample_is_reduced_and_keeps_both_ends():
    """If a sample has too many keys, the model drops some, but keeps the least and the greatest.

    Because the keys are limited, the size of the pickled model is limited, too.
    """
    query_model = QueryModel.of_sample(np.arange(1 << 18))
    again = pickle.loads(pickle.dumps(query_model))
    assert len(again.codes) <= MOST_KEYS + 1
    assert (again.codes[0], again.codes[-1]) == (0, (1 << 18) - 1)
    assert again.rows.sum() == 1 << 18
    assert len(pickle.dumps(query_model)) < 4 << 20


def test_a_sample_needs_a_key():
    """A sample without keys is refused."""
    with pytest.raises(InvalidInputError):
        QueryModel.of_sample(codes())


def test_shares_are_valid_for_keys_that_are_equal_as_doubles():
    """Shares are between 0 and 1 even if keys are equal as doubles."""
    far = np.arange(GREATEST - 50, GREATEST)
    query_model = QueryModel.of_sample(np.concatenate([codes(LEAST, 0), far]))
    with np.errstate(all="raise"):
        shares = query_model.shares(far[:-1], far[1:])
        density = query_model.density(far)
    assert np.all((shares >= 0) & (shares <= 1))
    assert np.all(np.isfinite(density) & (density > 0))


def test_the_densities_of_all_codes_add_up_to_one():
    """The sum of the densities of queries over all codes is 1."""
    keys = np.cumsum(np.random.default_rng(0).integers(1, 9, 2000))
    model = QueryModel.of_sample(np.repeat(keys, np.arange(2000) % 5 + 1))
    assert model.density(np.arange(keys[0], keys[-1])).sum() == pytest.approx(1, abs=0.01)


def test_density_of_a_code_is_the_sum_of_three_densities():
    """A code's density is the sum of three densities: of keys, of rows and of codes.

    Of the six kinds of query, two count by keys, one counts by rows, and three count by codes.
    Codes below the first key and above the last key have a density, too.
    """
    model = QueryModel.of_sample(codes(0, 10, 12, 112), codes(4, 3, 2, 1))
    by_codes = 0.5 / 113
    stretches = [((2 / 4 + rows) / step / 6 + by_codes) for rows, step in
                 ((0.4, 10), (0.3, 2), (0.2, 100))]  # fmt: skip
    asked = codes(-50, 0, 9, 10, 11, 12, 111, 112, 500)
    wanted = [stretches[k] for k in (0, 0, 0, 1, 1, 2, 2, 2, 2)]
    assert model.density(asked) == pytest.approx(wanted)
    assert QueryModel.of_sample(codes(7)).density(codes(6, 7)) == pytest.approx([1, 1])


def test_shares_of_a_thinned_sample():
    """In a reduced sample, each kept key gets the rows of the dropped keys after it.

    `unseen` estimates the share of the column's keys outside of the sample.
    """
    keys = np.arange(3 * MOST_KEYS)
    model = QueryModel.of_sample(np.append(keys, keys[:10]))
    assert len(model.codes) == MOST_KEYS + 1
    assert model.codes[:3].tolist() == [0, 3, 6]
    assert model.rows[:5].tolist() == [6, 6, 6, 4, 3]
    assert model.rows[-2:].tolist() == [2, 1]
    seen_once = (3 * MOST_KEYS - 10) / (3 * MOST_KEYS + 10)
    assert model.unseen == pytest.approx(1 - (1 - seen_once) / 3)
    assert len(QueryModel.of_sample(np.arange(MOST_KEYS)).codes) == MOST_KEYS


def test_ranges_outside_of_all_keys_have_the_share_zero():
    """Ranges outside of all keys, and empty ranges, have the share 0."""
    query_model = QueryModel.of_sample(np.array([10, 20, 30]))
    first, last = np.array([LEAST, 1, 31, 40]), np.array([0, 9, 39, GREATEST])
    assert query_model.shares(first, last) == pytest.approx(np.zeros((6, 4)), abs=0)
