"""An interpreter that loads the tests' libraries once, and then forks for each run of pytest.

For most tests, the libraries take longer to load than the test to run. For each run of pytest, the
interpreter reads one line of JSON from its standard input: ``[arguments, log, CPU seconds]``. The
interpreter writes the fork's process id when the run starts, and the exit code when the run ends.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys

# Each run must load the mutant from its file, so this list contains no module of the project.
_LIBRARIES = (
    "hypothesis.extra.numpy",
    "lark",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.functions",
    "pytest",
)
_MEMORY = 8 << 30


def main() -> None:
    """Reads requests from the standard input and runs them, until the input ends."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        arguments, log, cpu_seconds = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run(arguments, log, cpu_seconds)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _run(arguments: list[str], log: str, cpu_seconds: int) -> None:
    """Runs pytest in this process, which is a fork, and then ends the process."""
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for descriptor in (1, 2):
            os.dup2(told, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        import pytest

        code = int(pytest.main(arguments))
        sys.stdout.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
