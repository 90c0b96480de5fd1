"""Tests alternative forms of SIEVE statements.

Sieve runs some forms, such as procedures, and leaves other forms to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_session import Lab

TABLE = "CREATE TABLE t USING parquet AS SELECT id, id % 7 AS r FROM range(0, 80, 1, 8)"


@pytest.fixture
def table(lab: Lab) -> Iterator[str]:
    """Creates a table of eight files in the order of ``id``."""
    with lab.database("forms"):
        lab.sql(TABLE)
        yield "t"


def _check_refused_by_spark(lab: Lab, text: str) -> None:
    """Asserts that Spark's own parser refuses the given text."""
    with pytest.raises(Exception) as refusal:  # noqa: PT011 - Spark's, which differ by version
        lab.sql(text)
    assert "SIEVE_" not in str(refusal.value)


def _point(lab: Lab, files: int) -> None:
    lab.check("SELECT * FROM t WHERE id = 25", exactly=files)


@pytest.mark.long
def test_procedures_act_like_their_statements(lab: Lab, table: str) -> None:
    """Procedures for CREATE, REFRESH, SHOW, DESCRIBE, EXPLAIN and DROP work like the statements.

    A caller can give the arguments of a procedure by name or by position.
    """
    (made,) = lab.sql(f"CALL sieve.create(table => '{table}', columns => 'id', budget => '2%')")
    assert made[0] == "id_sieve"
    _point(lab, 1)
    lab.sql(f"INSERT INTO {table} VALUES (25, 4)")
    (made,) = lab.sql("/* due */ call -- now\n `Sieve` . REFRESH('forms.t');")
    assert made[:2] == ("id_sieve", 2)
    _point(lab, 2)
    query = "SELECT * FROM t WHERE id = 25"
    for call, statement in (
        ("show_indexes(database => 'forms')", "SHOW SIEVE INDEXES IN forms"),
        ("show_versions('t')", "SHOW SIEVE VERSIONS ON t"),
        ("describe('t', 'id_sieve')", "DESCRIBE SIEVE INDEX id_sieve ON t"),
        (f"explain('{query}')", f"EXPLAIN SIEVE {query}"),
        ("check('t', sample => 100)", "CHECK SIEVE INDEX ON t"),
    ):
        called, said = lab.spark.sql(f"CALL sieve.{call}"), lab.spark.sql(statement)
        assert (called.schema, called.collect()) == (said.schema, said.collect())
    literal = """SELECT "CALL sieve.drop('t')" /* CALL sieve.drop('t') */"""
    assert lab.sql(literal) == [("CALL sieve.drop('t')",)]
    assert lab.sql("CALL sieve.drop('t', column => 'ID')") == [("id_sieve",)]
    assert lab.sql("SHOW SIEVE INDEXES") == []
    with pytest.raises(Exception, match=r"(?s)SIEVE_SYNTAX_ERROR.*Did you mean refresh\?.*\^"):
        lab.sql("CALL sieve.refrsh('t')")


@pytest.mark.usefixtures("table")
def test_spark_handles_procedures_of_a_catalog_named_sieve(lab: Lab) -> None:
    """If a catalog named ``sieve`` exists, Spark handles calls of procedures in this catalog."""
    lab.sql("CALL sieve.show_indexes()")
    with lab.setting("spark.sql.catalog.sieve", "no.such.Catalog"):
        _check_refused_by_spark(lab, "CALL sieve.show_indexes()")
    _check_refused_by_spark(lab, "CALL other.show_indexes()")


def test_create_index_using_sieve_works(lab: Lab, table: str) -> None:
    """If a CREATE INDEX statement has USING sieve, Sieve runs the statement.

    Sieve also runs statements without USING, such as DROP INDEX, on indexes of Sieve.
    """
    hinted = r"SIEVE_SYNTAX_ERROR.*USING sieve"
    with pytest.raises(Exception, match=hinted):
        lab.sql("CREATE INDEX i ON t (id)")
    create = "CREATE INDEX IF NOT EXISTS /* mine */ `i` ON TABLE forms.`t` USING Sieve (id)"
    (made,) = lab.sql(f"{create} OPTIONS (budget = '2%')")
    assert made[:2] == ("i", 1)
    _point(lab, 1)
    (again,) = lab.sql(create)
    assert again[:2] == ("i", 1)
    (again,) = lab.sql("CREATE INDEX IF NOT EXISTS I ON t (id)")
    assert again[:2] == ("i", 1)
    with pytest.raises(Exception, match="SIEVE_INDEX_EXISTS"):
        lab.sql("CREATE INDEX i ON t (r)")
    for foreign in (
        "CREATE INDEX other ON t USING bloom (id)",
        "DROP INDEX other ON t",
        "DROP INDEX i ON nowhere",
        "DROP INDEX i ON nowhere.t",
    ):
        _check_refused_by_spark(lab, foreign)
    with pytest.raises(Exception, match=hinted):
        lab.sql("CREATE INDEX other ON t (id)")
    _point(lab, 1)
    assert lab.sql(f"DROP INDEX I ON {table}") == [("i",)]
    _check_refused_by_spark(lab, "DROP INDEX i ON t")
    _point(lab, 8)


