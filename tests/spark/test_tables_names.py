"""Tests names with blanks, dots, quotes or other scripts. Letter case matters as in Spark."""

from __future__ import annotations

import pytest
from spark_session import Lab

COLUMNS = ["a b", "a.b", "größe", "列", "select", "x`y", "a,b", "50%", "Mixed", "_1"]


def quoted(name: str) -> str:
    """A name in backquotes."""
    return f"`{name.replace('`', '``')}`"


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "orc", "json"])
def test_columns_of_strange_names(lab: Lab, form: str) -> None:
    """A column's name can contain blanks, dots, commas, quotes, or keywords of SIEVE statements."""
    usable = [c for c in COLUMNS if form != "orc" or c not in ("x`y", "a,b")]
    with lab.database("strange_names"):
        columns = ", ".join(f"id + {k} AS {quoted(c)}" for k, c in enumerate(usable))
        lab.sql(f"CREATE TABLE t USING {form} AS SELECT {columns} FROM range(0, 40, 1, 4)")
        some = usable[::3] if form == "parquet" else usable[1:3]
        lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(map(quoted, some))})")
        for k, column in enumerate(some):
            lab.check(f"SELECT * FROM t WHERE {quoted(column)} = {15 + k}", exactly=1)
        names = [row[2] for row in lab.sql("SHOW SIEVE INDEXES ON t")]
        assert sorted(names) == sorted(f"{c.lower()}_sieve" for c in some)
        for name in names:
            lab.sql(f"DROP SIEVE INDEX {quoted(name)} ON t")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["a`.b", "größe", "1d", "select"])
def test_statements_on_a_column_of_a_strange_name(lab: Lab, name: str) -> None:
    """CHECK, REFRESH, functions and all kinds of index work for a column with a strange name."""
    column = quoted(name)
    with lab.database("strange_statements"):
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT array(string(id + 1000)) AS {column}, "
            f"named_struct({name!r}, id) AS s FROM range(0, 40, 1, 4)"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t ({column}, s.{column}, {column}[0])")
        lab.sql(f"CREATE SIEVE INDEX parts ON t ({column}[0]) OPTIONS (kind = 'substring')")
        for predicate in (
            f"array_contains({column}, '1015')",
            f"s.{column} = 15",
            f"{column}[0] = '1015'",
            f"{column}[0] LIKE '%1015%'",
        ):
            lab.check(f"SELECT * FROM t WHERE {predicate}", exactly=1)
        checked = lab.sql("CHECK SIEVE INDEX ON t")
        assert (len(checked), {row[2] for row in checked}) == (4, {"ok"})
        for index in {row[0] for row in checked}:
            lab.sql(f"SELECT * FROM sieve_segments('t', '{index}')")
        assert len(lab.sql(f"ESTIMATE SIEVE INDEX ON t ({column})")) > 0
        assert {row[5] for row in lab.sql("REFRESH SIEVE INDEX ON t")} == {"unchanged"}


