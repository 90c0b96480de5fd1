"""Writes an event log of a part of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_session import Lab


@contextmanager
def logged(lab: Lab, folder: Path, **settings: str) -> Iterator[None]:
    """Logs Spark's events during the block, with the given `spark.eventLog` settings."""
    jvm = lab.spark._jvm
    scala = lab.spark.sparkContext._jsc.sc()
    conf = jvm.org.apache.spark.SparkConf(False)
    for key, value in settings.items():
        conf.set(f"spark.eventLog.{key.replace('_', '.')}", value)
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app-1", jvm.scala.Option.empty(), jvm.java.net.URI(folder.as_uri()), conf
    )
    listener.start()
    scala.addSparkListener(listener)
    try:
        yield
    finally:
        scala.listenerBus().waitUntilEmpty()
        scala.removeSparkListener(listener)
        listener.stop()
