"""Attaches the front end to the driver's JVM without side effects on the driver.

Without this module, PySpark would replace the JVM's default session, open a port for accumulators,
and cancel all jobs on SIGINT.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from py4j import protocol
from py4j.java_gateway import JavaClass, JavaObject, JavaPackage, JVMView
from pyspark import SparkConf, SparkContext, accumulators
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession


class _Unstoppable(JavaObject):  # type: ignore[misc]  # py4j has no types
    """The driver's JavaSparkContext. Only the driver may stop this context."""

    def stop(self) -> None:
        """Does nothing: the context belongs to the driver."""


def remember_names() -> None:
    """Makes py4j remember whether a JVM name, such as ``org.apache``, is a package or a class.

    By default, py4j asks the JVM for each part of a name, and for each package that PySpark
    imports. To answer, Java searches every jar of Spark. In a build of few rows, the searches took
    a tenth of the driver's CPU time.
    """

    def remembering(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def found(self: Any, name: str) -> Any:
            it = ask(self, name)
            if isinstance(it, JavaClass | JavaPackage):
                vars(self)[name] = it
            return it

        return found

    for kind in (JVMView, JavaPackage):
        if kind.__getattr__.__module__ != __name__:
            kind.__getattr__ = remembering(kind.__getattr__)


def open_gateway() -> Any:
    """Opens a py4j gateway to the driver. Environment variables supply the port and the secret."""
    remember_names()
    # Removes py4j's converters of numpy values, because the converters import pandas, and this
    # import takes 0.3 s. The front end passes no numpy values to the JVM.
    protocol.INPUT_CONVERTER[:] = [
        one for one in protocol.INPUT_CONVERTER if "Numpy" not in type(one).__name__
    ]
    return launch_gateway()


def attach_context(gateway: Any) -> SparkContext:
    """Wraps the running JavaSparkContext as a PySpark SparkContext.

    Raises:
        Exception: py4j cannot reach the driver, or the JVM raises an error.
    """
    made: list[SparkContext] = []
    errors: list[BaseException] = []

    def make() -> None:
        try:
            made.append(_make_context(gateway))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread below
            errors.append(error)

    # PySpark would install its SIGINT handler if the main thread created the context. So a separate
    # thread creates the context.
    thread = threading.Thread(target=make, name="sieve-attach")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return made[0]


def _make_context(gateway: Any) -> SparkContext:
    java = gateway.entry_point.context()
    context = _Unstoppable(java._target_id, java._gateway_client)
    # Sieve uses no accumulators, so a stub replaces PySpark's accumulator server.
    start = accumulators._start_update_server
    accumulators._start_update_server = lambda *_: SimpleNamespace(
        server_address=("127.0.0.1", 0), shutdown=lambda: None
    )
    try:
        made = SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=java.getConf()))
    finally:
        accumulators._start_update_server = start
    made._javaAccumulator = gateway.entry_point.accumulator()
    # Without an instantiated session, PySpark would replace the JVM's default session.
    SparkSession._instantiatedSession = SimpleNamespace(_sc=made)
    SparkSession._instantiatedSession = wrap_session(made, gateway.entry_point.defaultSession())
    return made


def wrap_session(context: SparkContext, session: Any) -> SparkSession:
    """Wraps one of the driver's sessions as a PySpark session; ``session`` is a py4j object."""
    return SparkSession(context, session)
