"""Checks names that are defined both in Python and in Scala."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sieve.metadata.registration import DECLARED_COLUMNS, DECLARED_OPTIONS
from sieve.metadata.text_formats import TEXT_FORMATS
from sieve.reader.reason import Reason
from sieve.tables.formats import RESERVED
from sieve.tables.table import DAMAGED
from sql_ext.statements.table_functions import FUNCTIONS

SQL_EXT = Path(__file__).resolve().parents[3] / "sql_ext"
SHIM = {path.name: path.read_text(encoding="utf-8") for path in SQL_EXT.glob("jvm/src/**/*.scala")}

_TEXT = r'"(?:[^"\\\n]|\\.)*"'


def without_comments(text: str) -> str:
    """Removes the comments and imports of a Scala source."""
    keep = re.compile(rf'"""(?s:.*?)"""|{_TEXT}|/\*(?s:.*?)\*/|//[^\n]*')
    text = keep.sub(lambda m: m[0] if m[0].startswith('"') else "", text)
    return re.sub(r"(?m)^(?:import|package) .*", "", text)


@pytest.mark.parametrize("name", sorted(SHIM))
def test_no_source_has_a_reason_as_a_literal(name: str) -> None:
    """No Scala source contains a reason as a literal; the build generates the list of reasons."""
    spelled = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', without_comments(SHIM[name])))
    assert not spelled & {reason.value for reason in Reason}


def test_names_in_both_languages_are_equal() -> None:
    """If Python and Scala define the same name, both definitions have the same value."""

    def listed(source: str, name: str) -> set[str]:
        found = re.search(rf"val {name}\b.*?Set\((.*?)\)", SHIM[source])
        assert found is not None, name
        return set(re.findall(r'"(.*?)"', found[1]))

    assert listed("WholeRecords.scala", "formats") == set(TEXT_FORMATS)
    assert listed("DeclaredIndexes.scala", "keys") == {DECLARED_COLUMNS, DECLARED_OPTIONS}
    functions = re.findall(r'\bTableFunction\("(\w+)"', SHIM["TableFunction.scala"])
    assert set(functions) == set(FUNCTIONS)
    assert f'reserved = "{RESERVED}"' in SHIM["Fingerprint.scala"]
    assert f'"{DAMAGED}"' in SHIM["WholeRecords.scala"]
