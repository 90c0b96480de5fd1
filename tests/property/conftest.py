"""Sets the number of examples of property tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=["first", pytest.param("second", marks=pytest.mark.long)])
def half(request: pytest.FixtureRequest) -> str:
    """Runs half of a test's examples.

    `make test` draws one half, and `make test-long` draws the remaining half.
    """
    return str(request.param)
