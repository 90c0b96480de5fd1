"""If a build fails at a file and Spark's error does not name the file, a search finds it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from sieve.errors import UnavailableError
from sieve.indexing import find_unreadable_file, value_columns
from sieve.indexing.find_unreadable_file import named_if_unreadable
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile
from sieve.tables.table import LOCATION

FILES = [DataFile(f"file:/t/part-{k}", 10, 1000) for k in range(5)]
TABLE: Any = SimpleNamespace(info=SimpleNamespace(label="d.t"))
COLUMN = Column(("id",), "bigint")


class Reads:
    """Stands in for the reading of files, and fails at a bad file.

    Records how many files each reading reads.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, bad: Sequence[int], reader: bool = True):
        self.sizes: list[int] = []

        def fails(_: object, __: object, suspects: Sequence[tuple[DataFile, int]]) -> bool:
            self.sizes.append(len(suspects))
            return any(number in bad for _, number in suspects)

        monkeypatch.setattr(find_unreadable_file, "_fails", fails)
        monkeypatch.setattr(find_unreadable_file, "raised_in", lambda *_: reader)


def read(message: str, cancelled: Exception | None = None) -> None:
    """Runs a build in which the reading of all files fails with this message."""

    def check() -> None:
        if cancelled is not None:
            raise cancelled

    environment: Any = SimpleNamespace(check_cancelled=check)
    with named_if_unreadable(TABLE, COLUMN, FILES, range(5), environment):
        raise PySparkException(message)


@pytest.mark.parametrize("bad", range(5))
def test_the_file_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, bad: int) -> None:
    """The search finds the unreadable file. Each reading halves the number of suspected files."""
    reads = Reads(monkeypatch, bad=[bad])
    with pytest.raises(UnavailableError, match=rf"part-{bad} of table d\.t cannot be read"):
        read("a footer is damaged")
    assert len(reads.sizes) <= 4


def test_error_without_a_bad_file_is_raised_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build raises an error unchanged if it names a file, is transient, or is no read error."""
    Reads(monkeypatch, bad=[])
    with pytest.raises(PySparkException, match="transient"):
        read("transient")
    reads = Reads(monkeypatch, bad=[3])
    with pytest.raises(PySparkException, match="part-3 is damaged"):
        read("part-3 is damaged")
    with pytest.raises(KeyboardInterrupt):
        read("killed", KeyboardInterrupt())  # type: ignore[arg-type]
    Reads(monkeypatch, bad=[3], reader=False)
    with pytest.raises(PySparkException, match="elsewhere"):
        read("elsewhere")
    assert reads.sizes == []


@pytest.mark.parametrize(
    ("error", "reader", "fails"),
    [
        (None, True, False),
        (PySparkException("x"), True, True),
        (PySparkException("x"), False, None),
        (ArithmeticError(), True, None),
    ],
)
def test_only_reader_errors_count_as_failed_files(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, reader: bool, fails: bool | None
) -> None:
    """A file counts as unreadable if Spark's reader fails while it reads all rows of the file."""
    steps: list[Any] = []

    class Rows:
        """A frame that records the calls of its methods."""

        def select(self, *columns: Any) -> Rows:
            steps.append(columns)
            return self

        @property
        def write(self) -> Rows:
            return self

        def format(self, name: str) -> Rows:
            steps.append(name)
            return self

        def mode(self, name: str) -> Rows:
            steps.append(name)
            return self

        def save(self) -> None:
            if error is not None:
                raise error

    def column(name: str) -> Any:
        return SimpleNamespace(alias=lambda other: (name, other))

    def frame(numbers: list[int], of: Column) -> Rows:
        assert of is COLUMN
        steps.append(numbers)
        return Rows()

    table: Any = SimpleNamespace(frame=frame)
    suspects = [(FILES[3], 3), (FILES[4], 4)]
    monkeypatch.setattr(value_columns, "sf", SimpleNamespace(col=column))
    monkeypatch.setattr(find_unreadable_file, "raised_in", lambda *_: reader)
    if fails is None:
        assert error is not None
        with pytest.raises(type(error)):
            find_unreadable_file._fails(table, COLUMN, suspects)
    else:
        assert find_unreadable_file._fails(table, COLUMN, suspects) is fails
    assert steps == [[3, 4], ((COLUMN.in_frame, "v"), LOCATION), "noop", "overwrite"]
