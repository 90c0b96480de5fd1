import os
import re
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sieve.client.spark_home import find_spark, inspect, shim_jar
from sieve.errors import ConflictError, InvalidInputError, UnavailableError, UnsupportedError
from sql_ext.launcher import class_archive, cli, launch, metastore
from sql_ext.launcher.conf_files import conf_file, find_java

JAR = Path("/opt/sieve/sieve.jar")


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """A folder that looks like an installation of Spark 4.1.4. No test starts this Spark."""
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core_2.13-4.1.4.jar").touch()
    return tmp_path / "spark"


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provides a Java executable, and the same jar of Sieve for every Spark version."""
    monkeypatch.setattr(launch, "shim_jar", lambda _: JAR)
    monkeypatch.setattr(launch, "find_java", lambda _: "java")


def _conf(command: list[str]) -> dict[str, str]:
    words = iter(command)
    settings = (next(words).partition("=") for word in words if word == "--conf")
    return {key: value for key, _, value in settings}


def test_spark_home_wins_over_the_installed_pyspark(spark_home: Path) -> None:
    """SPARK_HOME takes precedence over an installed PySpark.

    Versions are read from the names of Spark's jars.
    """
    spark = find_spark({"SPARK_HOME": str(spark_home)})
    assert (spark.path, spark.version, spark.scala, spark.line) == (
        spark_home,
        "4.1.4",
        "2.13",
        "4.1",
    )


def test_a_folder_without_spark_is_named(tmp_path: Path) -> None:
    """If SPARK_HOME names a folder without Spark, the error names this folder's path."""
    with pytest.raises(InvalidInputError, match=re.escape(str(tmp_path))):
        find_spark({"SPARK_HOME": str(tmp_path)})


def test_error_lists_the_supported_spark_versions(spark_home: Path, tmp_path: Path) -> None:
    """If Sieve has no jar for the Spark version, the error lists the supported versions."""
    for name in ("sieve-spark-4.0_2.13.jar", "sieve-spark-3.5_2.12.jar"):
        (tmp_path / name).touch()
    with pytest.raises(UnsupportedError, match=r"Supported: 3\.5 \(Scala 2\.12\), 4\.0 \(Scala"):
        shim_jar(inspect(spark_home), tmp_path)


