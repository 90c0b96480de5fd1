"""Locates the Spark installation, and the shim jar and configuration files that match it.

A shim jar is compiled for one Spark line and one Scala version, such as
``sieve-spark-3.5_2.12.jar``.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sieve.errors import InvalidInputError, UnavailableError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = Path(__file__).resolve().parents[1]
JARS = PACKAGE / "jars"


@dataclass(frozen=True, slots=True)
class SparkHome:
    """One Spark installation.

    Attributes:
        path: its folder, with ``bin`` and ``jars``.
        version: full version, such as ``4.1.4``.
        scala: binary version of its Scala, such as ``2.13``.
    """

    path: Path
    version: str
    scala: str

    @property
    def line(self) -> str:
        """Major and minor version, for which a shim jar is compiled."""
        return ".".join(self.version.split(".")[:2])


def find_spark(environ: Mapping[str, str]) -> SparkHome:
    """The Spark at ``SPARK_HOME`` if that is set, else the ``pyspark`` beside this package.

    Raises:
        UnavailableError: there is neither.
        InvalidInputError: ``SPARK_HOME`` is not a Spark installation.
    """
    if home := environ.get("SPARK_HOME"):
        return inspect(Path(home).absolute())
    # Located without an import: to import PySpark takes longer than the rest of the launcher.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(
            "SIEVE_NO_SPARK",
            "No Spark was found. Install one beside Sieve (pip install pyspark==4.1.4) or set "
            "SPARK_HOME to the folder of yours.",
        )
    return inspect(Path(spec.submodule_search_locations[0]))


def inspect(home: Path) -> SparkHome:
    """Reads the versions from the name of Spark's core jar, which needs no process."""
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        if match := re.fullmatch(r"spark-core_(\d+\.\d+)-(\d+\.\d+\..+)\.jar", jar.name):
            return SparkHome(home, version=match[2], scala=match[1])
    raise InvalidInputError(
        "SIEVE_NO_SPARK",
        f"SPARK_HOME is {home}, which is no Spark installation: it has no jars/spark-core_*.jar.",
    )


def shim_jar(spark: SparkHome, jars: Path = JARS) -> Path:
    """The jar with Sieve's classes for this Spark.

    Raises:
        UnsupportedError: there is none for its line; the error names the supported lines.
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


def conf_file(name: str) -> Path:
    """A configuration file of Sieve: inside the package in a wheel, at the top in a checkout."""
    packaged = PACKAGE / "conf" / name
    if packaged.exists():
        return packaged
    top = PACKAGE.parent
    return top / name if name == "spark-defaults.conf" else top / "conf" / name


def log_option() -> str:
    """The Java option that makes log4j read Sieve's quiet configuration."""
    return f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"


def find_java(environ: Mapping[str, str]) -> str:
    """The ``java`` that Spark's own scripts would use: of ``JAVA_HOME``, else on the path."""
    home = environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    if found := shutil.which(java, path=environ.get("PATH")):
        return found
    where = f"JAVA_HOME is {home}, without a bin/java" if home else "no `java` is on the PATH"
    raise UnavailableError(
        "SIEVE_NO_JAVA", f"Spark needs a Java runtime, version 17 or newer, but {where}."
    )
