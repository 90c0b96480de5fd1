from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import sieve
from sieve.client import configure
from sieve.client.spark_conf import EXTENSIONS, wiring
from sieve.errors import InvalidInputError

JAR = Path("/opt/sieve/sieve.jar")


class FakeBuilder:
    """Records settings, as the builder of a PySpark session does."""

    def __init__(self, **settings: str) -> None:
        self._options = {key.replace("_", "."): value for key, value in settings.items()}

    def config(self, key: str, value: str, /) -> FakeBuilder:
        self._options[key] = value
        return self


@pytest.fixture(autouse=True)
def _spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fakes an installation of Spark 4.1 with a configuration folder, and no running Spark."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.1.4.jar").touch()
    (tmp_path / "conf").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setattr(configure, "shim_jar", lambda _: JAR)


def test_builder_gets_the_lines_of_sieve_conf() -> None:
    """`configure` gives the builder the lines of `sieve conf`, and returns this builder."""
    builder = FakeBuilder()
    assert sieve.configure(builder) is builder
    assert builder._options == wiring(JAR)


def test_configure_keeps_the_settings_of_the_user(tmp_path: Path) -> None:
    """If the builder or spark-defaults.conf sets a list, `configure` appends Sieve to this list.

    `configure` does not change any other setting.
    """
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "spark.jars a.jar\nspark.sql.extensions of.the.file\nspark.executor.cores 3\n"
    )
    builder = sieve.configure(FakeBuilder(spark_sql_extensions="of.the.builder", spark_x="1"))
    assert builder._options["spark.sql.extensions"] == f"of.the.builder,{EXTENSIONS}"
    assert builder._options["spark.jars"] == f"a.jar,{JAR}"
    assert builder._options["spark.x"] == "1"
    assert "spark.executor.cores" not in builder._options


def test_second_configure_changes_nothing() -> None:
    """A second call of `configure` has no effect, for example if a notebook cell runs again."""
    builder = sieve.configure(sieve.configure(FakeBuilder()))
    assert builder._options == wiring(JAR)


def test_spark_connect_session_is_refused() -> None:
    """`configure` refuses a Spark Connect session, because there the server must load Sieve."""
    with pytest.raises(InvalidInputError, match="SIEVE_REMOTE_SESSION"):
        sieve.configure(FakeBuilder(spark_remote="sc://localhost"))


@pytest.mark.parametrize(
    ("class_path", "extensions", "refused"),
    [
        (f"/spark/jars/a.jar:{JAR}", EXTENSIONS, False),
        (f"/spark/jars/a.jar:{JAR}", None, False),
        ("/spark/jars/a.jar", None, True),
        (f"/spark/jars/a.jar:{JAR}", "other", True),
    ],
)
def test_a_spark_that_runs_without_sieve_is_refused(
    monkeypatch: pytest.MonkeyPatch, class_path: str, extensions: str | None, refused: bool
) -> None:
    """`configure` refuses a running Spark without Sieve, because its class path cannot change."""
    system = SimpleNamespace(getProperty=lambda _: class_path)
    gateway = SimpleNamespace(
        jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    )
    conf = SimpleNamespace(get=lambda *_: extensions)
    session = SimpleNamespace(conf=conf) if extensions else None
    fake = SimpleNamespace(
        SparkContext=SimpleNamespace(_gateway=gateway),
        SparkSession=SimpleNamespace(getActiveSession=lambda: session),
    )
    monkeypatch.setitem(sys.modules, "pyspark", fake)
    monkeypatch.setitem(sys.modules, "pyspark.sql", fake)
    if refused:
        with pytest.raises(InvalidInputError, match="SIEVE_SPARK_STARTED"):
            sieve.configure(FakeBuilder())
    else:
        sieve.configure(FakeBuilder())
