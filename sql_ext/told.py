"""How users are told of an error, wherever it comes from."""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from sieve.errors import SieveError

INTERNAL: Final = "SIEVE_INTERNAL_ERROR"
_SPARK: Final = "SIEVE_SPARK_ERROR"


def told(error: Exception) -> tuple[str, str]:
    """Condition and text of an error: our own, Spark's in Spark's words, or the last resort."""
    match error:
        case SieveError():
            return error.condition, error.message
        case Py4JJavaError():
            return _SPARK, _java_cause(error)
        case PySparkException():
            return _spark_error(error)
        case _:
            return INTERNAL, f"{type(error).__name__}: {error}"


def _spark_error(error: PySparkException) -> tuple[str, str]:
    """Of an error that PySpark has translated: our own shim's, or Spark's."""
    condition, text = error.getErrorClass(), str(error)
    if condition is not None and condition.startswith("SIEVE_"):
        return condition, text.removeprefix(f"[{condition}] ")
    return _SPARK, text


def _java_cause(error: Py4JJavaError) -> str:
    """Spark's own words, which name the file or table."""
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
