"""The settings that make Spark load Sieve, merged with the user's settings."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sieve.client.spark_home import SparkHome

EXTENSIONS: Final = "org.apache.spark.sql.sieve.SieveExtensions"

# Settings that are lists, and the separators of their entries. Sieve appends its entries to the
# user's value, so the user's extensions and jars stay enabled.
SEPARATORS: Final = {
    "spark.sql.extensions": ",",
    "spark.jars": ",",
    "spark.jars.packages": ",",
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
}

Settings = dict[str, str]


def read_properties(path: Path) -> Settings:
    """Reads a file in the format of spark-defaults.conf: each line contains a key and a value.

    Blanks, ``=`` or ``:`` separate the key from its value. Lines that begin with ``#`` are
    comments.
    """
    settings = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\s*([^#\s=:][^\s=:]*)[\s=:]+(.*?)\s*", line):
            settings[match[1]] = match[2]
    return settings


def wiring(jar: Path) -> Settings:
    """Returns the settings that make Spark load Sieve."""
    return {
        "spark.sql.extensions": EXTENSIONS,
        # The jar is on the driver's own class path, so that Spark and its Hive clients load the
        # same classes. Executors get the classes through spark.jars.
        "spark.jars": str(jar),
        "spark.driver.extraClassPath": str(jar),
        "spark.sieve.python": sys.executable,
    }


def user_conf_dir(spark: SparkHome, environ: Mapping[str, str]) -> Path:
    """The folder in which Spark looks for the user's configuration files."""
    return Path(environ.get("SPARK_CONF_DIR") or spark.path / "conf")


def merged(ours: Settings, theirs: Settings) -> Settings:
    """Merges Sieve's and the user's settings, for Spark's command line or a session's builder.

    If a setting is a list, the result contains the user's entries and Sieve's entries. For any
    other setting, the user's value takes precedence.
    """
    result: Settings = {}
    for key, value in ours.items():
        if key not in theirs:
            result[key] = value
        elif separator := SEPARATORS.get(key):
            parts = [part for part in theirs[key].split(separator) if part]
            # The user's file may already contain the lines of `sieve conf`, so this code adds only
            # missing entries.
            parts += [part for part in value.split(separator) if part not in parts]
            result[key] = separator.join(parts)
    # The launcher has removed the settings in `SEPARATORS` from the command line. So this code adds
    # the user's value of each setting that Sieve does not change.
    result |= {k: theirs[k] for k in SEPARATORS if k in theirs and k not in result}
    return result
