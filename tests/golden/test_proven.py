"""A stored proof applies only if statements, rows and Spark release are unchanged."""

from __future__ import annotations

from pathlib import Path

import proven
import pytest
from corpus import EVERY_MODE, read_script


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a corpus file with a proof for the mode ``off``. The tests change the copy."""
    for name in ("integers.sql", "integers.out", "off.json"):
        (tmp_path / name).write_bytes(Path(__file__).with_name(name).read_bytes())
    monkeypatch.setattr(proven, "RECORD", tmp_path / "off.json")
    proven.record(read_script(tmp_path / "integers.sql"))
    assert proven.is_proven(read_script(tmp_path / "integers.sql"))
    return tmp_path / "integers.sql"


@pytest.mark.parametrize("suffix", [".sql", ".out"])
def test_other_statements_or_rows_are_not_proven(copied: Path, suffix: str) -> None:
    """A new line in the ``.sql`` or ``.out`` file makes the stored proof inapplicable."""
    with copied.with_suffix(suffix).open("a") as file:
        file.write("\n")
    assert not proven.is_proven(read_script(copied))


def test_another_spark_is_not_proven(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof from one release of Spark does not apply to another release."""
    monkeypatch.setattr("pyspark.__version__", "4.1.0")
    assert not proven.is_proven(read_script(copied))


def test_a_file_of_every_mode_is_run_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files in `EVERY_MODE` are never proven, so they always run, even without Sieve."""
    monkeypatch.setattr(proven, "RECORD", tmp_path / "off.json")
    (tmp_path / "off.json").write_text("{}")
    for name in sorted(EVERY_MODE):
        script = read_script(Path(__file__).with_name(f"{name}.sql"))
        proven.record(script)
        assert not proven.is_proven(script)
