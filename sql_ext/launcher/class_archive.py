"""Creates a class archive: one file with the classes that a Spark session loads.

Later sessions start faster, because the JVM maps the archive into memory. This technique is called
dynamic class data sharing (JEP 350). The JVM ignores an archive for another Java or another class
path. An archive takes about 210 MB. A session that writes an archive takes 1.5 times as long as
other sessions. So only the separate command ``sieve archive`` writes an archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sieve.client.spark_home import SparkHome

STATEMENTS: Final = (
    "CREATE TABLE t USING parquet AS SELECT id, id % 7 AS r FROM range(1000)",
    "CREATE SIEVE INDEX ON t (id)",
    "SHOW SIEVE INDEXES",
    "SELECT * FROM t WHERE id = 5",
    "SELECT r, count(*) FROM t GROUP BY r ORDER BY r",
)
"""Typical statements. The archive contains the classes that a session loads for these
statements."""

# The JVM ignores an archive of another Java or class path, and logs a warning. This option turns
# the warning off.
_SILENT: Final = "-Xlog:cds*=off"


def archive_file(spark: SparkHome, java: str, environ: Mapping[str, str]) -> Path:
    """Path of the archive for this Spark and this Java, in the user's cache folder."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~"), ".cache"))
    place = hashlib.sha256(f"{spark.path}\n{Path(java).resolve()}".encode()).hexdigest()[:12]
    return Path(cache) / "sieve" / f"spark-{spark.version}-{place}.jsa"


def writing(archive: Path) -> str:
    """The Java options that make a program write its classes to the archive at its end."""
    return f"-XX:ArchiveClassesAtExit={archive} {_SILENT}"


def using(archive: Path) -> str:
    """The Java options that make a program load its classes from the archive."""
    return f"-XX:SharedArchiveFile={archive} {_SILENT}"
