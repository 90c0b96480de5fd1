"""Tests CSV and JSON records with an error.

The values of a damaged record depend on the columns that a query reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark_session import INTERPRETED, Lab, together

OLD = 1_600_000_000
_FAILURES = (Py4JJavaError, PySparkException)
COLUMNS = {
    "json": "a INT, t STRING, n INT, s STRUCT<x: STRING, y: INT>, l ARRAY<INT>, m MAP<STRING, INT>",
    "csv": "a INT, d DATE, n INT, t STRING",
}
CLEAN = {
    "json": (b'[{"a":10,"t":"x"},{"a":11,"n":1}]', b'[{"a":20,"m":{"k":1}},{"a":21}]'),
    "csv": (b"10,2020-01-01,1,x\n11,,,", b'20,2020-01-02,2,"y, z"\n21,2020-01-03,3,w'),
}
RECORDS = {
    "json": (
        b'{"a":60,"t":"caf\xe9"}',
        b'{"a":61,"s":{]"x":1}}',
        b'{"a":62,"s":{"x":tru',
        b'{"a":63,"l":[1 2]}',
        b'{"a":64,"m":{"k":01}}',
        b'{"a":65,"s":{"x":"\\q"}}',
        b'{"a":66,"m":{,}}',
        b'{"a":67,"n":"one"}',
        b'{"a":68,"s":{"x":"v","y":true,"a":78}}',
        b'{"t":"caf\xe9","a":69}',
        b'{"a":70,"n":1,"s":{"y":[1]},"l":{}}',
        b'{"a":71,"t":"tab\there"}',
        b'{"a":72,"t":{"inner":[1,}}',
        b"{'a':73,'n':+1}",
        b"[]",
        b"{broken",
    ),
    "csv": (
        b"60",
        b"61,2020-01-01,1,x,more",
        b"62,2020-01-01,one,x",
        b"63,2020-02-30,1,x",
        b"64,2020-1-5,1,x",
        b'65,2020-01-01,1,"x"y"',
        b'66,2020-01-01,"1"0,x',
        b'67,2020-01-01,1,"x',
        b"68,,,caf\xe9",
        b"sixtynine,2020-01-01,1,x",
        b",2020-01-01,1,x,",
        b'69,2020-01-01,1,"a\\"b\nc"',
        b'70,2020-01-01,1,""',
    ),
}
ALLOWED = {
    f"allow{what}": "true"
    for what in (
        "Comments", "SingleQuotes", "NumericLeadingZeros", "UnquotedControlChars",
        "BackslashEscapingAnyCharacter", "NonNumericNumbers", "UnquotedFieldNames",
    )
}  # fmt: skip
LONG = pytest.mark.long
CASES = [
    ("json", {}, {}),
    pytest.param("json", {"multiLine": "true"}, {}, marks=LONG),
    pytest.param("json", ALLOWED, {"spark.sql.json.enablePartialResults": "false"}, marks=LONG),
    pytest.param(
        "json", {"columnNameOfCorruptRecord": "broken", "mode": "PERMISSIVE"}, {}, marks=LONG
    ),
    pytest.param("json", {"MODE": "dropmalformed", "encoding": "UTF-8"}, {}, marks=LONG),
    pytest.param(
        "json", {"primitivesAsString": "true"},
        {"spark.sql.columnNameOfCorruptRecord": "broken"}, marks=LONG,
    ),
    pytest.param("csv", {}, {}, marks=LONG),
    ("csv", {"multiLine": "true", "mode": "DROPMALFORMED"}, {}),
    pytest.param("csv", {"columnPruning": "false"}, {}, marks=LONG),
    pytest.param("csv", {"columnnameofcorruptrecord": "broken"}, {}, marks=LONG),
    pytest.param(
        "csv", {}, {"spark.sql.csv.parser.columnPruning.enabled": "false"}, marks=LONG
    ),
    pytest.param(
        "csv", {"dateFormat": "yyyy-M-d"},
        {"spark.sql.legacy.timeParserPolicy": "LEGACY"}, marks=LONG,
    ),
    ("csv", {"escape": '"', "nullValue": "x"}, {}),
    pytest.param("csv", {"escape": '"', "multiLine": "true"}, {}, marks=LONG),
]  # fmt: skip
PROJECTIONS = ("*", "a", "n, a", "count(*)")


@pytest.fixture
def database(lab: Lab) -> Iterator[None]:
    """A database for one test; Spark interprets the queries, because compiling would be slow."""
    with lab.database("damaged"), lab.settings(INTERPRETED):
        yield


def write(folder: Path, kind: str) -> None:
    """Writes two clean files, and one file for each kind of damaged record."""
    for number, content in enumerate((*CLEAN[kind], *RECORDS[kind])):
        path = folder / f"{number:02}.{kind}"
        path.write_bytes(content + b"\n")
        os.utime(path, (OLD, OLD))


def create(lab: Lab, folder: Path, kind: str, options: Mapping[str, str], more: str = "") -> None:
    """Creates table `t` over the files in the folder."""
    given = ", ".join(f"{key} '{value}'" for key, value in options.items())
    lab.sql(
        f"CREATE TABLE t ({COLUMNS[kind]}{more}) USING {kind} LOCATION '{folder}'"
        + (f" OPTIONS ({given})" if given else "")
    )


def damaged_to_a_build(lab: Lab, path: Path, kind: str, options: Mapping[str, str]) -> bool:
    """Returns whether a read of all columns fails or finds an ambiguous CSV record."""
    strictly = {k: v for k, v in options.items() if k.lower() != "mode"} | {"mode": "FAILFAST"}
    frame = lab.spark.read.options(**strictly).schema(COLUMNS[kind]).format(kind).load(str(path))
    try:
        rows = frame.collect()
    except _FAILURES:
        return True
    if kind == "json":
        return False
    texts = [row["t"] or "" for row in rows]
    if options.get("escape") == '"':
        return b'""' in path.read_bytes() or any('"' in text for text in texts)
    return any('"' in text and "\n" in text for text in texts)


@pytest.mark.parametrize(("kind", "options", "settings"), CASES)
@pytest.mark.usefixtures("database")
def test_every_projection_gives_the_same_rows(
    lab: Lab, tmp_path: Path, kind: str, options: Mapping[str, str], settings: dict[str, str]
) -> None:
    """Every query reads all files with a damaged record, and skips other files as usual."""
    write(tmp_path, kind)
    with ExitStack() as stack:
        # By default, Spark 3.5 fails at dates that only the parser of Spark 2 accepts.
        for key, value in ({"spark.sql.legacy.timeParserPolicy": "CORRECTED"} | settings).items():
            stack.enter_context(lab.setting(key, value))
        names = {key.lower() for key in (*options, *settings)}
        corrupt = any(name.endswith("columnnameofcorruptrecord") for name in names)
        create(lab, tmp_path, kind, options, ", broken STRING" if corrupt else "")
        lab.sql("CREATE SIEVE INDEX ON t (a)")
        files = list(tmp_path.iterdir())
        damaged = {p.name for p in files if damaged_to_a_build(lab, p, kind, options)}
        assert len(damaged) > len(RECORDS[kind]) // 3
        unproven = damaged | {p.name for p in files if p.read_bytes() == b"[]\n"}
        queries = [f"SELECT {columns} FROM t WHERE a BETWEEN 60 AND 99" for columns in PROJECTIONS]
        lab.check(together([*queries, "SELECT * FROM t WHERE a IS NULL OR a = 10"]))
        lab.check("SELECT * FROM t WHERE a = 21", exactly=1 + len(unproven))
        checked = lab.sql("CHECK SIEVE INDEX ON t")
        stale = {file for _, file, status, _ in checked if status == "stale"}
        assert {Path(file).name for file in stale} == unproven


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.usefixtures("database")
def test_check_and_audit_find_a_damaged_record(lab: Lab, tmp_path: Path, kind: str) -> None:
    """CHECK and audits find later damage of a record, even in a file of the same size and time."""
    write(tmp_path, kind)
    for path in sorted(tmp_path.iterdir())[2:]:
        path.unlink()
    create(lab, tmp_path, kind, {})
    lab.sql("CREATE SIEVE INDEX ON t (a)")
    path = tmp_path / f"01.{kind}"
    good = path.read_bytes()
    bad = good.replace(b'"k":1', b'"k":+') if kind == "json" else good.replace(b"-02,2", b"-02,x")
    assert len(bad) == len(good)
    assert bad != good
    path.write_bytes(bad)
    os.utime(path, (OLD, OLD))
    with pytest.raises(PySparkException, match=r"SIEVE_FALSE_NEGATIVE.*damaged record"):
        lab.sql("CHECK SIEVE INDEX ON t")
    with (
        lab.setting("spark.sieve.audit.sample", "1.0"),
        pytest.raises(PySparkException, match=f"SIEVE_AUDIT_FAILED.*01.{kind}"),
    ):
        lab.run("SELECT a FROM t WHERE a = 10")
    lab.sql("REFRESH SIEVE INDEX ON t FULL")
    lab.check("SELECT * FROM t WHERE a = 10", exactly=2)


@pytest.mark.usefixtures("database")
def test_value_ending_in_an_escaped_backslash_proves_nothing(lab: Lab, tmp_path: Path) -> None:
    """If a CSV value ends in an escaped backslash, queries always read the value's file.

    A query that skips the value would find the record's next values at other positions.
    """
    for number, line in enumerate((b'k,"bb\\\\",,","', b"k,x,y,z", b"k,u,v,w")):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(b"a,b,c,d\n" + line + b"\n")
        os.utime(path, (OLD, OLD))
    lab.sql(
        f"CREATE TABLE t (a STRING, s STRING, n STRING, t STRING) USING csv LOCATION '{tmp_path}'"
    )
    lab.sql("CREATE SIEVE INDEX ON t (n, t)")
    found = lab.check("SELECT n FROM t WHERE n = '\"'", exactly=1)
    assert found.rows == {repr(('"',)): 1}
    lab.check("SELECT t FROM t WHERE t IS NULL")
    lab.check("SELECT n FROM t WHERE n = 'y'", exactly=1 + 1)


@pytest.mark.usefixtures("database")
def test_value_with_a_character_that_escapes_proves_nothing(lab: Lab, tmp_path: Path) -> None:
    """Queries always read a file with a text that contains the table's own escape character."""
    lines = ("k,x^,y", "k,x,y^", "k,x~,y", "k,x,~y", "k,x,y", "k,u,v")
    for number, line in enumerate(lines):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"{line}\n")
        os.utime(path, (OLD, OLD))
    lab.sql(
        f"CREATE TABLE t (a STRING, s STRING, n STRING) USING csv LOCATION '{tmp_path}' "
        "OPTIONS (escape '^', charToEscapeQuoteEscaping '~')"
    )
    lab.sql("CREATE SIEVE INDEX ON t (a, s)")
    for column in ("a", "s"):
        lab.check(f"SELECT {column} FROM t WHERE {column} = 'z'", exactly=4)


