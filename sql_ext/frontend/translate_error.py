"""Error reports: translates each exception into the condition, message and SQLSTATE for users.

For a Sieve error, the report contains the error's own condition. For an exception of Spark or the
JVM, the report contains the exception's message. If an exception's class or SQLSTATE means a
missing permission, the condition is ``SIEVE_PERMISSION_DENIED``. If a user cancelled the
statement's Spark job, the condition is ``SIEVE_CANCELLED``. For any other exception, the condition
is ``SIEVE_INTERNAL_ERROR``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from sieve.errors import SieveError
from sieve.storage.java_errors import (
    INSUFFICIENT_PRIVILEGE,
    causes,
    conditions,
    denied,
    sql_state,
)
from sql_ext.frontend import sql_states

INTERNAL: Final = "SIEVE_INTERNAL_ERROR"
_CANCELLED: Final = "SIEVE_CANCELLED"
_SPARK: Final = "SIEVE_SPARK_ERROR"
_DENIED: Final = "SIEVE_PERMISSION_DENIED"
_GENERAL: Final = "HY000"


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The error that the front end reports to the client.

    Attributes:
        condition: error class, such as ``SIEVE_UNKNOWN_INDEX``.
        message: text without the error class.
        sql_state: SQLSTATE, five characters.
    """

    condition: str
    message: str
    sql_state: str


def translate_error(error: Exception) -> ErrorReport:
    """The report for an error of Sieve, of Spark, or of unknown origin (an internal error)."""
    match error:
        case SieveError():
            return ErrorReport(error.condition, error.message, sql_states.sql_state_of(error))
        case Py4JJavaError():
            return _spark_error(error, _java_cause(error))
        case PySparkException():
            return _spark_error(error, str(error), error.getErrorClass())
        case _:
            return ErrorReport(INTERNAL, f"{type(error).__name__}: {error}", sql_states.INTERNAL)


def _spark_error(error: Exception, text: str, condition: str | None = None) -> ErrorReport:
    """The report for an error of the shim, a missing permission, or another error of Spark."""
    states = (sql_state(cause) for cause in causes(error))
    state = next((state for state in states if state is not None), _GENERAL)
    if condition is not None and condition.startswith("SIEVE_"):
        return ErrorReport(condition, text.removeprefix(f"[{condition}] "), state)
    if denied(error):
        return ErrorReport(_DENIED, text, INSUFFICIENT_PRIVILEGE)
    if "SPARK_JOB_CANCELLED" in conditions(error):
        return ErrorReport(_CANCELLED, text, sql_states.OF_CONDITION[_CANCELLED])
    return ErrorReport(_SPARK, text, state)


def _java_cause(error: Py4JJavaError) -> str:
    """The JVM exception's message, which names the file or table.

    The function appends the root cause's message if the exception's message does not contain it.
    """
    cause = error.java_exception
    text = str(cause.getMessage() or cause.toString())
    deepest = cause
    while deepest.getCause() is not None:
        deepest = deepest.getCause()
    if (
        deepest is not cause
        and (root := str(deepest.getMessage() or deepest.toString())) not in text
    ):
        text = f"{text} ({root})"
    return text
