from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import InvalidInputError
from sieve.operations.index_name import Wanted, refuse_taken, with_default_names
from sieve.tables.column import Column
from sieve.tables.table_info import table_info_from
from tests.fake_spark import Warehouse

SUM, PRODUCT, DIFFERENCE = (
    Column((sql,), "bigint", ("", sql)) for sql in ("(a + b)", "(a * b)", "a - b")
)
PLAIN = Column(("a_b",), "bigint")


def names(*columns: Column, dropped: Column | None = None, **taken: Column) -> list[str]:
    """The names of new indexes on columns of a table with other indexes."""
    keys = {name: column.key for name, column in taken.items()}
    gone = None if dropped is None else dropped.key
    info: Any = SimpleNamespace(column_of=lambda key: None if key == gone else key)
    return [one.name for one in with_default_names(columns, keys, info)]


def test_indexes_with_the_same_default_name_get_other_names() -> None:
    """A new index gets a number if an index on another column has its default name."""
    assert names(SUM, PRODUCT, PLAIN) == ["a_b_sieve", "a_b_sieve_2", "a_b_sieve_3"]
    assert names(SUM, DIFFERENCE, a_b_sieve_2=PRODUCT) == ["a_b_sieve", "a_b_sieve_3"]
    assert names(SUM, a_b_sieve=PLAIN) == ["a_b_sieve_2"]
    long = [Column((f"{'column ' * 30}+ {k}",), "bigint", ("", str(k))) for k in range(2)]
    first, second = names(*long)
    assert (len(first), len(second), second[-2:]) == (128, 128, "_2")


def test_the_index_of_a_dropped_column_keeps_its_name() -> None:
    """If an index on a dropped column has the default name, CREATE takes and refuses the name."""
    assert names(SUM, dropped=PLAIN, a_b_sieve=PLAIN) == ["a_b_sieve"]


def test_an_index_of_the_same_column_keeps_its_name() -> None:
    """The default name stays if an index on the same column has it; CREATE then finds the index."""
    assert names(SUM, a_b_sieve=SUM) == ["a_b_sieve"]
    assert names(SUM, a_b_sieve=PLAIN, a_b_sieve_2=SUM) == ["a_b_sieve_2"]
    assert names(PLAIN, PLAIN) == ["a_b_sieve", "a_b_sieve"]


def test_name_is_taken_in_any_letter_case(tmp_path: Path) -> None:
    """CREATE refuses a name that another index has, in any letter case.

    The other index can exist already, or the same statement can create it.
    """
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1]])
    info = table_info_from(warehouse.info("t"))
    (column,) = info.columns
    a, b, capital = (Wanted(name, column) for name in ("a", "b", "B"))
    refuse_taken([a, b], {"c": ("id",)}, info)
    with pytest.raises(InvalidInputError, match=r"table shop\.t already has an index B; choose"):
        refuse_taken([a, capital], {"c": ("id",), "b": ("id",)}, info)
    with pytest.raises(InvalidInputError, match=r"already has an index b, on a dropped column;"):
        refuse_taken([b], {"b": ("gone",)}, info)
    with pytest.raises(InvalidInputError, match="the statement names index b twice"):
        refuse_taken([b, a, capital], {}, info)
