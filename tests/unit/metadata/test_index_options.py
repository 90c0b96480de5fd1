from __future__ import annotations

from dataclasses import replace

import pytest

from sieve.errors import InvalidInputError
from sieve.metadata.index_options import IndexOptions, parse_options


def test_nothing_given_means_the_defaults() -> None:
    """By default, shape and budget are `auto`, and `payback` is 10."""
    assert parse_options({}) == IndexOptions(shape="auto", budget="auto", payback=10)


def test_names_and_shapes_in_any_case() -> None:
    """Options and shapes are recognised in any letter case; blanks around values are ignored."""
    assert parse_options({"ERROR": " 7 ", "Shape": "SIEVE"}) == IndexOptions("sieve", error=7)


def test_set_options_changes_only_the_named_options() -> None:
    """SET OPTIONS changes only the options in the statement."""
    before = IndexOptions("sieve", error=3)
    assert parse_options({}, before) == before
    assert parse_options({"error": "4"}, before) == IndexOptions("sieve", error=4)
    assert parse_options({"shape": "intervals"}, before) == IndexOptions("intervals", error=3)
    before = IndexOptions("map", budget="30%")
    assert parse_options({"refresh": "AUTO"}, before) == replace(before, refresh="auto")


def test_option_error_implies_the_shape_sieve() -> None:
    """The option `error` implies the shape `sieve`; other shapes refuse this option."""
    assert parse_options({"error": "5"}) == IndexOptions("sieve", error=5)
    with pytest.raises(InvalidInputError, match="'intervals' has no option 'error'"):
        parse_options({"shape": "intervals", "error": "5"})
    with pytest.raises(InvalidInputError, match="'sieve' has no option 'budget'"):
        parse_options({"shape": "sieve", "budget": "5%"})


@pytest.mark.parametrize(
    ("text", "kept", "of_a_gigabyte"),
    [
        ("1%", "1%", 10**7),
        ("0.5 %", "0.5%", 5 * 10**6),
        ("100%", "100%", 10**9),
        ("0.001%", "0.001%", 64 << 10),
        ("64mb", "64MB", 64 << 20),
        ("1 B", "1B", 1),
        ("3KB", "3KB", 3 << 10),
        ("2gb", "2GB", 2 << 30),
        ("1TB", "1TB", 1 << 40),
    ],
)
def test_a_budget_is_a_share_or_a_size(text: str, kept: str, of_a_gigabyte: int) -> None:
    """A budget is a size or a share of the table. A share means at least 64 KB."""
    options = parse_options({"budget": text})
    assert options.budget == kept
    assert options.budget_bytes(10**9) == of_a_gigabyte


@pytest.mark.parametrize(
    "text", ["0", "0%", "0.0%", "-1%", "101%", "100.01%", "5", "5 parsecs", "1e3%", "%", "", "MB"]
)
def test_invalid_budget_shows_valid_examples(text: str) -> None:
    """If a budget is invalid, the error shows examples of valid budgets."""
    with pytest.raises(InvalidInputError, match=r"'1%'.*'64MB'"):
        parse_options({"budget": text})


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("1000000", 1_000_000), ("+5", 5)])
def test_ends_of_the_range(text: str, value: int) -> None:
    """The option `error` accepts both ends of its range."""
    assert parse_options({"error": text}).error == value


@pytest.mark.parametrize(
    "text", ["0", "-1", "1000001", "1.0", "1e2", "1_0", "", "ten", "\u0661", "9" * 5000, "0x10"]
)
def test_error_out_of_range(text: str) -> None:
    """If the value of `error` is not an integer in the valid range, the message names the range."""
    with pytest.raises(InvalidInputError, match="from 1 to 1000000"):
        parse_options({"error": text})


def test_error_for_an_unknown_option_lists_all_options() -> None:
    """If an option is misspelt, the message suggests a similar option, and lists all options."""
    every = "budget, error, granularity, payback, refresh, shape"
    with pytest.raises(InvalidInputError, match=rf"did you mean 'error'.*{every}"):
        parse_options({"eror": "5"})
    with pytest.raises(InvalidInputError, match=f"options are: {every}") as caught:
        parse_options({"zzz": "5"})
    assert "did you mean" not in caught.value.message


def test_error_for_an_unknown_shape_lists_all_shapes() -> None:
    """If a shape is misspelt, the message suggests a similar shape, and lists all shapes."""
    with pytest.raises(
        InvalidInputError, match=r"did you mean 'sieve'.*it is one of: auto, intervals, map"
    ):
        parse_options({"shape": "seive"})


def test_option_payback_implies_the_budget_auto() -> None:
    """The option `payback` implies the budget `auto`.

    A later statement that sets another budget, or the shape `map`, removes `payback`. A statement
    with `payback` cannot also set another budget, or the shape `map` or `sieve`.
    """
    assert parse_options({"payback": "3"}) == IndexOptions(payback=3)
    priced = IndexOptions(payback=3)
    assert parse_options({"shape": "intervals"}, priced) == IndexOptions("intervals", payback=3)
    assert parse_options({"budget": "2%"}, priced) == IndexOptions(budget="2%")
    assert parse_options({"budget": "AUTO"}, IndexOptions(budget="2%")) == IndexOptions()
    assert parse_options({"payback": "3"}, IndexOptions(budget="2%")) == priced
    assert parse_options({"shape": "map"}, priced) == IndexOptions("map", "50%")
    assert parse_options({"shape": "map", "budget": "auto"}) == IndexOptions("map", "50%")
    for raw in (
        {"payback": "3", "budget": "1%"},
        {"payback": "3", "shape": "map"},
        {"payback": "3", "shape": "sieve"},
    ):
        with pytest.raises(InvalidInputError, match="has no option 'payback'"):
            parse_options(raw)
    for text in ("0", "1000001", "1.5"):
        with pytest.raises(InvalidInputError, match=r"'payback' cannot be.*from 1 to 1000000"):
            parse_options({"payback": text})


def test_an_option_given_twice() -> None:
    """An option that is given twice, in any letter case, is an error."""
    with pytest.raises(InvalidInputError, match="twice"):
        parse_options({"error": "5", "ERROR": "6"})
