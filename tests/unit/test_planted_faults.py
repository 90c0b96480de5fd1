"""Each fault in the table of planted faults suits the current code, and names a test."""

from __future__ import annotations

import re

import pytest

from tests.mutants.planted import ROOT, Fault, faults


@pytest.mark.parametrize("fault", list(faults()), ids=lambda fault: fault.file)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    """The text that a fault replaces occurs once in its file, and the fault's test exists."""
    assert fault.planted() != fault.path().read_text()
    path, _, name = fault.test_id().partition("::")
    if name:
        plain = re.escape(name.partition("[")[0])
        assert re.search(rf"^def {plain}\(", (ROOT / path).read_text(), re.MULTILINE), fault.test
