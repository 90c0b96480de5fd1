"""The shim has no policy: its reasons, lists and limits are Python's."""

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
SHIM = {path.name: path.read_text(encoding="utf-8") for path in SQL_EXT.glob("jvm/src/**/*.scala")}
POLICY = json.loads((SQL_EXT / "policy.json").read_text(encoding="utf-8"))

_TEXT = r'"(?:[^"\\\n]|\\.)*"'


def without_comments(text: str) -> str:
    """A source without comments and imports."""
    keep = re.compile(rf'"""(?s:.*?)"""|{_TEXT}|/\*(?s:.*?)\*/|//[^\n]*')
    text = keep.sub(lambda m: m[0] if m[0].startswith('"') else "", text)
    return re.sub(r"(?m)^(?:import|package) .*", "", text)


def test_both_sides_know_the_same_reasons() -> None:
    """The shim's closed list equals Python's, so neither side lacks a reason of the other."""
    listed = re.findall(r'val \w+ = Value\("([a-z-]+)"\)', SHIM["Reason.scala"])
    assert len(listed) == len(set(listed))
    assert set(listed) == {reason.value for reason in Reason}


@pytest.mark.parametrize("name", sorted(set(SHIM) - {"Reason.scala"}))
def test_a_reason_is_named_by_the_list_alone(name: str) -> None:
    """No other source contains a reason as a literal."""
    spelled = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', without_comments(SHIM[name])))
    assert not spelled & {reason.value for reason in Reason}


def test_each_limit_is_explained_and_used() -> None:
    """A limit that nothing reads is dead; a missing limit fails the first scan."""
    used = set(re.findall(r'Policy\s*\.limit\("(\w+)"\)', "\n".join(SHIM.values())))
    assert used == set(POLICY["limits"])
    assert all(limit["why"] for limit in POLICY["limits"].values())


def test_each_list_is_used_and_there() -> None:
    """A list that nothing reads is dead; a missing list fails the first scan."""
    for path in re.findall(r'Policy\s*\.(?:texts|at)\("([\w/]+)"\)', "\n".join(SHIM.values())):
        node = POLICY
        for step in path.strip("/").split("/"):
            node = node[step]
        assert node, path


def test_what_python_names_as_well() -> None:
    """Names that both Python and Scala define are equal."""
    assert set(POLICY["text_formats"]) == set(TEXT_FORMATS)
    assert POLICY["fingerprint"]["reserved_prefix"] == RESERVED
    assert set(POLICY["declaring_properties"]) == {DECLARED_COLUMNS, DECLARED_OPTIONS}
    assert set(POLICY["table_functions"]) == set(FUNCTIONS)
    assert f'"{DAMAGED}"' in SHIM["WholeRecords.scala"]
    main = (SQL_EXT / "frontend" / "main.py").read_text(encoding="utf-8")
    queues = re.findall(r'RequestQueue\(\s*driver,\s*"(\w+)"', main)
    assert queues == POLICY["queues"]
