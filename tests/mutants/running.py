"""Runs mypy, and the tests that reach a mutant's line, in a copy of the project."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from tests.mutants.drawing import Mutant

_COPIED = (
    "sieve sql_ext udfs tests bench conf docs pyproject.toml spark-defaults.conf README.md "
    "CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE mkdocs.yml Makefile"
).split()
_TESTS = ("tests/unit", "tests/property")
# These tests run code that no unit test runs. The code runs in executors, or needs a JVM, as the
# Hadoop store does.
_SPARK_TESTS = [
    f"tests/spark/test_{name}.py"
    for name in ("hadoop_store", "create", "refresh", "shapes", "completeness", "estimate", "check")
]
_SPARK_S = 1800.0
# Unlike the other tests in their folder, these tests start Spark.
_NEED_SPARK = [
    f"tests/property/test_{name}.py" for name in ("random_tables", "random_joins", "range_tilings")
]
_MOST_TESTS = 150
# A limit of CPU time stops a mutant that runs forever. CPU time hardly grows on a busy machine. A
# limit of elapsed time stops a mutant that waits forever. A limit of the address space stops a
# mutant that fills the memory.
_START_CPU_S, _TIMES = 30.0, 3.0
_MOST_WAITING = 10.0
_PYTEST = "-q -x -p no:cacheprovider --hypothesis-seed=0 -m".split()
MARKS = "not soak and not long and not services and not hudi and not wheel"
TIMED_OUT = 124
_OUT_OF_TIME = (-signal.SIGXCPU, -signal.SIGKILL)


class Bench:
    """A copy of the project for the test of one mutant at a time.

    Attributes:
        folder: folder that contains the copy.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self.folder = folder
        self._warm: subprocess.Popen[bytes] | None = None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, folder / name)
            elif (root / name).exists():
                shutil.copy(root / name, folder / name)

    def end(self, mutant: Mutant, reach: Reach) -> str:
        """Runs the tests that reach a mutant, and returns the result.

        The result is ``killed`` (a test failed), ``by time`` (a time limit ended the tests),
        ``SURVIVES`` (all tests passed) or ``UNREACHED`` (no test reaches the mutant).
        """
        rounds = reach.rounds(mutant)
        if not rounds:
            return "UNREACHED"
        with self._planted(mutant):
            for tests in rounds:
                cpu = _START_CPU_S + _TIMES * reach.seconds(tests)
                code = self._forked(tests, int(cpu))
                if code:
                    return "by time" if code in _OUT_OF_TIME else "killed"
        return "SURVIVES"

    def killed_by_types(self, mutant: Mutant) -> bool:
        """Returns whether mypy, with the options of ``make test``, finds an error in the mutant."""
        with self._planted(mutant):
            return self.mypy() == 1

    def killed_on_spark(self, mutant: Mutant) -> bool:
        """Returns whether at least one of the `_SPARK_TESTS` fails with the mutant.

        All of these tests run, because nothing shows which tests reach the mutant's line.
        """
        with self._planted(mutant):
            return self.pytest(*_SPARK_TESTS, timeout=_SPARK_S) != 0

    @contextmanager
    def _planted(self, mutant: Mutant) -> Iterator[None]:
        path = self.folder / mutant.module
        path.write_text(mutant.source)
        try:
            yield
        finally:
            path.write_text((self._root / mutant.module).read_text())

    def pytest(
        self,
        *arguments: str,
        timeout: float | None = None,
        marks: str = MARKS,
        spark: Path | None = None,
    ) -> int:
        """Runs pytest. Returns its exit code, or TIMED_OUT if pytest did not end in time.

        Args:
            arguments: further arguments for pytest.
            timeout: time limit in seconds.
            marks: an expression that selects some of these tests by their marks.
            spark: ``pyspark`` folder of another Spark release. None if the tests use the default
                release.
        """
        command = [sys.executable, "-m", "pytest", *_PYTEST, marks, *arguments]
        with (
            (self.folder / "pytest.log").open("w") as log,
            subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._environment(spark),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                return TIMED_OUT
            finally:
                if process.poll() is None:
                    # also ends the processes that the tests have started
                    os.killpg(process.pid, signal.SIGKILL)

    def _environment(self, spark: Path | None = None) -> dict[str, str]:
        paths = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        if spark is not None:
            paths.insert(1, str(spark.parent))
            environment["SPARK_HOME"] = str(spark)
        return environment | {"PYTHONPATH": os.pathsep.join(paths)}

    def _forked(self, tests: list[str], cpu_seconds: int) -> int:
        """Runs pytest in a fork of a warm interpreter, and returns its exit code.

        A signal ends a run that takes more than ``cpu_seconds``.
        """
        if self._warm is None:
            self._warm = subprocess.Popen(
                [sys.executable, "-m", "tests.mutants.warm"],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,  # unbuffered, so that `select` sees each line as soon as it arrives
            )
        # Removes the stored examples of Hypothesis. With stored examples, a test could begin with
        # an example that failed for the previous mutant.
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)
        asked, told = self._warm.stdin, self._warm.stdout
        assert asked is not None
        assert told is not None
        run = [[*_PYTEST, MARKS, *tests], str(self.folder / "pytest.log"), cpu_seconds]
        asked.write(f"{json.dumps(run)}\n".encode())
        pid = int(told.readline())
        ended, _, _ = select.select([told], [], [], _MOST_WAITING * cpu_seconds)
        if not ended:
            os.killpg(pid, signal.SIGKILL)  # also ends the processes that the tests have started
        return int(told.readline())

    def close(self) -> None:
        """Ends the warm interpreter."""
        if self._warm is not None:
            self._warm.communicate()

    def mypy(self) -> int:
        """Runs mypy with the project's settings and a cache in the copy. Returns its exit code."""
        command = [sys.executable, "-m", "mypy"]
        with (self.folder / "mypy.log").open("w") as log:
            return subprocess.run(
                command, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT, check=False
            ).returncode

    def warm_types(self) -> None:
        """Fills mypy's cache, so that mypy checks a mutant within seconds."""
        if self.mypy():
            log = (self.folder / "mypy.log").read_text()
            raise SystemExit(f"{log}\nmypy fails without a mutant")

    def measure(self) -> Reach:
        """Runs all tests once without a mutant, and records which tests reach each line."""
        data, times = self.folder / "coverage", self.folder / "times.xml"
        settings = self.folder / "coverage.ini"
        settings.write_text(f"[run]\ndata_file = {data}\nsource =\n  sieve\n  sql_ext\n")
        code = self.pytest(
            "-p", "pytest_cov", "--cov", f"--cov-config={settings}", "--cov-context=test",
            "--cov-report=", f"--junit-xml={times}", "-o", "junit_family=xunit1",
            *(f"--ignore={path}" for path in _NEED_SPARK), *_TESTS,
        )  # fmt: skip
        if code:
            log = (self.folder / "pytest.log").read_text()
            raise SystemExit(f"{log}\nthe tests fail without a mutant")
        return Reach(data, times, self.folder)


