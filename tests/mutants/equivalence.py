"""The list of mutants that behave like the original code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.mutants.drawing import Mutant

LIST = Path(__file__).parent / "equivalent.txt"
_STEP = " +- 1"
# The two forms are equal: no length is below 0, and Python has one object for each small integer
# and for each enumeration member.
_SAME = (
    (re.compile(r"(len\([^()]*\)) <= 0\b"), r"\1 == 0"),
    (re.compile(r"(len\([^()]*\)) != 0\b"), r"\1 > 0"),
    (re.compile(r" is not (\d\d?\b(?!\.)|[A-Z]\w+\.[A-Z_]+\b)"), r" != \1"),
    (re.compile(r" is (\d\d?\b(?!\.)|[A-Z]\w+\.[A-Z_]+\b)"), r" == \1"),
)


class Equivalent:
    """An entry is ``module: before  ->  after``, or ``module: NAME +- 1`` for a constant.

    The reason for an entry is indented below the entry.

    The second form is for constants that measurements have determined and that limit no result. If
    a number in such a constant changes by one, users see no difference. An entry does not cover a
    change to the value 0.

    Args:
        text: the text of the list.
    """

    def __init__(self, text: str) -> None:
        entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        self._steps = {line.removesuffix(_STEP) for line in entries if line.endswith(_STEP)}
        self._mutants = {line for line in entries if not line.endswith(_STEP)}

    def __contains__(self, mutant: Mutant) -> bool:
        if f"{mutant.module}: {mutant.before}  ->  {mutant.after}" in self._mutants:
            return True
        if _plain(mutant.before) == _plain(mutant.after):
            return True
        constant = re.match(r"(\w+)(: [^=]+)? = ", mutant.before)
        return (
            constant is not None
            and mutant.operator == "core/NumberReplacer"
            and re.search(r"= +(0 <<|0$)", mutant.after) is None
            and f"{mutant.module}: {constant[1]}" in self._steps
        )


def _plain(line: str) -> str:
    for pattern, same in _SAME:
        line = pattern.sub(same, line)
    return line
