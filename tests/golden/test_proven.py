"""A stored proof applies only to the same statements, rows and Spark."""

from __future__ import annotations

from pathlib import Path

import proven
import pytest
from corpus import EVERY_MODE, read_script


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a corpus file that has passed in the mode ``off``; tests change this copy."""
    for name in ("integers.sql", "integers.out", "off.json"):
        (tmp_path / name).write_bytes(Path(__file__).with_name(name).read_bytes())
    monkeypatch.setattr(proven, "RECORD", tmp_path / "off.json")
    proven.record(read_script(tmp_path / "integers.sql"))
    assert proven.is_proven(read_script(tmp_path / "integers.sql"))
    return tmp_path / "integers.sql"


@pytest.mark.parametrize("suffix", [".sql", ".out"])
def test_other_statements_or_rows_are_not_proven(copied: Path, suffix: str) -> None:
    """If a line is added to the statements or to the rows, the file is no longer proven."""
    with copied.with_suffix(suffix).open("a") as file:
        file.write("\n")
    assert not proven.is_proven(read_script(copied))


def test_another_spark_is_not_proven(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof for one release of Spark is no proof for another release."""
    monkeypatch.setattr("pyspark.__version__", "4.1.0")
    assert not proven.is_proven(read_script(copied))


def test_a_file_of_every_mode_is_run_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files in `EVERY_MODE` always run, to show that queries without Sieve skip no file."""
    monkeypatch.setattr(proven, "RECORD", tmp_path / "off.json")
    (tmp_path / "off.json").write_text("{}")
    for name in sorted(EVERY_MODE):
        script = read_script(Path(__file__).with_name(f"{name}.sql"))
        proven.record(script)
        assert not proven.is_proven(script)
