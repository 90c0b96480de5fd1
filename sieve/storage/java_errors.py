"""Classifies errors by class, condition, SQLSTATE and stack, not by message.

Messages change between releases. An authorizer can subclass or wrap an exception. Therefore this
module inspects the whole chain of causes, and all superclasses of each exception. No other module
classifies errors by their text.
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
"""Simple class names of the permission errors of Hadoop, Java, Hive and authorizers."""

INSUFFICIENT_PRIVILEGE: Final = "42501"
_PYTHON_ERROR: Final = "PythonException"
_OWN_ERROR: Final = re.compile(r"^sieve\.errors\.\w+: \[(SIEVE_[A-Z_]+)\]", re.MULTILINE)
_UNANSWERED: Final = ("org.apache.thrift.transport.", "java.net.", "java.nio.channels.")


def causes(error: BaseException) -> Iterator[Any]:
    """The Java exception in an error of py4j or PySpark, then the causes, outermost first."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else None
    if cause is None:
        cause = getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def first_line(error: BaseException) -> str:
    """The first line of an error's message, without the stack of a Java exception."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java.toString())
    return text.strip().partition("\n")[0]


def denied(error: BaseException) -> bool:
    """Returns whether an error means that a permission is missing."""
    return any(
        DENIED & set(_simple_names(cause)) or sql_state(cause) == INSUFFICIENT_PRIVILEGE
        for cause in causes(error)
    )


def answered(error: BaseException) -> bool:
    """Returns whether a server replied with an error; False if it did not reply."""
    names = [str(cause.getClass().getName()) for cause in causes(error)]
    return bool(names) and not any(name.startswith(_UNANSWERED) for name in names)


def conditions(error: BaseException | None) -> frozenset[str]:
    """The error conditions of Sieve and Spark in an error and in all causes of the error.

    The result contains only the first part of a condition such as ``FAILED_READ_FILE.NO_HINT``.
    """
    found: set[str] = set()
    while error is not None:
        if isinstance(error, SieveError):
            found.add(error.condition)
        found.update(condition for cause in causes(error) if (condition := _condition(cause)))
        error = error.__cause__
    return frozenset(condition.partition(".")[0] for condition in found)


def worker_conditions(error: BaseException) -> frozenset[str]:
    """The conditions of Sieve errors that Python workers raised.

    The message of Spark's `PythonException` is a worker's traceback, whose last line contains the
    class and the condition. PySpark converts this Java exception to a Python exception of the same
    name that does not carry the Java exception.
    """
    tracebacks = [
        str(cause.getMessage()) for cause in causes(error) if _PYTHON_ERROR in _simple_names(cause)
    ]
    if type(error).__name__ == _PYTHON_ERROR:
        tracebacks.append(str(error))
    return frozenset(chain.from_iterable(map(_OWN_ERROR.findall, tracebacks)))


def raised_in(error: BaseException, java_class: str) -> bool:
    """Returns whether a Java class is on the stack of an exception or of a cause.

    Args:
        error: an error of py4j or PySpark.
        java_class: simple name of the class. Inner and anonymous classes of this class also count.
    """
    return any(
        str(frame.getClassName()).rpartition(".")[2].partition("$")[0] == java_class
        for cause in causes(error)
        for frame in cause.getStackTrace()
    )


def _condition(cause: Any) -> str | None:
    for name in ("getCondition", "getErrorClass"):
        # Spark 3.5 has only getErrorClass. An exception with neither method is not a
        # SparkThrowable.
        with contextlib.suppress(Py4JError, TypeError, AttributeError):
            condition = getattr(cause, name)()
            return None if condition is None else str(condition)
    return None


def sql_state(cause: Any) -> str | None:
    """The SQLSTATE of a Spark exception; None for other exceptions."""
    try:
        state = cause.getSqlState()
    except (Py4JError, TypeError):
        # The exception is not a SparkThrowable.
        return None
    return None if state is None else str(state)


def _simple_names(cause: Any) -> Iterator[str]:
    kind = cause.getClass()
    while kind is not None:
        yield str(kind.getName()).rpartition(".")[2].rpartition("$")[2]
        kind = kind.getSuperclass()
