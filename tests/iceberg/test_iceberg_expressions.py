"""Indexes on expressions and tuples identify their columns by field id."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from pyspark.errors import PySparkException
from renamed_columns import COLUMNS, ROWS, check_elements, check_refused, check_renames
from spark_session import Lab

pytestmark = pytest.mark.iceberg


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks every skipped file."""
    with namespace(lab, "spark_catalog.expressions"), lab.settings(AUDITED):
        create(lab, columns=COLUMNS)
        insert(lab, ROWS)
        yield


def test_a_rename_keeps_an_expression(lab: Lab) -> None:
    """An index on an expression follows renamed columns.

    A new column that gets the column's old name is a different column.
    """
    check_renames(lab)


def test_elements(lab: Lab) -> None:
    """An index on the elements of an array follows the renamed column."""
    check_elements(lab)


def test_fields_in_arrays_are_refused(lab: Lab) -> None:
    """CREATE refuses expressions on fields of structs in arrays.

    An index on the expression would not follow a renamed field.
    """
    check_refused(lab)
    with pytest.raises(PySparkException, match=r"m\.k is a field of structs in an array"):
        lab.sql("CREATE SIEVE INDEX ON t (m.k)")
