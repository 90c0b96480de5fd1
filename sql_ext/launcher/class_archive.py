"""Makes a class archive: one file with the classes that Spark loads when it starts.

Later starts map the archive into memory.

The JVM's name for this mechanism is dynamic class data sharing (JEP 350). An archive is valid for
one Java and one class path. The JVM compares both, and ignores an archive for another Java or class
path. A start that writes the archive takes 1.5 times as long, and the archive takes 200 MB. So a
separate command writes the archive.
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
"""Typical statements of a session. The archive contains the classes that these statements load."""

# Turns off the JVM's warning about an archive for another Java or class path, because the program
# starts without the archive.
_SILENT: Final = "-Xlog:cds*=off"


def archive_file(spark: SparkHome, java: str, environ: Mapping[str, str]) -> Path:
    """The path of the archive for a Spark and a Java, in the user's cache."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~"), ".cache"))
    place = hashlib.sha256(f"{spark.path}\n{Path(java).resolve()}".encode()).hexdigest()[:12]
    return Path(cache) / "sieve" / f"spark-{spark.version}-{place}.jsa"


def writing(archive: Path) -> str:
    """The Java options that make a program archive its classes when the program ends."""
    return f"-XX:ArchiveClassesAtExit={archive} {_SILENT}"


def using(archive: Path) -> str:
    """The Java options that make a program map an archive into memory."""
    return f"-XX:SharedArchiveFile={archive} {_SILENT}"
