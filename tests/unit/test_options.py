from __future__ import annotations

import pytest

from sieve.errors import InvalidInputError
from sieve.options import IndexOptions, parse_options


def test_nothing_given_means_the_defaults() -> None:
    """An index without OPTIONS has the sieve shape with error 100."""
    assert parse_options({}) == IndexOptions(shape="sieve", error=100)


def test_names_and_shapes_in_any_case() -> None:
    """Names fold case as all option names of Spark SQL do; blanks around values do not count."""
    assert parse_options({"ERROR": " 7 ", "Shape": "SIEVE"}) == IndexOptions("sieve", 7)


def test_what_is_not_given_stays() -> None:
    """SET OPTIONS changes the named options and leaves the others."""
    assert parse_options({}, IndexOptions(error=3)) == IndexOptions(error=3)
    assert parse_options({"error": "4"}, IndexOptions(error=3)) == IndexOptions(error=4)


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("1000000", 1_000_000), ("+5", 5)])
def test_ends_of_the_range(text: str, value: int) -> None:
    """Both ends of the range are allowed."""
    assert parse_options({"error": text}).error == value


@pytest.mark.parametrize(
    "text", ["0", "-1", "1000001", "1.0", "1e2", "1_0", "", "ten", "\u0661", "9" * 5000, "0x10"]
)
def test_error_out_of_range(text: str) -> None:
    """What is not an integer of the range is refused with the range in the message."""
    with pytest.raises(InvalidInputError, match="from 1 to 1000000"):
        parse_options({"error": text})


def test_unknown_option_names_what_exists() -> None:
    """A misspelt option is answered with the likely one and the list of all."""
    with pytest.raises(InvalidInputError, match=r"did you mean 'error'.*error, shape"):
        parse_options({"eror": "5"})
    with pytest.raises(InvalidInputError, match="options are: error, shape") as caught:
        parse_options({"zzz": "5"})
    assert "did you mean" not in caught.value.message


def test_unknown_shape_names_what_exists() -> None:
    """So is a misspelt shape."""
    with pytest.raises(InvalidInputError, match=r"did you mean 'sieve'.*shapes are: sieve"):
        parse_options({"shape": "seive"})


def test_an_option_given_twice() -> None:
    """Two spellings of one name are a contradiction, not an order."""
    with pytest.raises(InvalidInputError, match="twice"):
        parse_options({"error": "5", "ERROR": "6"})
