"""Each function of Spark either works as the key of an index, or CREATE refuses it as a key.

For each function, `functions_as_keys.txt` lists calls that an index accepts, or the reason for a
refusal.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from functions_of_spark import examples, names
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark_session import INTERPRETED, Lab, together

from sieve.client.spark_home import find_spark

LIST = Path(__file__).parent / "functions_as_keys.txt"
FILES = 8
BATCH = 12
"""The number of indexes that the table has at once."""
LONG = 2_000
"""The maximum length of a value in a predicate, in characters."""
SAMPLE = 2
"""The number of calls that `make test` tests; a test with the mark `long` tests all calls."""
SETTINGS = INTERPRETED | {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/St_Johns",
}
TEXTS = (
    "Alpha", "beta ", " 12", "2024-02-29 01:30:00", '{"a":1,"b":[1,2]}', "https://x.org/p?q=1", "",
    "ünï", "a,b,c", "1.5", "true", "SGVsbG8=", "%41", "<a><b>1</b></a>", "10011", "Zulu",
)  # fmt: skip
COLUMNS = {
    "s": f"IF(id % 7 = 3, NULL, element_at(array{TEXTS!r}, CAST(1 + id % {len(TEXTS)} AS INT)))",
    "i": "CAST(IF(id % 9 = 4, NULL, id - 5) AS INT)",
    "l": "id * 1000003",
    "f": "IF(id = 6, double('NaN'), IF(id = 7, -0.0D, (id - 10) / 4D))",
    "x": "CAST((id - 9) / 2 AS DECIMAL(9, 2))",
    "d": "date_add(DATE '2024-02-20', CAST(id * 5 AS INT))",
    "ts": "timestamp_seconds(1709173800 + id * 100000)",
    "n": "CAST(timestamp_seconds(1709173800 + id * 100000) AS TIMESTAMP_NTZ)",
    "b": "CAST(concat('b', id) AS BINARY)",
    "flag": "IF(id % 5 = 2, NULL, id % 3 = 0)",
    "a": "IF(id % 6 = 5, NULL, array(CAST(id % 4 AS INT), NULL, CAST(id AS INT)))",
    "texts": "array(string(id % 3), 'x')",
    "m": "map('k', string(id), 'j', NULL)",
}
KINDS = ("int", "bigint", "smallint", "tinyint", "float", "double", "decimal", "date", "timestamp",
         "string", "binary", "boolean")  # fmt: skip
"""The types that a key can have."""

REWRITTEN = {"nullif", "nullifzero"}
"""For these functions, Spark replaces a comparison of the result by a comparison of the argument.

Spark also adds a condition.
"""


@pytest.fixture(scope="module", autouse=True)
def table(lab: Lab) -> Iterator[None]:
    """A table `t` with a column of each type; any two files have different values."""
    if not find_spark(os.environ).version.startswith("4.1"):
        pytest.skip("the list is that of Spark 4.1")
    with lab.settings(SETTINGS), lab.database("functions"):
        columns = ", ".join(f"{sql} AS {name}" for name, sql in COLUMNS.items())
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, {columns} FROM range(0, 32, 1, {FILES})"
        )
        yield


def test_every_function_of_spark_is_listed(lab: Lab) -> None:
    """The list contains every function of Spark.

    If a new release adds a function of Spark, this test fails.
    """
    assert {line.partition(": ")[0] for line in _lines()} == set(names(lab))


@pytest.mark.long
def test_list_has_the_calls_that_an_index_accepts(lab: Lab, request: pytest.FixtureRequest) -> None:
    """For each function, the list has up to three accepted calls, or the reason for a refusal."""
    lines = [_line(lab, name) for name in names(lab)]
    if request.config.getoption("--regenerate"):
        LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert _lines() == lines


def test_a_sample_of_functions_serves_queries(lab: Lab) -> None:
    """Random calls work as keys: an index on a call serves queries for this call.

    A failure prints the seed.
    """
    seed = random.randrange(1 << 32)
    drawn = random.Random(seed).sample(_accepted(), SAMPLE)
    faults = list(itertools.chain(*(_faults(lab, calls) for calls in _batches(drawn))))
    assert not faults, f"seed {seed}: " + "\n".join(faults)


@pytest.mark.long
def test_every_function_serves_queries(lab: Lab) -> None:
    """Each listed call works as a key: an index on the call serves queries, and changes no rows."""
    faults = list(itertools.chain(*(_faults(lab, calls) for calls in _batches(_accepted()))))
    assert not faults, "\n".join(faults)


def _lines() -> list[str]:
    return LIST.read_text(encoding="utf-8").splitlines()


def _accepted() -> list[str]:
    """The listed calls. These calls have indexable types, and raise no error."""
    lists = [line.partition(": ")[2] for line in _lines()]
    return [call for line in lists if line.startswith("[") for call in json.loads(line)]


def _batches(calls: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(calls), BATCH):
        yield calls[at : at + BATCH]


def _line(lab: Lab, name: str) -> str:
    """The list's line for a function: up to three calls, each on another column, or reasons."""
    found: dict[str, str] = {}
    reasons: list[str] = []
    for column, call in _calls(lab, name):
        if column in found or len(found) == 3:
            continue
        defined = _defined(lab, call)
        if "key" not in defined:
            reasons.append(defined.get("refused", "it is a column"))
        elif _has_key(lab, call):
            found[column] = call
        else:
            reasons.append("it has a type that is no key's, or it raises an error")
    if found:
        return f"{name}: {json.dumps(list(found.values()), ensure_ascii=False)}"
    own = [reason for reason in reasons if reason.startswith("it")]
    return f"{name}: {own[0] if own else 'no call of the examples has a column of the table'}"


