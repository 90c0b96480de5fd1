"""In Delta tables with column mapping, indexes on expressions and tuples follow renamed columns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from delta_tables import AUDITED, insert
from renamed_columns import COLUMNS, ROWS, check_elements, check_refused, check_renames
from spark_session import Lab

pytestmark = pytest.mark.delta


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a database for each test; an audit checks every skipped file."""
    with lab.database("expressions"), lab.settings(AUDITED):
        lab.sql(
            f"CREATE TABLE t ({COLUMNS}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = "
            "'name', 'delta.dataSkippingNumIndexedCols' = '0')"
        )
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


def test_a_field_of_structs_in_an_array(lab: Lab) -> None:
    """An index follows renames of an array and of its structs' field, and ignores a new field."""
    lab.sql("CREATE SIEVE INDEX ON t (m.k)")
    lab.check("SELECT id FROM t WHERE array_contains(m.k, '42')", exactly=1)
    lab.sql("ALTER TABLE t RENAME COLUMN m.element.k TO j")
    lab.sql("ALTER TABLE t RENAME COLUMN m TO n")
    assert lab.check("SELECT id FROM t WHERE array_contains(n.j, '42')").rows.total() == 1
    lab.sql("ALTER TABLE t ADD COLUMN n.element.k STRING")
    lab.sql(
        "INSERT INTO t VALUES (1000, NULL, NULL, array(named_struct('j', '42', 'k', '43')), NULL)"
    )
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT id FROM t WHERE array_contains(n.j, '42')", exactly=2)
    lab.check("SELECT id FROM t WHERE array_contains(n.k, '43')", exactly=11)
    lab.sql("CREATE SIEVE INDEX ON t (n.k)")
    lab.check("SELECT id FROM t WHERE array_contains(n.k, '43')", exactly=1)


def test_fields_in_arrays_are_refused(lab: Lab) -> None:
    """CREATE refuses expressions on fields of structs in arrays.

    An index on the expression would not follow a renamed field.
    """
    check_refused(lab)
