"""The list of equivalent mutants refers to lines that still exist."""

from __future__ import annotations

import re

from tests.mutants.equivalence import LIST
from tests.mutants.planted import ROOT


def test_each_entry_has_its_code_and_its_reason() -> None:
    """Each entry has a reason and quotes an existing line of code.

    If the line has changed, the entry could mean something else.
    """
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    for entry, reason in zip(lines, [*lines[1:], ""], strict=True):
        if entry.startswith(" "):
            continue
        assert reason.startswith("    "), f"no reason: {entry}"
        module, _, change = entry.partition(": ")
        code = (ROOT / module).read_text()
        if change.endswith(" +- 1"):
            constant = re.escape(change.removesuffix(" +- 1"))
            assert re.search(rf"^{constant}(: \w+)? = .*\d", code, re.MULTILINE), entry
        else:
            before = change.partition("  ->  ")[0]
            assert before in [line.strip() for line in code.splitlines()], entry
