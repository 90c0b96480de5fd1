"""Finds the Spark installation, and the shim jar for this version of Spark.

``sieve-spark-3.5_2.12.jar``, for example, is for Spark 3.5 and Scala 2.12.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sieve.errors import InvalidInputError, UnavailableError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Both the wheel and a checkout have the jars in this folder, which contains no Python code.
JARS: Final = Path(__file__).resolve().parents[2] / "sql_ext" / "jars"


@dataclass(frozen=True, slots=True)
class SparkHome:
    """One Spark installation.

    Attributes:
        path: the installation's folder, with ``bin`` and ``jars``.
        version: full version of Spark, such as ``4.1.4``.
        scala: binary version of the Scala library in the installation, such as ``2.13``.
    """

    path: Path
    version: str
    scala: str

    @property
    def line(self) -> str:
        """The major and minor version of Spark, such as ``4.1``.

        Sieve has a shim jar for each supported major and minor version.
        """
        return ".".join(self.version.split(".")[:2])


def find_spark(environ: Mapping[str, str]) -> SparkHome:
    """Finds the Spark at ``SPARK_HOME``, or the package ``pyspark`` if the variable is not set.

    Raises:
        UnavailableError: ``SPARK_HOME`` is not set, and ``pyspark`` is not installed.
        InvalidInputError: ``SPARK_HOME`` is not a Spark installation.
    """
    if home := environ.get("SPARK_HOME"):
        return inspect(Path(home).absolute())
    # Finds PySpark without importing it, because the import takes longer than the rest of the
    # launcher.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(
            "SIEVE_NO_SPARK",
            "No Spark was found. Install one beside Sieve (pip install pyspark==4.1.4) or set "
            "SPARK_HOME to the folder of yours.",
        )
    return inspect(Path(spec.submodule_search_locations[0]))


def inspect(home: Path) -> SparkHome:
    """Reads the versions of Spark and Scala from the name of Spark's core jar."""
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        if match := re.fullmatch(r"spark-core_(\d+\.\d+)-(\d+\.\d+\..+)\.jar", jar.name):
            return SparkHome(home, version=match[2], scala=match[1])
    raise InvalidInputError(
        "SIEVE_NO_SPARK",
        f"SPARK_HOME is {home}, which is no Spark installation: it has no jars/spark-core_*.jar.",
    )


def shim_jar(spark: SparkHome, jars: Path = JARS) -> Path:
    """The path of the jar that contains Sieve's classes for a Spark installation.

    Raises:
        UnsupportedError: Sieve has no jar for this version of Spark and Scala. The message names
            the supported versions.
    """
    jar = jars / f"sieve-spark-{spark.line}_{spark.scala}.jar"
    if jar.exists():
        return jar
    names = (path.stem.removeprefix("sieve-spark-") for path in jars.glob("sieve-spark-*.jar"))
    lines = [f"{line} (Scala {scala})" for line, _, scala in (n.partition("_") for n in names)]
    supported = ", ".join(sorted(lines)) or "none; run `make jars`"
    raise UnsupportedError(
        "SIEVE_UNSUPPORTED_SPARK",
        f"The Spark at {spark.path} is {spark.version} (Scala {spark.scala}), for which Sieve has "
        f"no jar in {jars}. Supported: {supported}.",
    )
