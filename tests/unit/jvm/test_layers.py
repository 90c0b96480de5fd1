"""Tests the lint of the shim's packages.

This lint reports upward imports, names of table formats outside of `formats`, and files in wrong
folders.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sql_ext.jvm import layers


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Copies the shim's sources."""
    for folder in ("src", "compat"):
        shutil.copytree(layers.HERE / folder, tmp_path / folder)
    return tmp_path


def test_the_shim_obeys_its_layers(sources: Path) -> None:
    """The lint reports nothing for the shim's sources."""
    assert list(layers.faults(sources)) == []


@pytest.mark.parametrize(
    ("file", "line", "fault"),
    [
        (
            "src/base/Json.scala",
            "import org.apache.spark.sql.sieve.plan.JoinKeys",
            "base must not use plan",
        ),
        (
            "src/predicate/Filters.scala",
            "private val tree = org.apache.spark.sql.sieve.observe.ExplainedScans",
            "predicate must not use observe",
        ),
        ("src/plan/JoinKeys.scala", "private val own = Delta", "only formats may name"),
        (
            "compat/4.x/Compat.scala",
            "import org.apache.spark.sql.sieve.predicate.Filters",
            "base must",
        ),
    ],
)
def test_a_planted_line_is_seen(sources: Path, file: str, line: str, fault: str) -> None:
    """The lint reports a line that breaks a rule."""
    text = (sources / file).read_text(encoding="utf-8")
    (sources / file).write_text(text + line + "\n", encoding="utf-8")
    (seen,) = layers.faults(sources)
    assert seen.startswith(file)
    assert fault in seen


def test_a_file_in_another_folder_is_seen(sources: Path) -> None:
    """If a file's package differs from its folder, the lint reports the file."""
    (sources / "src/base/Json.scala").rename(sources / "src/formats/Json.scala")
    (seen,) = layers.faults(sources)
    assert "another folder" in seen
