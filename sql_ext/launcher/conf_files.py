"""Finds Java, and the configuration files of the Spark programs that ``sieve`` starts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sieve.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = Path(__file__).resolve().parents[1]


def conf_file(name: str) -> Path:
    """Path of Sieve's configuration file ``name``, in an installed package or in a checkout."""
    packaged = PACKAGE / "conf" / name
    if packaged.exists():
        return packaged
    top = PACKAGE.parent
    return top / name if name == "spark-defaults.conf" else top / "conf" / name


def log_option() -> str:
    """The Java option that makes log4j read Sieve's configuration and log only problems."""
    return f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"


def find_java(environ: Mapping[str, str]) -> str:
    """Path of the ``java`` that Spark's scripts run: in ``JAVA_HOME``, or else on the PATH."""
    home = environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    if found := shutil.which(java, path=environ.get("PATH")):
        return found
    where = f"JAVA_HOME is {home}, without a bin/java" if home else "no `java` is on the PATH"
    raise UnavailableError(
        "SIEVE_NO_JAVA", f"Spark needs a Java runtime, version 17 or newer, but {where}."
    )
