"""`configure`: gives the builder of a Spark session the settings that `sieve conf` prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from sieve.client.spark_conf import EXTENSIONS, merged, read_properties, user_conf_dir, wiring
from sieve.client.spark_home import find_spark, shim_jar
from sieve.errors import InvalidInputError


class SessionBuilder(Protocol):
    """The part of ``SparkSession.builder`` that `configure` uses."""

    def config(self, key: str, value: str, /) -> Self:
        """Sets a setting and returns the builder."""
        ...


_Builder = TypeVar("_Builder", bound=SessionBuilder)


def configure(builder: _Builder) -> _Builder:
    """Configures a session's builder so that Spark loads Sieve; returns the builder.

    The function keeps the extensions and jars that the builder or ``spark-defaults.conf`` names,
    and appends Sieve's. The function does not change your other settings. Call `configure` after
    you set your own settings and before you call ``getOrCreate()``.

    Args:
        builder: ``SparkSession.builder``, for a Spark driver that starts in this process.

    Raises:
        UnavailableError: no Spark was found.
        UnsupportedError: Sieve has no jar for this version of Spark.
        InvalidInputError: Spark already runs in this process without Sieve, or the builder is for
            Spark Connect. With Spark Connect, the server must load Sieve.
    """
    # A builder has no public method that returns its settings.
    given: Mapping[str, Any] = getattr(builder, "_options", {})
    if "spark.remote" in given:
        raise InvalidInputError(
            "SIEVE_REMOTE_SESSION",
            "A session of Spark Connect uses the Sieve of its server: start the server with the "
            "lines of `sieve conf`, and do not call sieve.configure().",
        )
    spark = find_spark(os.environ)
    jar = shim_jar(spark)
    _refuse_started_spark(jar)
    defaults = user_conf_dir(spark, os.environ) / "spark-defaults.conf"
    user = read_properties(defaults) if defaults.exists() else {}
    user |= {key: str(value) for key, value in given.items()}
    for key, value in merged(wiring(jar), user).items():
        builder = builder.config(key, value)
    return builder


def _refuse_started_spark(jar: Path) -> None:
    """Raises an error if Spark already runs without Sieve; a running Spark loads no extensions."""
    pyspark = sys.modules.get("pyspark")
    gateway = getattr(getattr(pyspark, "SparkContext", None), "_gateway", None)
    if gateway is None:
        return
    class_path = gateway.jvm.java.lang.System.getProperty("java.class.path")
    session = sys.modules["pyspark.sql"].SparkSession.getActiveSession()
    loaded = session is None or EXTENSIONS in session.conf.get("spark.sql.extensions", "")
    if not loaded or str(jar) not in class_path.split(os.pathsep):
        raise InvalidInputError(
            "SIEVE_SPARK_STARTED",
            "Spark already runs in this process, without Sieve. Restart the process (in a "
            "notebook: the kernel) and call sieve.configure() before the first session; or add "
            "the lines of `sieve conf` to spark-defaults.conf.",
        )
