"""The exceptions with which a call of the JVM can fail."""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

FAILURES: Final = (Py4JError, PySparkException)
"""Exceptions of JVM calls. PySpark converts only some Java exceptions to exceptions of its own."""