def test_error_says_where_java_is_missing(tmp_path: Path) -> None:
    """The error tells whether `java` is missing in PATH, or bin/java in JAVA_HOME."""
    with pytest.raises(UnavailableError, match="no `java` is on the PATH"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(UnavailableError, match="without a bin/java"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


@pytest.mark.usefixtures("shim")
def test_sieve_sets_its_default_settings(spark_home: Path) -> None:
    """Sieve sets its extension, its jar on both class paths, the interpreter, and quiet logging."""
    conf = _conf(launch.submit_command(inspect(spark_home), {}, [], launch.SPARK_SQL_CLASS))
    assert conf["spark.sql.extensions"] == launch.EXTENSIONS
    assert conf["spark.jars"] == conf["spark.driver.extraClassPath"] == str(JAR)
    assert conf["spark.sieve.python"] == sys.executable
    assert conf["spark.driver.extraJavaOptions"].endswith("/conf/log4j2.properties")


@pytest.mark.usefixtures("shim")
@pytest.mark.parametrize(
    "given",
    [
        ["--conf", "spark.jars=a.jar,b.jar"],
        ["--conf=spark.jars=a.jar,b.jar"],
        ["-c", "spark.jars=a.jar,b.jar"],
        ["--jars", "a.jar,b.jar"],
        ["--jars=a.jar,b.jar"],
    ],
)
def test_jars_of_the_user_come_before_those_of_sieve(spark_home: Path, given: list[str]) -> None:
    """For each option that names the user's jars, Sieve appends its own jar once."""
    command = launch.submit_command(inspect(spark_home), {}, given, launch.SPARK_SQL_CLASS)
    assert _conf(command)["spark.jars"] == f"a.jar,b.jar,{JAR}"
    assert sum("a.jar" in word for word in command) == 1


@pytest.mark.usefixtures("shim")
def test_the_defaults_file_of_the_user_is_respected(spark_home: Path) -> None:
    """Sieve keeps the settings of spark-defaults.conf, and adds to lists only new entries."""
    (spark_home / "conf").mkdir()
    (spark_home / "conf" / "spark-defaults.conf").write_text(
        f"# mine\nspark.sql.extensions  my.Ext,{launch.EXTENSIONS}\n"
        "spark.ui.showConsoleProgress=false\nspark.driver.extraJavaOptions -Da=b -Dc=d\n"
    )
    conf = _conf(launch.submit_command(inspect(spark_home), {}, [], launch.SPARK_SQL_CLASS))
    assert conf["spark.sql.extensions"] == f"my.Ext,{launch.EXTENSIONS}"
    assert "spark.ui.showConsoleProgress" not in conf
    assert conf["spark.driver.extraJavaOptions"].startswith("-Da=b -Dc=d -Dlog4j2")


@pytest.mark.usefixtures("shim")
def test_log_configuration_of_the_user_is_not_changed(spark_home: Path) -> None:
    """If the user has a log4j2.properties, Sieve does not change how Spark logs."""
    (spark_home / "conf").mkdir()
    (spark_home / "conf" / "log4j2.properties").touch()
    command = launch.submit_command(inspect(spark_home), {}, [], launch.SPARK_SQL_CLASS)
    assert "spark.driver.extraJavaOptions" not in _conf(command)


@pytest.mark.usefixtures("shim")
def test_arguments_after_the_script_are_passed_on(spark_home: Path) -> None:
    """Arguments after the script are passed to the script, even if they look like options.

    An option of Sieve that follows an option of Spark is an error.
    """
    script = ["--master", "local[2]", "-v", "job.py", "--jars", "x", "--conf", "spark.jars=y"]
    command = launch.submit_command(inspect(spark_home), {}, script)
    assert command[-8:] == script
    assert _conf(command[:-8])["spark.jars"] == str(JAR)
    theirs = launch.submit_command(inspect(spark_home), {}, ["job.py", "--delta"])
    assert theirs[-2:] == ["job.py", "--delta"]
    for given in (
        ["-v", "--delta", "job.py"],
        ["--load-spark-defaults", "--delta", "job.py"],
        ["--conf", "a=b", "--hudi", "job.py"],
        ["--master", "local", "--delta=true", "job.py"],
    ):
        with pytest.raises(InvalidInputError, match="must precede all other options: sieve sub"):
            launch.submit_command(inspect(spark_home), {}, given)


def _passing_on(group: click.Group) -> Iterator[click.Command]:
    """Yields the commands in a group that pass unknown options to Spark."""
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _passing_on(command)
        elif command.context_settings.get("ignore_unknown_options"):
            yield command


def test_commands_accept_the_options_for_table_formats() -> None:
    """Commands that pass options to Spark accept `--hudi`, `--delta` and `--iceberg`.

    spark-submit would not know the options `--hudi`, `--delta` and `--iceberg`. Beeline is an
    exception, because it does not need options for table formats.
    """
    commands = {command.name: command for command in _passing_on(cli.main)}
    assert {"sql", "submit", "inspect", "gc", "start"} <= set(commands)
    for name in set(commands) - {"beeline"}:
        known = {option.name for option in commands[name].params}
        assert {"hudi", "delta", "iceberg"} <= known, name


@pytest.mark.usefixtures("shim")
def test_properties_file_replaces_the_defaults(spark_home: Path, tmp_path: Path) -> None:
    """As in spark-submit, the file of --properties-file replaces spark-defaults.conf."""
    (tmp_path / "mine.conf").write_text("spark.jars /m.jar\n")
    args = ["--properties-file", str(tmp_path / "mine.conf")]
    command = launch.submit_command(inspect(spark_home), {}, args, launch.SPARK_SQL_CLASS)
    assert _conf(command)["spark.jars"] == f"/m.jar,{JAR}"
    assert command[-2:] == args


@pytest.mark.usefixtures("shim")
def test_option_hudi_adds_the_bundle(spark_home: Path) -> None:
    """With `--hudi`, the Hudi bundle for the installed Spark is added to the user's packages."""
    command = launch.submit_command(
        inspect(spark_home), {}, ["--packages", "a:b:1"], launch.SPARK_SQL_CLASS, hudi=True
    )
    conf = _conf(command)
    assert conf["spark.sql.extensions"] == f"{launch.EXTENSIONS},{launch.HUDI_EXTENSION}"
    assert conf["spark.jars.packages"] == (
        f"a:b:1,org.apache.hudi:hudi-spark4.1-bundle_2.13:{launch.HUDI_VERSION}"
    )
    assert conf["spark.sql.catalog.spark_catalog"].endswith(".HoodieCatalog")
    assert conf["spark.serializer"].endswith(".KryoSerializer")


@pytest.mark.usefixtures("shim")
@pytest.mark.parametrize(
    "given",
    [
        ["--packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2"],
        ["--jars", "/opt/hudi-spark4.1-bundle_2.13-1.9.jar"],
    ],
)
def test_no_bundle_is_added_if_the_user_has_one(spark_home: Path, given: list[str]) -> None:
    """If the user's packages or jars include a Hudi bundle, Sieve adds no bundle."""
    command = launch.submit_command(
        inspect(spark_home), {}, given, launch.SPARK_SQL_CLASS, hudi=True
    )
    assert sum("hudi-spark" in word for word in command if "ClassPath" not in word) == 1


def test_a_bundle_of_hudi_is_on_the_class_path(spark_home: Path) -> None:
    """The class path has the user's entries, Sieve's jar, the Hudi bundle, and no other jar."""
    given = ["--jars", "/a.jar,/opt/hudi-spark4.1-bundle_2.13-1.9.jar", "--driver-class-path", "/x"]
    home = inspect(spark_home)
    command = launch.submit_command(home, {}, given, launch.SPARK_SQL_CLASS, hudi=True)
    (path,) = (word for word in command if word.startswith("spark.driver.extraClassPath="))
    bundle = "/opt/hudi-spark4.1-bundle_2.13-1.9.jar"
    assert path.partition("=")[2].split(":") == ["/x", str(launch.shim_jar(home)), bundle]


@pytest.mark.usefixtures("shim")
def test_option_delta_adds_the_package(spark_home: Path) -> None:
    """With `--delta`, Sieve adds Delta's package, unless the user's jars include Delta."""
    command = launch.submit_command(inspect(spark_home), {}, [], launch.SPARK_SQL_CLASS, delta=True)
    conf = _conf(command)
    assert conf["spark.sql.extensions"] == f"{launch.EXTENSIONS},{launch.DELTA_EXTENSION}"
    assert conf["spark.jars.packages"] == "io.delta:delta-spark_4.1_2.13:4.4.0"
    assert conf["spark.sql.catalog.spark_catalog"].endswith(".DeltaCatalog")
    given = ["--jars", "/opt/delta-spark_4.1_2.13-4.3.0.jar,/opt/delta-storage-4.3.0.jar"]
    command = launch.submit_command(
        inspect(spark_home), {}, given, launch.SPARK_SQL_CLASS, delta=True
    )
    assert sum("delta-spark" in word for word in command) == 1


@pytest.mark.usefixtures("shim")
def test_option_iceberg_adds_the_package(spark_home: Path, tmp_path: Path) -> None:
    """With `--iceberg`, Sieve adds Iceberg's package, unless the user's jars include Iceberg.

    With the embedded metastore, Sieve also disables Iceberg's table locks.
    """

    def conf(*given: str) -> dict[str, str]:
        return _conf(
            launch.submit_command(
                inspect(spark_home),
                {"SPARK_CONF_DIR": str(tmp_path)},
                list(given),
                launch.SPARK_SQL_CLASS,
                iceberg=True,
            )
        )

    locks = "spark.hadoop.iceberg.engine.hive.lock-enabled"
    alone = conf()
    assert alone["spark.sql.extensions"] == f"{launch.EXTENSIONS},{launch.ICEBERG_EXTENSION}"
    assert alone["spark.jars.packages"] == launch.ICEBERG_PACKAGES["4.1"]
    assert alone["spark.sql.catalog.spark_catalog"].endswith(".SparkSessionCatalog")
    assert alone[locks] == alone["spark.hadoop.hive.metastore.schema.verification"] == "false"
    # A metastore server supports Iceberg's locks, so the locks stay enabled.
    assert locks not in conf("--conf", "spark.hadoop.hive.metastore.uris=thrift://meta:9083")
    (tmp_path / "hive-site.xml").touch()
    assert locks not in conf()
    assert "spark.jars.packages" not in conf("--jars", "/opt/iceberg-spark-runtime.jar")


@pytest.mark.usefixtures("shim")
def test_spark_without_its_connect_jar_is_refused(spark_home: Path) -> None:
    """If Spark lacks the Spark Connect jar, as Spark 3.5 does, Sieve refuses to start a server."""
    spark = inspect(spark_home)
    with pytest.raises(UnsupportedError, match=r"4\.1.*no spark-connect jar"):
        launch.submit_command(spark, {}, [], launch.CONNECT_SERVER_CLASS)
    (spark_home / "jars" / "spark-connect_2.13-4.1.4.jar").touch()
    command = launch.submit_command(spark, {}, [], launch.CONNECT_SERVER_CLASS)
    assert command[1:3] == ["--class", launch.CONNECT_SERVER_CLASS]


@pytest.mark.usefixtures("shim")
def test_hudi_with_delta_is_refused(spark_home: Path) -> None:
    """Sieve refuses `--hudi` together with `--delta`, as both replace Spark's session catalog."""
    with pytest.raises(InvalidInputError, match="choose one"):
        launch.submit_command(
            inspect(spark_home), {}, [], launch.SPARK_SQL_CLASS, hudi=True, delta=True
        )


def test_shipped_files_are_not_loaded_automatically() -> None:
    """Sieve ships no configuration file with a name that Hive or Spark loads automatically."""
    conf = conf_file("log4j2.properties").parent
    assert not (conf / "hive-site.xml").exists()
    assert all(path.suffix in {".xml", ".properties", ".conf"} for path in conf.iterdir())


def test_only_the_owner_can_read_the_metastore_password(tmp_path: Path) -> None:
    """hive-site.xml has the settings of the database and of Sieve; only its owner can read it."""
    site = tmp_path / "run" / "hive-site.xml"
    database = metastore.Database("jdbc:postgresql://db/hive", "hive", "s&cret<")
    metastore.write_site(site, database, tmp_path)
    metastore.write_site(site, database, tmp_path)
    found = {p.findtext("name"): p.findtext("value") for p in ET.parse(site).iter("property")}
    assert found["javax.jdo.option.ConnectionPassword"] == "s&cret<"
    assert found["javax.jdo.option.ConnectionDriverName"] == "org.postgresql.Driver"
    assert found["datanucleus.schema.autoCreateAll"] == "true"
    assert stat.S_IMODE(site.stat().st_mode) == 0o600


def test_an_unknown_database_is_refused() -> None:
    """A JDBC URL without a known driver is refused before a server starts."""
    with pytest.raises(InvalidInputError, match="postgresql"):
        _ = metastore.Database("jdbc:foo://x").driver


def test_locked_derby_database_is_refused(tmp_path: Path) -> None:
    """Sieve refuses a Derby database that a process has locked, but ignores stale lock files."""
    lock = tmp_path / "metastore_db" / "dbex.lck"
    lock.parent.mkdir()
    lock.touch()
    metastore.refuse_locked(tmp_path)
    hold = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(ConflictError, match="sieve beeline"):
            metastore.refuse_locked(tmp_path)
        holder.communicate(b"\n")


@pytest.mark.parametrize(
    ("settings", "embedded"),
    [
        ({}, True),
        ({"spark.hadoop.hive.metastore.uris": "thrift://h:1"}, False),
        ({"spark.sql.catalogImplementation": "in-memory"}, False),
    ],
)
def test_only_the_embedded_metastore_has_one_user(
    tmp_path: Path, settings: dict[str, str], embedded: bool
) -> None:
    """Only the embedded metastore is limited to one process."""
    assert metastore.is_embedded(settings, tmp_path) is embedded


def test_errors_are_one_line_without_a_stack(tmp_path: Path) -> None:
    """If a command fails, it prints the error without a stack trace, and exits with status 1."""
    result = CliRunner(env={"SPARK_HOME": str(tmp_path)}).invoke(
        cli.main, ["sql", "-e", "select 1"]
    )
    assert result.exit_code == 1
    assert result.output.startswith("Error: [SIEVE_NO_SPARK] SPARK_HOME is ")
    assert "Traceback" not in result.output


def test_conf_prints_lines_for_spark_defaults() -> None:
    """`sieve conf` prints a properties file with all settings that load Sieve."""
    result = CliRunner().invoke(cli.main, ["conf"])
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines() if not line.startswith("#")]
    assert dict(lines)["spark.sql.extensions"] == launch.EXTENSIONS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_home: Path) -> Path:
    """Creates a temporary cache folder, and a Spark installation that no test starts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", str(spark_home))
    monkeypatch.setattr(cli, "find_java", lambda _: "java")
    return tmp_path / "cache"


def test_each_java_and_spark_has_a_separate_archive(tmp_path: Path, spark_home: Path) -> None:
    """Each pair of Java and Spark has a class archive, in XDG_CACHE_HOME or in the user's home."""
    spark = inspect(spark_home)
    named = class_archive.archive_file(spark, "/a/java", {"XDG_CACHE_HOME": "/c", "HOME": "/h"})
    assert named.parent == Path("/c/sieve")
    assert re.fullmatch(r"spark-4\.1\.4-[0-9a-f]{12}\.jsa", named.name)
    at_home = class_archive.archive_file(spark, "/a/java", {"HOME": "/h"})
    assert at_home == Path("/h/.cache/sieve", named.name)
    assert class_archive.archive_file(spark, "/b/java", {"HOME": "/h"}) != at_home
    spark_home.rename(tmp_path / "other")
    other = inspect(tmp_path / "other")
    assert class_archive.archive_file(other, "/a/java", {"HOME": "/h"}) != at_home


