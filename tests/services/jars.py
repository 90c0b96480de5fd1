"""Finds the jars that ``make test-services`` downloads."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "build" / "services"


def jar(artifact: str) -> Path:
    """The jar of an artifact, in any version. A test fails if the jar is missing."""
    found = sorted(FOLDER.glob(f"{artifact}-[0-9]*.jar"))
    if not found:
        pytest.fail(f"{FOLDER} has no {artifact} jar: run `make test-services`.", pytrace=False)
    return found[-1]
