"""Tests error reports to clients: condition, SQLSTATE, message, and missing permissions."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from sieve.errors import DeniedError, SieveError, UnavailableError
from sieve.tables.table import CatalogTable
from sql_ext.frontend.sql_states import OF_CONDITION, sql_state_of
from sql_ext.frontend.translate_error import translate_error

CODE = Path(__file__).parents[3]


class Java:
    """Stands in for a Java exception in py4j: class, superclasses, state and cause."""

    def __init__(
        self,
        *classes: str,
        state: str | None = None,
        cause: Java | None = None,
        condition: str | None = None,
    ) -> None:
        self._classes, self._state, self._cause = classes, state, cause
        self._condition = condition

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        above: Any = None
        for name in reversed(self._classes):
            above = SimpleNamespace(getName=lambda n=name: n, getSuperclass=lambda a=above: a)
        return above

    def getCause(self) -> Java | None:  # noqa: N802 - Java's name
        return self._cause

    def getCondition(self) -> str | None:  # noqa: N802 - Spark's name
        if self._condition is None:
            raise TypeError
        return self._condition

    def getSqlState(self) -> str | None:  # noqa: N802 - Spark's name
        if self._state is None:
            raise TypeError
        return self._state


def spark_error(java: Java) -> PySparkException:
    """Returns the PySpark exception that wraps a Java exception."""
    error = PySparkException("refused: inode=/warehouse/t")
    error._origin = java  # type: ignore[attr-defined]
    return error


HADOOP = "org.apache.hadoop.security.AccessControlException"
RANGER = "org.apache.ranger.authorization.hadoop.exceptions.RangerAccessControlException"


@pytest.mark.parametrize(
    "java",
    [
        Java("org.apache.spark.SparkException", state="XX000", cause=Java(HADOOP)),
        Java(RANGER, HADOOP, "java.io.IOException"),
        Java("java.nio.file.AccessDeniedException"),
        Java("org.apache.spark.SomeException", state="42501"),
    ],
)
def test_missing_permission_is_found_by_exception_type(java: Java) -> None:
    """An error means a missing permission if any Java cause means a missing permission."""
    report = translate_error(spark_error(java))
    assert (report.condition, report.sql_state) == ("SIEVE_PERMISSION_DENIED", "42501")
    assert "inode=/warehouse/t" in report.message


def test_errors_of_spark_keep_their_state() -> None:
    """An error of Spark keeps its message and its SQLSTATE; without an SQLSTATE, it gets HY000."""
    parse = Java("org.apache.spark.sql.catalyst.parser.ParseException", state="42601")
    assert translate_error(spark_error(parse)).sql_state == "42601"
    other = translate_error(spark_error(Java("java.io.IOException")))
    assert (other.condition, other.sql_state) == ("SIEVE_SPARK_ERROR", "HY000")
    assert translate_error(ValueError("x")).sql_state == "XX000"


def test_cancelled_job_cancels_the_statement() -> None:
    """If a user cancels a statement's Spark job, the error's condition is SIEVE_CANCELLED."""
    job = Java("org.apache.spark.SparkException", state="XXKDA", condition="SPARK_JOB_CANCELLED")
    report = translate_error(spark_error(Java("java.lang.RuntimeException", cause=job)))
    assert (report.condition, report.sql_state) == ("SIEVE_CANCELLED", "HY008")
    other = Java("org.apache.spark.SparkException", state="XX000", condition="INTERNAL_ERROR")
    assert translate_error(spark_error(other)).condition == "SIEVE_SPARK_ERROR"


@pytest.mark.parametrize(
    ("java", "kind", "condition"),
    [
        (Java("org.apache.hadoop.hive.ql.metadata.HiveException", cause=Java(HADOOP)),
         DeniedError, "SIEVE_PERMISSION_DENIED"),
        (Java("org.apache.hadoop.hive.metastore.api.InvalidOperationException"),
         UnavailableError, "SIEVE_METASTORE_REFUSED"),
        (Java("org.apache.hadoop.hive.ql.metadata.HiveException",
              cause=Java("org.apache.thrift.transport.TTransportException")),
         UnavailableError, "SIEVE_METASTORE_UNAVAILABLE"),
    ],
)  # fmt: skip
def test_denied_metastore_differs_from_an_unavailable_one(
    java: Java, kind: type[SieveError], condition: str
) -> None:
    """The metastore's error distinguishes a missing permission from an unavailable server."""

    def publish() -> str:
        raise spark_error(java)

    table = object.__new__(CatalogTable)
    table._access = SimpleNamespace(publish=publish)
    table.info = SimpleNamespace(label="shop.t")  # type: ignore[assignment]
    with pytest.raises(kind) as refused:
        table.refresh_registry()
    assert refused.value.condition == condition
    assert "inode=/warehouse/t" in str(refused.value)
    assert sql_state_of(refused.value) == {"UNAVAILABLE": "08006"}.get(
        condition.rpartition("_")[2], "42501"
    )


def test_every_condition_with_a_sqlstate_exists() -> None:
    """The code raises each error condition that has an SQLSTATE."""
    raised = set()
    for folder in ("sieve", "sql_ext", "udfs"):
        for path in (CODE / folder).rglob("*"):
            if path.suffix in {".py", ".scala"} and path.name != "sql_states.py":
                raised |= set(re.findall(r'"(SIEVE_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert set(OF_CONDITION) <= raised
    assert all(re.fullmatch(r"[0-9A-Z]{5}", state) for state in OF_CONDITION.values())
