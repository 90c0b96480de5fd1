"""The number of examples of tests with generated examples."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=["first", pytest.param("second", marks=pytest.mark.long)])
def half(request: pytest.FixtureRequest) -> str:
    """Half of the examples of a test.

    `make test` draws one half, and `make test-long` draws the remaining half.
    """
    return str(request.param)