def test_create_or_replace_deletes_the_old_index(lab: Lab, table: str) -> None:
    """CREATE OR REPLACE builds the new index first, and only then deletes the old index."""
    (made,) = lab.sql(f"CREATE OR REPLACE SIEVE INDEX i ON {table} (r)")
    assert made[:2] == ("i", 1)
    old = Path(lab.facts("i")["path"].removeprefix("file:"))
    for wrong in ("nope", "r) OPTIONS (shape = 'nope'"):
        with pytest.raises(Exception, match="SIEVE_"):
            lab.sql(f"CREATE OR REPLACE SIEVE INDEX i ON t ({wrong})")
    assert lab.sql("SHOW SIEVE INDEXES ON t")[0][2:4] == ("i", "r")
    lab.sql("ALTER SIEVE INDEX i ON t DISABLE")
    lab.sql("CREATE OR REPLACE SIEVE INDEX i ON t (id) COMMENT 'another'")
    (shown,) = lab.sql("SHOW SIEVE INDEXES ON t")
    assert (shown[2], shown[3], shown[6]) == ("i", "id", "ready")
    _point(lab, 1)
    assert not old.exists()
    second = Path(lab.facts("i")["path"].removeprefix("file:"))
    # REPLACE also works for two indexes in one statement, and for an index whose files are missing.
    for file in second.rglob("*.json"):
        file.unlink()
    names = [row[0] for row in lab.sql("CALL sieve.create('t', 'id, r', replace => true)")]
    assert names == ["id_sieve", "r_sieve"]
    assert len(lab.sql("CREATE OR REPLACE SIEVE INDEX ON t (id, r)")) == 2
    lab.sql("CREATE OR REPLACE SIEVE INDEX i ON t (id)")
    _point(lab, 1)
    assert len(lab.sql("SHOW SIEVE INDEXES ON t")) == 3


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("CREATE SEIVE INDEX ON t (id)", "CREATE SIEVE INDEX"),
        ("CREATE OR REPLACE SIVE INDEX ON t (id)", "CREATE SIEVE INDEX"),
        ("REFERSH SIEVE INDEX ON t", "REFRESH SIEVE INDEX"),
        ("SHOW SIEV INDEXES", "SHOW SIEVE INDEXES"),
        ("DESCRIBE SEIVE INDEX i ON t", "DESCRIBE SIEVE INDEX"),
        ("EXPLAIN SEIVE SELECT 1", "EXPLAIN SIEVE"),
    ],
)
def test_similar_texts_get_a_suggested_statement(lab: Lab, typed: str, meant: str) -> None:
    """If Spark cannot parse a text that resembles a SIEVE statement, the error suggests a fix."""
    with pytest.raises(Exception, match=rf"SIEVE_SYNTAX_ERROR.*Did you mean {meant}\?"):
        lab.sql(typed)


@pytest.mark.usefixtures("table")
def test_spark_reports_other_mistakes(lab: Lab) -> None:
    """Sieve leaves to Spark what Spark can parse, and what resembles no SIEVE statement."""
    for text in ("CREATE SPARSE INDEX i ON t (id)", "SHOW SIEVES", "SELEC SIEVE", "CREATE SIEV"):
        _check_refused_by_spark(lab, text)
    lab.sql("CREATE VIEW seive AS SELECT 1 AS index")
    assert lab.sql("DESCRIBE seive index")


def test_a_query_that_requires_its_index(lab: Lab, table: str) -> None:
    """With `spark.sieve.require`, a query fails if it cannot use the index of its column.

    The error and EXPLAIN show the same reason.
    """
    lab.sql(f"CREATE SIEVE INDEX i ON {table} (id)")
    lab.sql("CREATE TABLE plain USING parquet AS SELECT * FROM t")
    query = "SELECT * FROM t WHERE id = 25"
    unsupported = "coalesce(id, 0) % 2 = 1"
    with lab.setting("spark.sieve.require", "true"):
        _point(lab, 1)
        for free in ("TABLE t", "SELECT * FROM t WHERE r = 3", "SELECT * FROM plain WHERE id = 25"):
            assert lab.run(free).rows
        assert lab.run(f"{query} AND {unsupported}").files == 1
        # Spark adds the condition id IS NOT NULL to `id % 2 = 5`, but the added condition skips no
        # file.
        for useless in (unsupported, "id % 2 = 5", "id = 25 OR id % 2 = 5"):
            cause = r"SIEVE_REQUIRED.*forms.t.*unsupported-predicate \(%\)\. EXPLAIN"
            with pytest.raises(Exception, match=cause):
                lab.run(f"SELECT * FROM t WHERE {useless}")
        assert lab.run("SELECT * FROM t WHERE id IS NOT NULL").files == 8
        lab.sql("INSERT INTO t VALUES (25, 4)")
        assert lab.run(query).files == 2
        with lab.setting("spark.sql.parquet.enableVectorizedReader", "false"):
            with pytest.raises(Exception, match=r"SIEVE_REQUIRED.*reader-changed"):
                lab.run(query)
            (scan,) = lab.explain(query)
            assert scan["reasons"] == "reader-changed: 9"
            assert lab.sql(f"EXPLAIN FORMATTED {query}")
            assert lab.sql("SELECT DISTINCT kept FROM sieve_files('t', 'id = 25')") == [(True,)]
            with lab.setting("spark.sieve.enabled", "false"):
                assert lab.run(query).rows
        lab.sql("ALTER SIEVE INDEX i ON t DISABLE")
        assert lab.run(query).files == 9
