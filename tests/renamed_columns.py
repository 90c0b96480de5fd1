"""Checks indexes on expressions after columns are renamed, in formats that allow renames."""

from __future__ import annotations

import time

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab

COLUMNS = "id BIGINT, v STRING, s STRUCT<a: INT>, m ARRAY<STRUCT<k: STRING>>, l ARRAY<BIGINT>"
ROWS = (
    "id, concat('V', id) v, named_struct('a', cast(id AS INT)) s, "
    "array(named_struct('k', string(id))) m, array(id, -1) l"
)
"""SQL expressions that compute `COLUMNS` from ``id``, for a table `t` of ten files."""


def check_renames(lab: Lab) -> None:
    """If a column is renamed, an index on an expression of this column stays usable.

    If a new column gets the old name, the index is not used for the new column.
    """
    lab.sql("CREATE SIEVE INDEX ON t (lower(v), s.a * 2)")
    lab.sql("CREATE SIEVE INDEX pair ON t ((id, s.a))")
    lab.sql("ALTER TABLE t RENAME COLUMN v TO w")
    lab.sql("ALTER TABLE t RENAME COLUMN s.a TO b")
    lab.check("SELECT * FROM t WHERE lower(w) = 'v42'", exactly=1)
    lab.check("SELECT * FROM t WHERE s.b * 2 = 84", exactly=1)
    lab.check("SELECT * FROM t WHERE id = 42 AND s.b = 42", exactly=1)
    lab.sql("INSERT INTO t VALUES (1000, 'V42', NULL, NULL, NULL)")
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t (lower(w))")
    assert row[5] == "refreshed"
    assert lab.check("SELECT * FROM t WHERE lower(w) = 'v42'", exactly=2).rows.total() == 2
    lab.sql("ALTER TABLE t DROP COLUMN w")
    lab.sql("ALTER TABLE t ADD COLUMN v STRING")
    lab.sql("INSERT INTO t VALUES (1001, NULL, NULL, NULL, 'V42')")
    assert lab.check("SELECT * FROM t WHERE lower(v) = 'v42'").rows.total() == 1
    states = {row[2]: row[6] for row in lab.sql("SHOW SIEVE INDEXES ON t")}
    assert states["lower_v_sieve"] == "column dropped"
    _check_others(lab)


def _check_others(lab: Lab) -> None:
    """Statements on all indexes of `t` also work if the column of `lower_v_sieve` was dropped."""
    rows = {row[0]: row for row in lab.sql("REFRESH SIEVE INDEX ON t")}
    gone = rows.pop("lower_v_sieve")
    assert gone[1:6] == (None,) * 5
    assert "no longer has the column" in gone[6]
    assert len(rows) == 2
    assert {row[5] for row in rows.values()} == {"refreshed"}
    assert len(lab.sql("OPTIMIZE SIEVE INDEX ON t")) == 3
    statuses = {row[0]: row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")}
    assert statuses.pop("lower_v_sieve") == "column dropped"
    assert set(statuses.values()) == {"ok"}
    for statement in ("REFRESH", "OPTIMIZE", "CHECK"):
        with pytest.raises(PySparkException, match="SIEVE_UNKNOWN_COLUMN"):
            lab.sql(f"{statement} SIEVE INDEX lower_v_sieve ON t")
    with lab.setting("spark.sieve.refresh.auto", "true"):
        lab.sql("INSERT INTO t VALUES (1002, NULL, NULL, NULL, NULL)")
        deadline = time.monotonic() + 60
        while not _states(lab) <= {"ready", "column dropped"}:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def _states(lab: Lab) -> set[str]:
    return {row[6].partition(":")[0] for row in lab.sql("SHOW SIEVE INDEXES ON t")}


def check_elements(lab: Lab) -> None:
    """If a column is renamed, an index on elements of this column stays usable.

    If a new column gets the old name, the index is not used for the new column.
    """
    lab.sql("CREATE SIEVE INDEX ON t (l)")
    lab.check("SELECT * FROM t WHERE array_contains(l, 42L)", exactly=1)
    lab.sql("ALTER TABLE t RENAME COLUMN l TO list")
    lab.check("SELECT * FROM t WHERE array_contains(list, 42L)", exactly=1)
    lab.sql("DELETE FROM t WHERE id = 42")
    lab.sql("INSERT INTO t VALUES (1000, NULL, NULL, NULL, array(42L))")
    assert lab.check("SELECT * FROM t WHERE array_contains(list, 42L)").rows.total() == 1
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t (list)")
    assert row[5] == "refreshed"
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
    lab.check("SELECT * FROM t WHERE array_contains(list, 43L)", exactly=1)
    lab.sql("ALTER TABLE t DROP COLUMN list")
    lab.sql("ALTER TABLE t ADD COLUMN l ARRAY<BIGINT>")
    lab.sql("INSERT INTO t VALUES (1001, NULL, NULL, NULL, array(43L))")
    assert lab.check("SELECT * FROM t WHERE array_contains(l, 43L)").rows.total() == 1


def check_refused(lab: Lab) -> None:
    """CREATE refuses fields of structs in arrays, as an index would not follow a renamed field."""
    for typed in ("m[0].k", "m"):
        with pytest.raises(PySparkException) as error:
            lab.sql(f"CREATE SIEVE INDEX ON t ({typed})")
        assert "m has structs in an array or map" in str(error.value)