@pytest.mark.usefixtures("database")
def test_part_of_a_separator_in_a_value_proves_nothing(lab: Lab, tmp_path: Path) -> None:
    """If a CSV value contains a quote or a part of the separator, queries always read the file.

    A query that skips a value with a quote or a separator part finds different values in the
    record.
    """
    lines = ('1::a"b::"x::y"', "2::a:b::c:", '3::"a\nb"::c', "4::ab::c", "5::::d", '6::""::e')
    for number, line in enumerate(lines):
        path = tmp_path / f"{number}.csv"
        path.write_text(line.replace("\\n", "\n") + "\n")
        os.utime(path, (OLD, OLD))
    lab.sql(
        "CREATE TABLE t (k INT, s STRING, u STRING) USING csv "
        f"OPTIONS (sep '::') LOCATION '{tmp_path}'"
    )
    lab.sql("CREATE SIEVE INDEX ON t (k, s, u)")
    conditions = (
        "k = 4", "u IN ('x::y', 'x', 'y', '\"x::y\"')", "u = 'c'", "s LIKE 'a%'", "s IS NULL",
        "u IS NULL", "s = ''", "u > 'c'",
    )  # fmt: skip
    lab.check(
        together([f"SELECT {c} FROM t WHERE {w}" for w in conditions for c in ("k", "s", "u", "*")])
    )
    proven = [n for n, line in enumerate(lines) if not {'"', ":"} & set(line.replace("::", ""))]
    assert proven == [3, 4]
    lab.check("SELECT k FROM t WHERE k = 9", exactly=len(lines) - len(proven))


