"""Compiles one changed file of the shim, and replaces this file's classes in a copy of the jar."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from sieve.client.spark_home import SparkHome
from sql_ext.launcher.conf_files import find_java


def repack(spark: SparkHome, jar: Path, source: Path, made: Path) -> None:
    """Writes `made`, a copy of the jar with newly compiled classes of one source file.

    The function compiles no other classes again, so a changed signature has no effect on other
    classes. A compilation of one file takes a third of the time for the whole shim.

    Raises:
        subprocess.CalledProcessError: the compiler rejects the source file.
    """
    with tempfile.TemporaryDirectory(prefix="sieve-classes-") as folder:
        path = os.pathsep.join([f"{spark.path / 'jars'}/*", str(jar)])
        command = [find_java(os.environ), "-Xss8m", "-cp", path, "scala.tools.nsc.Main"]
        options = ["-usejavacp", "-nowarn", "-encoding", "UTF-8", "-d", folder]
        subprocess.run([*command, *options, str(source)], check=True)
        classes = {
            path.relative_to(folder).as_posix(): path
            for path in Path(folder).rglob("*")
            if path.is_file()
        }
        partial = made.with_suffix(".partial")
        with zipfile.ZipFile(jar) as known, zipfile.ZipFile(partial, "w") as archive:
            for name in known.namelist():
                if name not in classes:
                    archive.writestr(name, known.read(name))
            for name, file in classes.items():
                archive.writestr(name, file.read_bytes())
        shutil.move(partial, made)
