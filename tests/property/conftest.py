"""Sets the number of examples of property tests."""

from __future__ import annotations

import pytest

LATER = [pytest.param(of, marks=pytest.mark.long) for of in ("second", "third", "fourth", "fifth")]


@pytest.fixture(scope="module", params=["first", *LATER])
def fifth(request: pytest.FixtureRequest) -> str:
    """Runs a fifth of a test's examples.

    `make test` runs one fifth of the examples, and `make test-long` runs the other fifths.
    """
    return str(request.param)
