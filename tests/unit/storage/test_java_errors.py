"""Tests that Sieve classifies Java errors by class, condition and stack, not by message."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, PythonException

from sieve.errors import ConflictError, UnavailableError
from sieve.storage.java_errors import answered, conditions, denied, raised_in, worker_conditions

CODE = Path(__file__).parents[3]


class Java:
    """Stands in for a Java exception in py4j."""

    def __init__(
        self,
        name: str = "java.lang.RuntimeException",
        message: str | None = None,
        stack: tuple[str, ...] = (),
        cause: Java | None = None,
        **told: str | None,
    ) -> None:
        self._name, self._message, self._stack, self._cause = name, message, stack, cause
        self._told = told

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        return SimpleNamespace(getName=lambda: self._name, getSuperclass=lambda: None)

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> Java | None:  # noqa: N802 - Java's name
        return self._cause

    def getStackTrace(self) -> list[Any]:  # noqa: N802 - Java's name
        return [SimpleNamespace(getClassName=lambda n=name: n) for name in self._stack]

    def __getattr__(self, name: str) -> Any:
        def call() -> str | None:
            if name not in self._told:
                raise Py4JError(f"Method {name}([]) does not exist")
            return self._told[name]

        return call


def spark_error(java: Java, text: str = "[SIEVE_INDEX_DROPPED] said by the way") -> Exception:
    """Returns the PySpark exception that wraps a Java exception."""
    error = PySparkException(text)
    error._origin = java  # type: ignore[attr-defined]
    return error


def test_conditions_include_those_of_all_causes() -> None:
    """`conditions` collects an error's conditions from all its causes, in Java and in Python.

    Conditions that occur only in a message do not count.
    """
    inner = Java(cause=Java(getErrorClass="FAILED_READ_FILE.NO_HINT"), getCondition=None)
    outer = Java(getCondition="TABLE_OR_VIEW_NOT_FOUND", cause=inner)
    error = ConflictError("SIEVE_TABLE_MOVED", "[SIEVE_OTHER] in words")
    error.__cause__ = UnavailableError("SIEVE_METASTORE_REFUSED", "no")
    error.__cause__.__cause__ = spark_error(outer)
    assert conditions(error) == {
        "SIEVE_TABLE_MOVED",
        "SIEVE_METASTORE_REFUSED",
        "TABLE_OR_VIEW_NOT_FOUND",
        "FAILED_READ_FILE",
    }
    assert conditions(ValueError("[SIEVE_TABLE_MOVED]")) == frozenset()


TRACEBACK = """Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise UnavailableError("SIEVE_NOT_RAISED", "x")
sieve.errors.UnavailableError: [SIEVE_ROOT_NOT_SHARED] h cannot see file:/r
"""


def test_condition_of_a_worker_is_in_the_last_line() -> None:
    """The last line of a Python worker's traceback names the condition, in any cause."""
    python = Java("org.apache.spark.api.python.PythonException", TRACEBACK)
    job = Java("org.apache.spark.SparkException", "Job aborted due to " + TRACEBACK, cause=python)
    assert worker_conditions(spark_error(job)) == {"SIEVE_ROOT_NOT_SHARED"}
    assert worker_conditions(PythonException(TRACEBACK)) == {"SIEVE_ROOT_NOT_SHARED"}
    other = Java("org.apache.spark.SparkException", TRACEBACK)
    assert worker_conditions(spark_error(other, TRACEBACK)) == frozenset()


def test_raised_in_finds_a_class_on_the_stack_of_a_cause() -> None:
    """`raised_in` finds a class, or a class nested in it, on the stack of any cause.

    `raised_in` ignores a class whose name only begins with the same text.
    """
    reader = "org.apache.spark.sql.execution.datasources.FileScanRDD$$anon$1"
    failed = Java("java.io.IOException", stack=("java.io.File", reader))
    assert raised_in(spark_error(Java(cause=failed)), "FileScanRDD")
    assert not raised_in(spark_error(Java(cause=failed)), "FileScan")
    assert not raised_in(spark_error(Java("x.SparkException", "in FileScanRDD")), "FileScanRDD")


def test_only_one_check_searches_the_message_of_an_error() -> None:
    """Only one place in the code searches an error's message, to find the name of a file."""
    search = re.compile(r"\bin (str\((error|failure|failed)\)|(error|failed)\.(message|args))")
    for folder in ("sieve", "sql_ext", "udfs"):
        for path in (CODE / folder).rglob("*.py"):
            assert not search.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("name", ["Aaa", "PythonException", "PythonExceptionX", "Zzz"])
def test_only_errors_of_workers_are_searched_for_conditions(name: str) -> None:
    """Other errors can quote a condition, so the search covers only errors of Python workers."""
    kind = type(name, (Exception,), {})
    error = kind("Traceback\nsieve.errors.ConflictError: [SIEVE_INDEX_DROPPED] dropped")
    found = {"SIEVE_INDEX_DROPPED"} if name == "PythonException" else set()
    assert worker_conditions(error) == found


@pytest.mark.parametrize(
    ("name", "state", "is_denied"),
    [
        ("org.apache.hadoop.security.AccessControlException", None, True),
        ("java.nio.file.AccessDeniedException", None, True),
        ("org.apache.hadoop.security.authorize.AuthorizationException", None, True),
        ("org.apache.Outer$HiveAccessControlException", None, True),
        ("org.apache.NotAccessControlExceptions", None, False),
        ("org.apache.spark.SparkException", "42501", True),
        ("org.apache.spark.SparkException", "42502", False),
    ],
)
def test_missing_permission_is_found_by_class_or_state(
    name: str, state: str | None, is_denied: bool
) -> None:
    """A missing permission is recognised by the class or the SQLSTATE of any cause."""
    told = {} if state is None else {"getSqlState": state}
    assert denied(spark_error(Java(cause=Java(name, **told)))) == is_denied
    assert not denied(ValueError("AccessControlException"))


@pytest.mark.parametrize(
    ("names", "replied"),
    [
        (["org.apache.hadoop.hive.metastore.api.MetaException"], True),
        (["java.lang.RuntimeException", "org.apache.thrift.transport.TTransportException"], False),
        (["java.net.ConnectException"], False),
        (["java.nio.channels.ClosedChannelException"], False),
        (["java.nio.file.NoSuchFileException"], True),
    ],
)
def test_java_error_proves_a_reply_unless_connection_failed(
    names: list[str], replied: bool
) -> None:
    """An error in Java means that the server has replied, unless the connection failed."""
    java = None
    for name in reversed(names):
        java = Java(name, cause=java)
    assert java is not None
    assert answered(spark_error(java)) == replied
    assert not answered(ValueError("x"))
