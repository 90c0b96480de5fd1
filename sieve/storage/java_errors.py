"""Classifies errors by class, condition, SQLSTATE and stack trace, not by message.

Messages change between releases of Spark and Hadoop. An authorizer plug-in can throw a subclass of
a known exception, or an exception whose cause is a known exception. Therefore this module inspects
all causes of an error, and all superclasses of each cause. Only `worker_conditions` recognises a
kind of error by its text.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from sieve.errors import SieveError

DENIED: Final = frozenset(
    {
        "AccessControlException",
        "AccessDeniedException",
        "AuthorizationException",
        "HiveAccessControlException",
    }
)
"""The simple class names of permission errors in Hadoop, Java, Hive and authorizer plug-ins."""

INSUFFICIENT_PRIVILEGE: Final = "42501"
_PYTHON_ERROR: Final = "PythonException"
_OWN_ERROR: Final = re.compile(r"^sieve\.errors\.\w+: \[(SIEVE_[A-Z_]+)\]", re.MULTILINE)
_UNANSWERED: Final = ("org.apache.thrift.transport.", "java.net.", "java.nio.channels.")


def causes(error: BaseException) -> Iterator[Any]:
    """Yields the Java exception in a py4j or PySpark error, then its causes, outermost first."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else None
    if cause is None:
        cause = getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, without any stack trace."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java.toString())
    return text.strip().partition("\n")[0]


def denied(error: BaseException) -> bool:
    """Returns whether an error was raised because the user lacks a permission."""
    return any(
        DENIED & set(_simple_names(cause)) or sql_state(cause) == INSUFFICIENT_PRIVILEGE
        for cause in causes(error)
    )


def answered(error: BaseException) -> bool:
    """Returns whether the error came from a server's reply; False if no server replied."""
    names = [str(cause.getClass().getName()) for cause in causes(error)]
    return bool(names) and not any(name.startswith(_UNANSWERED) for name in names)


def conditions(error: BaseException | None) -> frozenset[str]:
    """Returns the error conditions of Sieve and Spark in an error and in all its causes.

    If a condition has several parts, such as ``FAILED_READ_FILE.NO_HINT``, the result contains only
    the first part, here ``FAILED_READ_FILE``.
    """
    found: set[str] = set()
    while error is not None:
        if isinstance(error, SieveError):
            found.add(error.condition)
        found.update(condition for cause in causes(error) if (condition := _condition(cause)))
        error = error.__cause__
    return frozenset(condition.partition(".")[0] for condition in found)


def worker_conditions(error: BaseException) -> frozenset[str]:
    """Returns the conditions of Sieve errors that were raised in Spark's Python workers.

    The message of Spark's Java exception `PythonException` is the worker's traceback; its last line
    contains the class and the condition of the error. PySpark converts the Java exception to a
    Python exception of the same name. The Python exception has the same message, but no reference
    to the Java exception.
    """
    tracebacks = [
        str(cause.getMessage()) for cause in causes(error) if _PYTHON_ERROR in _simple_names(cause)
    ]
    if type(error).__name__ == _PYTHON_ERROR:
        tracebacks.append(str(error))
    return frozenset(chain.from_iterable(map(_OWN_ERROR.findall, tracebacks)))


def raised_in(error: BaseException, java_class: str) -> bool:
    """Returns whether a Java class is in the stack trace of an exception or of one of its causes.

    Args:
        error: an error of py4j or PySpark.
        java_class: the simple name of the class. Its inner and anonymous classes also count.
    """
    return any(
        str(frame.getClassName()).rpartition(".")[2].partition("$")[0] == java_class
        for cause in causes(error)
        for frame in cause.getStackTrace()
    )


def _condition(cause: Any) -> str | None:
    for name in ("getCondition", "getErrorClass"):
        # In Spark 3.5, a SparkThrowable has getErrorClass instead of getCondition. An exception
        # with neither method is not a SparkThrowable, so it has no condition.
        with contextlib.suppress(Py4JError, TypeError, AttributeError):
            condition = getattr(cause, name)()
            return None if condition is None else str(condition)
    return None


def sql_state(cause: Any) -> str | None:
    """Returns the SQLSTATE of a Spark exception; None for any other exception."""
    try:
        state = cause.getSqlState()
    except (Py4JError, TypeError):
        # An exception without getSqlState is not a SparkThrowable.
        return None
    return None if state is None else str(state)


def _simple_names(cause: Any) -> Iterator[str]:
    kind = cause.getClass()
    while kind is not None:
        yield str(kind.getName()).rpartition(".")[2].rpartition("$")[2]
        kind = kind.getSuperclass()