def _calls(lab: Lab, name: str) -> Iterator[tuple[str, str]]:
    """Calls from a function's examples; in each call, a column replaces one argument."""
    for arguments in itertools.islice(examples(lab, name), 2):
        for at in range(len(arguments)):
            for column in COLUMNS:
                texts = [*arguments[:at], column, *arguments[at + 1 :]]
                yield column, f"{name}({', '.join(texts)})"
        if not arguments:
            yield "", f"{name}()"


def _defined(lab: Lab, call: str) -> dict[str, Any]:
    tables = lab.spark._jvm.org.apache.spark.sql.sieve.statements.Tables
    try:
        handle = tables.resolve(lab.spark._jsparkSession, ["functions", "t"])
        found: dict[str, Any] = json.loads(handle.define(call, ""))
    except Py4JJavaError as error:
        return {"refused": f"[{error.java_exception.getClass().getSimpleName()}]"}
    return found


def _has_key(lab: Lab, call: str) -> bool:
    """Returns whether a call has an indexable type and raises no error for any row of the table."""
    try:
        kind = _kind(lab, call)
        lab.sql(f"SELECT sum(hash({call})) FROM t")
    except (PySparkException, Py4JJavaError):
        return False
    return kind.partition("(")[0] in KINDS


def _kind(lab: Lab, call: str) -> str:
    return lab.spark.sql(f"SELECT {call} FROM t").dtypes[0][1]


def _faults(lab: Lab, calls: Sequence[str]) -> Iterator[str]:
    """Calls whose queries return wrong rows, or read all files even though an index could help."""
    names_ = [f"of_{k}" for k in range(len(calls))]
    for name, call in zip(names_, calls, strict=True):
        lab.sql(f"CREATE SIEVE INDEX {name} ON t ({call})")
    try:
        for call in calls:
            yield from _faults_of(lab, call)
    finally:
        for name in names_:
            lab.sql(f"DROP SIEVE INDEX {name} ON t")


def _faults_of(lab: Lab, call: str) -> Iterator[str]:
    kind = _kind(lab, call)
    shown = f"hex({call})" if kind in ("string", "binary") else f"CAST({call} AS STRING)"
    # Several copies of a long text, such as `space(l)`, would not fit into the driver's memory.
    short = f"SELECT IF(length({shown}) < {LONG}, {shown}, NULL) FROM t ORDER BY id"
    values = [row[0] for row in lab.sql(short)]
    present = [value for value in values if value is not None]
    literals = [_literal(value, kind) for value in present]
    predicates = [f"{call} IS NULL", f"NOT ({call} IS NULL)"]
    for value in (*literals[:1], *literals[-2:-1]):
        predicates += [f"{call} {op} {value}" for op in ("=", "<=>", "<", ">=", "!=")]
        predicates += [f"{call} IN ({value}, {literals[0]})", f"NOT {call} = {value} OR id = 3"]
    query = together(f"SELECT id FROM t WHERE {predicate}" for predicate in predicates)
    with lab.setting("spark.sieve.enabled", "false"):
        off = lab.run(query)
    if lab.run(query).rows != off.rows:
        yield f"{call}: other rows"
    at = [values[k * 4 : k * 4 + 4] for k in range(FILES)]
    if call.partition("(")[0] in REWRITTEN:
        return
    if present and sum(present[0] in file for file in at) < FILES == _files(lab, call, literals[0]):
        yield f"{call}: not used"


def _files(lab: Lab, call: str, value: str) -> int:
    return lab.run(f"SELECT id FROM t WHERE {call} = {value}").files


def _literal(shown: str, kind: str) -> str:
    """A literal that Spark reads as the given value."""
    if kind == "binary":
        return f"X'{shown}'"
    if kind == "string":
        return f"CAST(X'{shown}' AS STRING)"
    return f"CAST('{shown}' AS {kind})"