def test_a_column_called_null(lab: Lab) -> None:
    """Statements read the column `null`, and not the literal NULL."""
    with lab.database("strange_null"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id AS `null` FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (`null`)")
        lab.check("SELECT * FROM t WHERE `null` = 15", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
        assert lab.sql("SELECT * FROM sieve_segments('t', 'null_sieve')")


def test_fields_of_strange_names(lab: Lab) -> None:
    """Field `a.b` of a struct is not confused with field `b` of `a`."""
    with lab.database("strange_fields"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT named_struct('a.b', id, 'a', named_struct("
            "'b', -id)) AS `c d` FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX dotted ON t (`c d`.`a.b`)")
        lab.sql("CREATE SIEVE INDEX nested ON t (`c d`.a.b)")
        lab.check("SELECT * FROM t WHERE `c d`.`a.b` = 15", exactly=1)
        lab.check("SELECT * FROM t WHERE `c d`.a.b = -25", exactly=1)
        lab.check("SELECT * FROM t WHERE `c d`.a.b = 25", exactly=0)


@pytest.mark.long
def test_an_index_name_in_quotes(lab: Lab) -> None:
    """An index name can contain blanks and other scripts, and its letter case does not matter."""
    with lab.database("index_names"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX My_Index ON t (id)")
        assert lab.sql("SHOW SIEVE INDEXES ON t")[0][2] == "my_index"
        assert lab.sql("REFRESH SIEVE INDEX MY_INDEX ON T FULL")[0][:2] == ("my_index", 2)
        lab.sql("DROP SIEVE INDEX mY_iNDEX ON t")
        lab.sql("CREATE SIEVE INDEX `mein größter Index` ON index_names.t (id)")
        assert lab.sql("DESCRIBE SIEVE INDEX `mein größter Index` ON spark_catalog.index_names.t")
        lab.check("SELECT * FROM t WHERE id = 15", exactly=1)
        lab.sql("DROP SIEVE INDEX `MEIN größter Index` ON t")


def test_column_names_match_in_any_case(lab: Lab) -> None:
    """If a session is not case-sensitive, statements and queries accept columns in any case."""
    with lab.database("cases"):
        lab.sql("CREATE TABLE T USING parquet AS SELECT id AS OrderKey FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON cases.t (ORDERKEY)")
        assert lab.sql("SHOW SIEVE INDEXES ON t")[0][2:4] == ("orderkey_sieve", "OrderKey")
        lab.check("SELECT orderkey FROM t WHERE oRDERkEY = 15", exactly=1)
        lab.check("SELECT x FROM (SELECT OrderKey AS x FROM T) WHERE x = 15", exactly=1)


def test_case_sensitive_sessions_distinguish_columns(lab: Lab) -> None:
    """If a session is case-sensitive, `a` and `A` are two columns with separate indexes."""
    with lab.database("sensitive"), lab.setting("spark.sql.caseSensitive", "true"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id AS a, -id AS A FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX lower ON t (a)")
        lab.sql("CREATE SIEVE INDEX upper ON t (A)")
        lab.check("SELECT * FROM t WHERE a = 15", exactly=1)
        lab.check("SELECT * FROM t WHERE A = -15", exactly=1)
        lab.check("SELECT * FROM t WHERE A = 15", exactly=0)


def test_another_case_sensitivity_reads_everything(lab: Lab) -> None:
    """A case-sensitive session does not use an index that was built without case sensitivity."""
    with lab.database("mixed"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        with lab.setting("spark.sql.caseSensitive", "true"):
            lab.check("SELECT * FROM t WHERE id = 15", exactly=4)
            reasons = lab.explain("SELECT * FROM t WHERE id = 15")[0]["reasons"]
        assert reasons == "reader-changed: 4"
        lab.check("SELECT * FROM t WHERE id = 15", exactly=1)


def test_files_of_another_case_than_the_table(lab: Lab) -> None:
    """If files spell column names in another letter case, builds match names as Spark does."""
    with lab.database("spelling") as database:
        lab.sql("CREATE TABLE t (OrderKey BIGINT) USING parquet")
        location = lab.spark.catalog.getDatabase(database).locationUri + "/t"
        for k, name in enumerate(("ORDERKEY", "orderkey", "OrderKey")):
            frame = lab.spark.range(k * 10, k * 10 + 10, 1, 1).toDF(name)
            frame.write.mode("append").parquet(location)
        lab.sql("REFRESH TABLE t")
        lab.sql("CREATE SIEVE INDEX ON t (orderkey)")
        for key in (5, 15, 25):
            found = lab.check(f"SELECT * FROM t WHERE orderkey = {key}", exactly=1)
            assert found.rows == {f"({key},)": 1}


def test_a_table_called_sieve_is_described_by_spark(lab: Lab) -> None:
    """Spark runs statements on a table named `sieve` with a column `index`; Sieve ignores them."""
    with lab.database("called_sieve"):
        lab.sql(
            "CREATE TABLE sieve USING parquet AS SELECT id index, id indexes "
            "FROM range(0, 40, 1, 4)"
        )
        for statement in (
            "DESC sieve index",
            "DESCRIBE sieve index;",
            "desc sieve /* it */ index -- end",
        ):
            assert ("col_name", "index") in lab.sql(statement), statement
        assert ("col_name", "indexes") in lab.sql("DESCRIBE sieve indexes")
        for statement in (
            "REFRESH sieve",
            "REFRESH sieve;",
            "REFRESH sieve/p=1",
        ):
            assert lab.sql(statement) == [], statement
        assert [row[0] for row in lab.sql("SHOW COLUMNS IN sieve")] == ["index", "indexes"]
        assert lab.sql("SHOW CREATE TABLE sieve")[0][0].startswith("CREATE TABLE")
        lab.sql("CREATE SIEVE INDEX ON sieve (index)")
        lab.check("SELECT * FROM sieve WHERE index = 5", exactly=1)
        assert lab.sql("DESCRIBE SIEVE INDEX index_sieve ON sieve")
        assert lab.sql("REFRESH SIEVE INDEX ON sieve")
