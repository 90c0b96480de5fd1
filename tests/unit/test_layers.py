"""Python can import each package that is declared pure, even without Spark."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
PURE = (
    "errors index_key client environment arrays storage encoding segments metadata predicate "
    "reader workload"
).split()
# The stores for HDFS and S3 call a JVM over py4j, which works without PySpark.
_REQUIRED = ("numpy", "pyarrow", "xxhash", "py4j")
_IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(f"sieve.{name}")
    for module in pkgutil.walk_packages(getattr(package, "__path__", []), f"sieve.{name}."):
        importlib.import_module(module.name)
assert importlib.util.find_spec("pyspark") is None
print(sum(name.startswith("sieve.") for name in sys.modules))
"""


@pytest.fixture(scope="module")
def without_spark(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Makes an empty virtual environment, and a folder of the packages that tests may import."""
    top = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", top / "venv"], check=True)
    installed = top / "installed"
    installed.mkdir()
    for name in _REQUIRED:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        for path in package.parent.glob(f"{name}*"):
            (installed / path.name).symlink_to(path)
    (installed / "sieve").symlink_to(HOME / "sieve")
    return top / "venv" / "bin" / "python", installed


def test_pure_packages_import_without_pyspark(without_spark: tuple[Path, Path]) -> None:
    """Pure packages can be imported if only numpy, pyarrow, xxhash and py4j are installed."""
    python, installed = without_spark
    done = subprocess.run(
        [python, "-c", _IMPORT_ALL, *PURE],
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60


def test_each_package_is_declared_pure_or_listed() -> None:
    """Each package of `sieve` is declared pure, or is listed in this test as not pure."""
    paths = (path for path in (HOME / "sieve").iterdir() if path.suffix in ("", ".py"))
    names = {path.stem for path in paths if not path.name.startswith("__")}
    assert names - set(PURE) == {"tables", "indexing", "operations"}
