"""The shim holds no policy: its reasons, lists and limits are those that Python has or reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sieve.metadata.registration import DECLARED_COLUMNS, DECLARED_OPTIONS
from sieve.metadata.text_formats import TEXT_FORMATS
from sieve.reader.reason import Reason
from sieve.tables.formats import RESERVED
from sieve.tables.table import DAMAGED
from sql_ext.statements.functions import FUNCTIONS

SQL_EXT = Path(__file__).resolve().parents[3] / "sql_ext"
SHIM = {path.name: path.read_text(encoding="utf-8") for path in SQL_EXT.glob("jvm/src/*/*.scala")}
POLICY = json.loads((SQL_EXT / "policy.json").read_text(encoding="utf-8"))

_TEXT = r'"(?:[^"\\\n]|\\.)*"'

_NUMBERS = {
    "CircuitBreaker.scala": {"16": "doublings of milliseconds that a long holds"},
    "Counters.scala": {
        "0.5": "a percentile of the name of the counter",
        "0.95": "likewise",
        "1e6": "nanoseconds of a millisecond",
    },
    "Filters.scala": {"0.0": "zero, of which floats have two", "0.0f": "likewise"},
    "FileDictionary.scala": {"4": "words of what is hashed"},
    "FrontendProcess.scala": {
        "3": "start time-outs, after which no scan waits",
        "5": "milliseconds between looks at a port that opens",
        "32": "bytes of the secret",
    },
    "Hudi.scala": {"4": "arguments of a constructor of Hudi's"},
    "KeyCodes.scala": {"57": "bits of a key code, see decimal_codec"},
    "LruMap.scala": {"16": "the default of Java's map", "0.75f": "likewise"},
    "Ordinals.scala": {"10": "the base of decimals"},
    "RangeTasks.scala": {"8": "an eighth more: a step in a search for a size"},
    "SipHash.scala": {
        "4": "rounds at its end",
        **dict.fromkeys(("13", "16", "17", "21", "32"), "rotations of a round"),
    },
    "SieveFileIndex.scala": {"31": "the multiplier of a hash code"},
    "StatementOwnership.scala": {"3": "groups of a pattern", "4": "likewise"},
}
"""Numbers that decide nothing, by file, and what each is."""

_LISTS = {
    "CsvQuoting.scala": "line breaks, as univocity has them",
    "PinnedFileIndex.scala": "options of Spark's readers that are switched off",
    "Settings.scala": "methods of SQLConf that copy values",
    "StatementOwnership.scala": "names of the lists in policy.json",
}
"""Lists of texts that decide nothing, by file, and what each is."""


def without_comments(text: str) -> str:
    """A source without comments and imports."""
    keep = re.compile(rf'"""(?s:.*?)"""|{_TEXT}|/\*(?s:.*?)\*/|//[^\n]*')
    text = keep.sub(lambda m: m[0] if m[0].startswith('"') else "", text)
    return re.sub(r"(?m)^(?:import|package) .*", "", text)


def test_both_sides_know_the_same_reasons() -> None:
    """The closed list of the shim is Python's, so that neither gives one that the other lacks."""
    listed = re.findall(r'val \w+ = Value\("([a-z-]+)"\)', SHIM["Reason.scala"])
    assert len(listed) == len(set(listed))
    assert set(listed) == {reason.value for reason in Reason}


@pytest.mark.parametrize("name", sorted(set(SHIM) - {"Reason.scala"}))
def test_a_reason_is_named_by_the_list_alone(name: str) -> None:
    """No other source spells one."""
    spelled = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', without_comments(SHIM[name])))
    assert not spelled & {reason.value for reason in Reason}


@pytest.mark.parametrize("name", sorted(SHIM))
def test_no_source_holds_a_limit(name: str) -> None:
    """A number that decides something stands in policy.json, with its reason."""
    text = re.sub(rf'"""(?s:.*?)"""|{_TEXT}', '""', without_comments(SHIM[name]))
    text = re.sub(r"'(?:\\.[^']*|[^'\\])'", "", text)
    numbers = re.findall(r"(?<![\w.$])(\d[\d.]*(?:e\d+)?f?)L?(?!\w)", text)
    assert set(numbers) - {"0", "1", "2"} <= set(_NUMBERS.get(name, {}))


@pytest.mark.parametrize("name", sorted(SHIM))
def test_no_source_holds_a_list(name: str) -> None:
    """A list of names that decides something stands in policy.json."""
    lists = rf"\b(?:Set|Seq|List|Array)\(\s*{_TEXT}\s*,\s*{_TEXT}"
    assert re.search(lists, without_comments(SHIM[name])) is None or name in _LISTS


def test_each_limit_is_explained_and_used() -> None:
    """One that nobody reads is dead; one that is not there fails the first scan."""
    used = set(re.findall(r'Policy\s*\.limit\("(\w+)"\)', "\n".join(SHIM.values())))
    assert used == set(POLICY["limits"])
    assert all(limit["why"] for limit in POLICY["limits"].values())


def test_each_list_is_used_and_there() -> None:
    """Likewise."""
    for path in re.findall(r'Policy\s*\.(?:texts|at)\("([\w/]+)"\)', "\n".join(SHIM.values())):
        node = POLICY
        for step in path.strip("/").split("/"):
            node = node[step]
        assert node, path


def test_what_python_names_as_well() -> None:
    """Names that both sides have are the same ones."""
    assert set(POLICY["text_formats"]) == set(TEXT_FORMATS)
    assert POLICY["fingerprint"]["reserved_prefix"] == RESERVED
    assert set(POLICY["declaring_properties"]) == {DECLARED_COLUMNS, DECLARED_OPTIONS}
    assert set(POLICY["table_functions"]) == set(FUNCTIONS)
    assert f'"{DAMAGED}"' in SHIM["WholeRecords.scala"]
    main = (SQL_EXT / "frontend" / "main.py").read_text(encoding="utf-8")
    queues = re.findall(r'RequestQueue\(\s*driver,\s*"(\w+)"', main)
    assert queues == POLICY["queues"]
