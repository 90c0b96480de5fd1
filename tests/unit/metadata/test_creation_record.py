"""A statement whose index was dropped meanwhile: what it has written since goes, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sieve.errors import ConflictError
from sieve.metadata.creation_record import report_if_dropped
from sieve.metadata.paths import REGISTERED
from sieve.storage.local import LocalStore

MARKS = ("versions/1.json", REGISTERED)


def written(folder: Path, *names: str) -> str:
    """An index's folder with these files."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return f"file:{folder}"


def end(directory: str, error: Exception | None) -> None:
    """Ends a statement on an index, with an error or without."""
    with report_if_dropped("v", LocalStore(), directory):
        if error is not None:
            raise error


@pytest.mark.parametrize("marks", [MARKS, MARKS[:1], MARKS[1:]], ids=["both", "first", "second"])
def test_an_index_with_a_mark_of_life_stays(tmp_path: Path, marks: tuple[str, ...]) -> None:
    """One that lacks one of the two is damaged, not dropped; the statement's own error is told."""
    names = {*marks, "runs/1/part"}
    directory = written(tmp_path / "i", *names)
    end(directory, None)
    with pytest.raises(KeyError):
        end(directory, KeyError())
    assert all((tmp_path / "i" / name).exists() for name in names)


@pytest.mark.parametrize("error", [None, KeyError()])
def test_what_is_written_after_a_drop_goes(tmp_path: Path, error: Exception | None) -> None:
    """Whether the statement came to its end or failed, it reports the drop."""
    directory = written(tmp_path / "i", "runs/1/part")
    with pytest.raises(ConflictError, match="index v was dropped") as told:
        end(directory, error)
    assert told.value.__cause__ is error
    assert not (tmp_path / "i").exists()
