"""Lists Spark's scalar functions, and calls of these functions with a column as argument."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from spark_session import Lab

COLUMNS = {
    "i": "INT",
    "l": "BIGINT",
    "f": "DOUBLE",
    "x": "DECIMAL(9,2)",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "n": "TIMESTAMP_NTZ",
}
"""The columns of the calls. If a function needs another type, the call casts a column."""

OPERATORS = ("+", "-", "*", "/", "%", "div", "&", "|", "^")
GROUPS = ("math_funcs", "datetime_funcs", "string_funcs", "conversion_funcs", "bitwise_funcs")
"""The groups of functions that can have a number, a date or a time as argument."""

_LIKE = {True: ("l", "f", "x"), False: ("d", "ts", "n")}
"""Two groups of columns: the first group replaces numbers, the second all other constants."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The shim's answer about a call: the column values for which the call preserves the order."""

    call: str
    column: str
    low: int
    high: int
    rises: bool
    function: Any

    @property
    def text(self) -> str:
        """The entry in the form of a line in the stored list."""
        return f"{'rises' if self.rises else 'falls'} {self.call}"


def names(lab: Lab) -> dict[str, str]:
    """The names of all functions and operators of Spark, each with its function group."""
    registry = _registry(lab)
    found = registry.listFunction()
    groups = {}
    for k in range(found.size()):
        info = registry.lookupFunction(found.apply(k))
        groups[found.apply(k).funcName()] = info.get().getGroup()
    return {name: groups[name] for name in sorted(groups) if not name.startswith("sieve_")}


def calls(lab: Lab, name: str) -> list[list[str]]:
    """The calls in a function's documented examples, with a column in place of one argument."""
    if name in OPERATORS:
        return [[f"{c} {name} 3", f"3 {name} {c}"] for c in COLUMNS]
    found = []
    for arguments in itertools.islice(examples(lab, name), 2):
        for at, argument in enumerate(arguments):
            number = re.fullmatch(r"-?[\d.]+(BD|D|L|S|Y)?", argument) is not None
            written = ([*arguments[:at], c, *arguments[at + 1 :]] for c in _LIKE[number])
            found.append([f"{name}({', '.join(texts)})" for texts in written])
    return found


def claims(lab: Lab, texts: Sequence[str]) -> list[Claim]:
    """Asks the shim about the given calls; returns an entry for each call.

    The result has no entry for calls that Spark refuses.
    """
    if not texts:
        return []
    try:
        plan = lab.spark.sql(f"SELECT {', '.join(texts)} FROM edges")._jdf.queryExecution()
        optimized = plan.optimizedPlan()
    except Exception:  # noqa: BLE001 - Spark's, of any kind
        if len(texts) == 1:
            return []
        half = len(texts) // 2
        return claims(lab, texts[:half]) + claims(lab, texts[half:])
    if optimized.getClass().getSimpleName() != "Project":
        return []
    made = optimized.projectList()
    return [
        claim
        for k, text in enumerate(texts)
        if (claim := _claim(lab, text, made.apply(k))) is not None
    ]


def _claim(lab: Lab, text: str, result: Any) -> Claim | None:
    if result.getClass().getSimpleName() != "Alias":
        return None
    found = lab.spark._jvm.org.apache.spark.sql.sieve.predicate.MonotoneFunction.of(result.child())
    if found.isEmpty():
        return None
    function = found.get()
    column = function.argument()
    if column.getClass().getSimpleName() != "AttributeReference":
        return None
    low, high = int(function.low()), int(function.high())
    return Claim(text, column.name(), low, high, function.rises(), function)


def _registry(lab: Lab) -> Any:
    return lab.spark._jsparkSession.sessionState().functionRegistry()


_EXAMPLE = re.compile(r"> (SELECT .*?);", re.DOTALL)


def examples(lab: Lab, name: str) -> Iterator[list[str]]:
    """The arguments of each call in a function's documented examples."""
    identifier = lab.spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    info = _registry(lab).lookupFunction(identifier)
    parser = lab.spark._jsparkSession.sessionState().sqlParser()
    for query in _EXAMPLE.findall(info.get().getExamples()) if info.isDefined() else ():
        try:
            plan = parser.parsePlan(query.replace("_FUNC_", name))
        except Py4JJavaError:
            continue
        if plan.getClass().getSimpleName() != "Project":
            continue
        waiting = [plan.projectList().apply(0)]
        while waiting:
            node = waiting.pop()
            children = [node.children().apply(k) for k in range(node.children().size())]
            called = node.getClass().getSimpleName() == "UnresolvedFunction"
            if called and node.nameParts().last() == name:
                yield [child.sql() for child in children]
            waiting += children
