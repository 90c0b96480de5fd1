"""Compiles the shim against the jars of one Spark installation.

Spark's ``jars`` folder contains the Scala compiler with which Spark was built. So the script needs
a Java runtime, but neither sbt nor Maven nor a JDK. The class files have exactly the Scala version
of this Spark installation.

Usage: ``python sql_ext/jvm/build.py SPARK_HOME [SPARK_HOME ...]``
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
JARS = HERE.parent / "jars"
PACKAGE = "org/apache/spark/sql/sieve"
# The shim's jar includes the contents of ``SETTINGS`` and ``REASONS``. Sieve's Python code reads
# the same files.
SETTINGS = HERE.parent / "settings.json"
REASONS = HERE.parents[1] / "sieve" / "reader" / "reason.py"
# Each entry of a zip file contains a time. A fixed time makes jars of the same classes equal, byte
# by byte.
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class Spark(NamedTuple):
    """A Spark installation: its folder, and the major.minor versions of Spark and Scala."""

    home: Path
    line: str
    scala: str

    @property
    def jar(self) -> Path:
        """Path of the shim's jar for this release line of Spark."""
        return JARS / f"sieve-spark-{self.line}_{self.scala}.jar"


def inspect(home: Path) -> Spark:
    """Reads the versions of Spark and Scala from the name of Spark's core jar.

    Exits if the jar is missing.
    """
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        if match := re.fullmatch(r"spark-core_(\d+\.\d+)-(\d+\.\d+)\..*\.jar", jar.name):
            return Spark(home, line=match[2], scala=match[1])
    sys.exit(f"{home} is no Spark home: it has no jars/spark-core_*.jar.")


def sources(spark: Spark) -> list[Path]:
    """The common sources, and the sources in ``compat`` for this release line of Spark."""
    major = spark.line.split(".")[0]
    nearest = {
        file.name: file
        for folder in (f"{major}.x", spark.line)
        for file in (HERE / "compat" / folder).glob("*.scala")
    }
    if not nearest:
        sys.exit(
            f"No sql_ext/jvm/compat/{spark.line} or {major}.x: Spark {spark.line} is not known."
        )
    return sorted([*(HERE / "src").rglob("*.scala"), *nearest.values()])


def reasons() -> str:
    """Scala source with the reasons why scans read files, generated from Python's `Reason`."""
    members = runpy.run_path(str(REASONS))["Reason"]
    lines = [
        f'  val {"".join(word.title() for word in one.name.split("_"))}: Value = Value("{one}")'
        for one in members
    ]
    head = [f"package {PACKAGE.replace('/', '.')}.base", "class Reasons extends Enumeration {"]
    return "\n".join([*head, *lines, "}", ""])


def compile_to(spark: Spark, files: list[Path], out: Path) -> None:
    """Runs the Scala compiler from Spark's jars; exits with the compiler's code if it fails."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    command = [
        # In a short run, the JVM's optimizing compiler and parallel garbage collector cost more
        # time than they save. Without both, the compilation takes 12 CPU seconds instead of 33.
        str(java), "-Xss8m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
        "-cp", f"{spark.home / 'jars'}/*", "scala.tools.nsc.Main", "-usejavacp",
        "-deprecation", "-feature", "-unchecked", "-encoding", "UTF-8",
        "-d", str(out), *map(str, files),
    ]  # fmt: skip
    if (code := subprocess.run(command, check=False).returncode) != 0:
        sys.exit(code)


def pack(classes: Path, jar: Path) -> None:
    """Zips the class files in order of their paths, and replaces an existing jar atomically."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    partial = jar.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        manifest = zipfile.ZipInfo("META-INF/MANIFEST.MF", ZIP_EPOCH)
        archive.writestr(manifest, "Manifest-Version: 1.0\r\n\r\n")
        for path in sorted(p for p in classes.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(classes).as_posix(), ZIP_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    partial.replace(jar)


def build(home: Path) -> Path:
    """Compiles the shim for the Spark installation at ``home``, and returns the jar's path."""
    spark = inspect(home)
    out = Path(tempfile.mkdtemp(prefix="sieve-shim-"))
    try:
        generated = out / "Reasons.scala"
        generated.write_text(reasons(), encoding="utf-8")
        compile_to(spark, [*sources(spark), generated], out)
        generated.unlink()
        shutil.copy(SETTINGS, out / PACKAGE)
        pack(out, spark.jar)
    finally:
        shutil.rmtree(out)
    return spark.jar


if __name__ == "__main__":
    for argument in sys.argv[1:] or sys.exit(__doc__):
        print(f"Compiled {build(Path(argument).resolve()).name}")
