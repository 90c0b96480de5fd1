"""Sets the number of examples of property tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=["first", pytest.param("second", marks=pytest.mark.long)])
def half(request: pytest.FixtureRequest) -> str:
    """Runs half of a test's examples.

    `make test` runs one half of the examples, and `make test-long` runs the other half, too.
    """
    return str(request.param)
