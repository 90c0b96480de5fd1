"""The list of mutants that no test can tell from the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.mutants.drawing import Mutant

LIST = Path(__file__).parent / "equivalent.txt"
_STEP = " +- 1"


class Equivalent:
    """``module: before  ->  after``, or ``module: NAME +- 1`` of a constant; reasons are indented.

    The second form is for constants that were chosen by measurement and bound no answer: each
    number in one's value may be one more or one less, and nothing differs that a user sees. What
    makes the value 0 is no such step.

    Args:
        text: of the list.
    """

    def __init__(self, text: str) -> None:
        entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        self._steps = {line.removesuffix(_STEP) for line in entries if line.endswith(_STEP)}
        self._mutants = {line for line in entries if not line.endswith(_STEP)}

    def __contains__(self, mutant: Mutant) -> bool:
        if f"{mutant.module}: {mutant.before}  ->  {mutant.after}" in self._mutants:
            return True
        constant = re.match(r"(\w+)(: [^=]+)? = ", mutant.before)
        return (
            constant is not None
            and mutant.operator == "core/NumberReplacer"
            and re.search(r"= +(0 <<|0$)", mutant.after) is None
            and f"{mutant.module}: {constant[1]}" in self._steps
        )