class Reach:
    """The tests that reach each line, and the time that each test takes.

    Args:
        data: database that coverage has recorded.
        times: pytest's JUnit report of the same run.
        folder: folder in which coverage and pytest ran.
    """

    def __init__(self, data: Path, times: Path, folder: Path) -> None:
        from coverage.numbits import numbits_to_nums

        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        with sqlite3.connect(data) as known:
            rows = known.execute(
                "SELECT path, context, numbits FROM line_bits "
                "JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
            )
            for path, context, numbits in rows:
                module = str(Path(path).relative_to(folder))
                test = context.partition("|")[0].partition("[")[0]
                for line in numbits_to_nums(numbits):
                    self._lines[module][line].add(test)
        self._seconds: dict[str, float] = defaultdict(float)
        for case in ET.parse(times).iter("testcase"):
            file, name = case.attrib["file"], case.attrib["name"].partition("[")[0]
            module = file.removesuffix(".py").replace("/", ".")
            group = case.attrib["classname"].removeprefix(module).replace(".", "::")
            for test in (file, f"{file}{group}::{name}"):
                self._seconds[test] += float(case.attrib["time"])

    def seconds(self, tests: Iterable[str]) -> float:
        """Seconds that the given tests or test files take together without a mutant."""
        return sum(self._seconds[test] for test in tests)

    def rounds(self, mutant: Mutant) -> list[list[str]]:
        """The rounds of tests for a mutant. The second round runs only if the first round passes.

        The first round consists of the tests that reach the mutant's line, the fastest test first.
        The second round consists of all other unit tests in the same files.

        A test can depend on a mutant without reaching the mutant's line. For example, the test's
        file may compute a constant when Python loads the file. A module of records runs only when
        Python loads it, so no test reaches its lines. For a module of records, the tests are all
        unit tests of the module's package.
        """
        lines = self._lines[mutant.module]
        tests = set(lines[mutant.line])
        if not tests or "" in tests:
            tests = set().union(*lines.values())
        tests.discard("")
        if not tests:
            folder = f"tests/unit/{Path(mutant.module).parent.name}/"
            tests = {file for file in self._seconds if file.startswith(folder) and "::" not in file}
        files = {test.partition("::")[0] for test in tests}
        of_unit = {file for file in files if file.startswith("tests/unit/")}
        rounds = [files] if len(tests) > _MOST_TESTS else [tests, of_unit - tests]
        return [
            sorted(some, key=lambda test: (self._seconds[test], test)) for some in rounds if some
        ]
