"""Volume of the tests with generated examples."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=["first", pytest.param("second", marks=pytest.mark.long)])
def half(request: pytest.FixtureRequest) -> str:
    """Half of a test's examples: `make test` draws one half, `make test-long` another."""
    return str(request.param)