@pytest.mark.usefixtures("shim")
def test_existing_class_archive_is_loaded(spark_home: Path, tmp_path: Path) -> None:
    """If a class archive exists, Sieve adds its Java option after the user's Java options."""
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    spark = inspect(spark_home)
    given = ["--driver-java-options", "-Da=b"]

    def options() -> list[str]:
        command = launch.submit_command(spark, environ, given, launch.SPARK_SQL_CLASS)
        return _conf(command)["spark.driver.extraJavaOptions"].split()

    log = launch.log_option()
    assert options() == ["-Da=b", log]
    archive = class_archive.archive_file(spark, "java", environ)
    archive.parent.mkdir()
    archive.touch()
    assert options() == ["-Da=b", log, f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"]


@pytest.mark.usefixtures("shim")
def test_new_class_archive_replaces_the_old_one(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To replace a class archive, Sieve runs a session without the old archive.

    The session that writes a class archive runs in a temporary folder of its own.
    """
    ran: list[list[str]] = []

    def run(command: list[str], *, cwd: str, **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        assert Path(cwd) != Path.cwd()
        options = _conf(command)["spark.driver.extraJavaOptions"]
        file = Path(re.search(r"ArchiveClassesAtExit=(\S+)", options)[1])
        assert not file.exists()
        assert "SharedArchiveFile" not in options
        file.touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(cli.subprocess, "run", run)
    for _ in range(2):
        done = CliRunner().invoke(cli.main, ["archive"])
        assert done.exit_code == 0, done.output
        assert Path(done.stdout.strip()).parent == cache / "sieve"
    assert ran[0][-1].split("; ") == list(class_archive.STATEMENTS)


@pytest.mark.usefixtures("shim", "cache")
@pytest.mark.parametrize("code", [0, 1])
def test_error_quotes_a_java_that_writes_no_archive(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If Java writes no archive, the error names a likely cause, and quotes Java's last output."""
    done = subprocess.CompletedProcess([], code, "", "x" * 600 + "the end")
    monkeypatch.setattr(cli.subprocess, "run", lambda *_, **__: done)
    told = CliRunner().invoke(cli.main, ["archive"])
    assert told.exit_code == 1
    assert "SIEVE_NO_CLASS_ARCHIVE" in told.output
    assert "SPARK_HOME/conf" in told.output
    assert "x" * 493 + "the end" in told.output
    assert "x" * 494 not in told.output
