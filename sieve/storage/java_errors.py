"""Classifies Java exceptions by class and SQLSTATE, never by their message.

Messages change between releases. An authorizer may subclass or wrap an exception, so the whole
chain of causes and each class's superclasses count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

DENIED: Final = frozenset(
    {
        "AccessControlException",
        "AccessDeniedException",
        "AuthorizationException",
        "HiveAccessControlException",
    }
)
"""Simple class names of permission errors of Hadoop, Java, Hive and authorizers."""

INSUFFICIENT_PRIVILEGE: Final = "42501"
_UNANSWERED: Final = ("org.apache.thrift.transport.", "java.net.", "java.nio.channels.")


def causes(error: BaseException) -> Iterator[Any]:
    """The Java exception behind an error of py4j or PySpark, and its causes, outermost first."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else None
    if cause is None:
        cause = getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def denied(error: BaseException) -> bool:
    """Whether an error means that a permission is missing."""
    return any(
        DENIED & set(_simple_names(cause)) or sql_state(cause) == INSUFFICIENT_PRIVILEGE
        for cause in causes(error)
    )


def answered(error: BaseException) -> bool:
    """Whether a server replied with an error; False if it did not reply."""
    names = [str(cause.getClass().getName()) for cause in causes(error)]
    return bool(names) and not any(name.startswith(_UNANSWERED) for name in names)


def sql_state(cause: Any) -> str | None:
    """The SQLSTATE of one of Spark's own exceptions; None for others."""
    try:
        state = cause.getSqlState()
    except (Py4JError, TypeError):
        # The exception is not a SparkThrowable.
        return None
    return None if state is None else str(state)


def condition_of(error: BaseException) -> str | None:
    """The error class of one of Spark's own exceptions; None for others."""
    for cause in causes(error):
        try:
            condition = cause.getErrorClass()
        except (Py4JError, TypeError):
            # It is no SparkThrowable.
            continue
        if condition is not None:
            return str(condition)
    return None


def _simple_names(cause: Any) -> Iterator[str]:
    kind = cause.getClass()
    while kind is not None:
        yield str(kind.getName()).rpartition(".")[2].rpartition("$")[2]
        kind = kind.getSuperclass()
