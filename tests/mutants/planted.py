"""Plants the faults of ``planted.toml``, and runs the test that must detect each fault."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sieve.client.spark_home import find_spark, shim_jar
from tests.mutants.running import MARKS, TIMED_OUT, Bench
from tests.mutants.shim import repack

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).parent / "planted.toml"
SPARK_35 = ROOT / "build" / "spark-3.5" / "pyspark"
FORMATS = ("delta", "hudi", "iceberg")
"""Folders of tests. Each name is also a pytest mark of tests, and the folder of the tests' jars."""
_CODE = ("sieve", "sql_ext", "udfs")
_LONGEST_S = 900.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: a change of one file that makes the code wrong.

    Attributes:
        file: base name of the Python or Scala file to change.
        old: text to replace, which occurs once in the file.
        new: faulty text that replaces `old`.
        test: base name of a test file. ``::`` and a test's name can follow the file's name.
    """

    file: str
    old: str
    new: str
    test: str

    def __str__(self) -> str:
        return f"{self.file}: {' '.join(self.old.split())}  ->  {' '.join(self.new.split())}"

    def path(self) -> Path:
        """Path of the changed file, relative to the root.

        Raises ValueError unless exactly one file has this base name.
        """
        return _only(self.file, _CODE)

    def test_id(self) -> str:
        """The name by which pytest knows the test.

        Raises ValueError unless exactly one file has this base name.
        """
        name, _, function = self.test.partition("::")
        path = str(_only(name, ("tests",)))
        return f"{path}::{function}" if function else path

    def planted(self) -> str:
        """The text of the file with the fault.

        Raises ValueError unless `old` occurs exactly once.
        """
        text = (ROOT / self.path()).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} times: {self.old}")
        return text.replace(self.old, self.new)


def faults() -> Iterator[Fault]:
    """Yields the faults in the order of the table."""
    for row in tomllib.loads(TABLE.read_text())["fault"]:
        yield Fault(**row)


def main(only: str) -> int:
    """Plants each fault whose file or test contains `only`. Returns 1 if a test misses a fault."""
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="sieve-planted-") as folder:
        bench = Bench(ROOT, Path(folder) / "bench")
        (bench.folder / "build").mkdir()
        for name in FORMATS:
            (bench.folder / "build" / name).symlink_to(ROOT / "build" / name)
        for fault in faults():
            if only in fault.file or only in fault.test:
                end, failed = _end(fault, bench)
                ends[end] += 1
                sys.stdout.write(f"{end:9} {fault}\n          by {fault.test}\n")
                sys.stdout.writelines(f"          {line}\n" for line in failed)
                sys.stdout.flush()
    sys.stdout.write(f"{dict(ends)}\n")
    return 1 if ends["SURVIVES"] + ends["TIMED OUT"] else 0


def _only(name: str, below: tuple[str, ...]) -> Path:
    found = [path for folder in below for path in (ROOT / folder).rglob(name)]
    if len(found) != 1:
        raise ValueError(f"{name} is at {len(found)} places below {', '.join(below)}")
    return found[0].relative_to(ROOT)


def _end(fault: Fault, bench: Bench) -> tuple[str, list[str]]:
    """The outcome of the fault's test, and the lines of its output that show failures."""
    test, path = fault.test_id(), bench.folder / fault.path()
    kind = next((name for name in FORMATS if test.startswith(f"tests/{name}/")), None)
    if kind and not (ROOT / "build" / kind).exists():
        return f"NO {kind.upper()}", []
    hudi = kind == "hudi"
    spark = find_spark({"SPARK_HOME": str(SPARK_35)} if hudi else os.environ)
    jar, sound = shim_jar(spark), path.read_text()
    path.write_text(fault.planted())
    made = bench.folder / jar.relative_to(ROOT)
    try:
        if path.suffix == ".scala":
            repack(spark, jar, path, made)
        code = bench.pytest(
            test,
            timeout=_LONGEST_S,
            marks=kind or MARKS,
            spark=SPARK_35 if hudi else None,
        )
    finally:
        path.write_text(sound)
        shutil.copy2(jar, made)
    log = (bench.folder / "pytest.log").read_text()
    failed = [line for line in log.splitlines() if line.startswith("FAILED ")]
    # A test that pytest cannot find, collect or set up has not detected the fault.
    if code not in (0, 1, TIMED_OUT) or (code == 1 and not failed):
        raise SystemExit(f"{fault.test} does not run:\n{log}")
    return {0: "SURVIVES", 1: "killed", TIMED_OUT: "TIMED OUT"}[code], failed