@pytest.mark.usefixtures("database")
def test_create_works_if_wide_reads_of_a_file_fail(lab: Lab, tmp_path: Path) -> None:
    """CREATE succeeds even if FAILFAST, a parser policy or a wrong header breaks all queries."""
    write(tmp_path, "csv")
    (tmp_path / "00.csv").write_bytes(b"a,d,n,u\n7,2020-01-01,1,x\n")
    os.utime(tmp_path / "00.csv", (OLD, OLD))
    strict = {"mode": "FAILFAST", "header": "true", "enforceSchema": "false"}
    create(lab, tmp_path, "csv", strict | {"dateFormat": "yyyy-MM-dd"})
    with lab.setting("spark.sql.legacy.timeParserPolicy", "EXCEPTION"):
        lab.sql("CREATE SIEVE INDEX ON t (a)")
        assert lab.facts("a_sieve")["reader"] == "unchanged"
        for enabled in ("true", "false"):
            with lab.setting("spark.sieve.enabled", enabled), pytest.raises(_FAILURES):
                lab.sql("SELECT * FROM t WHERE a = 21")


@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.usefixtures("database")
def test_names_that_a_build_needs_are_refused(lab: Lab, kind: str) -> None:
    """If a column has the name that a build uses for file names, CREATE refuses the table."""
    lab.sql(f"CREATE TABLE t (a INT, __SIEVE_location__ INT) USING {kind}")
    for statement in ("CREATE SIEVE INDEX ON t (a)", "ESTIMATE SIEVE INDEX ON t (a)"):
        with pytest.raises(PySparkException, match=r"UNSUPPORTED_TABLE.*__SIEVE_location__"):
            lab.sql(statement)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("VOID", marks=LONG),
        "STRUCT<x: INT, y: VOID>",
        pytest.param("ARRAY<VOID>", marks=LONG),
    ],
)
@pytest.mark.usefixtures("database")
def test_json_with_a_void_is_refused(lab: Lab, tmp_path: Path, kind: str) -> None:
    """CREATE refuses JSON with a VOID column, as this column changes what other queries read."""
    (tmp_path / "0.json").write_bytes(b'{"a":1,"v":{"y":{"a":7},"a":5}}\n{"v":[{"a":8}],"a":2}\n')
    os.utime(tmp_path / "0.json", (OLD, OLD))
    lab.sql(f"CREATE TABLE t (a INT) USING json LOCATION '{tmp_path}'")
    lab.sql("CREATE SIEVE INDEX ON t (a)")
    lab.check("SELECT * FROM t WHERE a = 3", exactly=0)
    lab.sql(f"ALTER TABLE t ADD COLUMNS (v {kind})")
    assert lab.check("SELECT a FROM t WHERE a = 2", exactly=1).rows == {"(2,)": 1}
    for value in (1, 2, 5, 7, 8):
        lab.check(f"SELECT * FROM t WHERE a = {value}", exactly=1)
    for statement in ("CREATE SIEVE INDEX b ON t (a)", "REFRESH SIEVE INDEX ON t"):
        with pytest.raises(PySparkException, match=r"UNSUPPORTED_TABLE.*VOID"):
            lab.sql(statement)
