"""Creates the command lines of Spark programs, with the user's and Sieve's settings merged.

A setting on Spark's command line replaces the same setting in the user's ``spark-defaults.conf``.
Some settings are lists, such as ``spark.sql.extensions``. For such a setting, the launcher appends
Sieve's values to the user's list.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sieve.client.spark_conf import (
    EXTENSIONS,
    SEPARATORS,
    Settings,
    merged,
    read_properties,
    user_conf_dir,
    wiring,
)
from sieve.client.spark_home import SparkHome, shim_jar
from sieve.errors import InvalidInputError, UnsupportedError
from sql_ext.launcher import class_archive
from sql_ext.launcher.conf_files import conf_file, find_java, log_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SPARK_SQL_CLASS = "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver"
HUDI_EXTENSION = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
HUDI_VERSION = "1.2.0"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_PACKAGES = {
    "3.5": "io.delta:delta-spark_2.12:3.3.3",
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
"""Delta's package for each release line of Spark."""
ICEBERG_EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
ICEBERG_PACKAGES = {
    "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""Iceberg's package for each release line of Spark."""
THRIFT_SERVER_CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
CONNECT_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"

# Options of spark-submit that take precedence over --conf. The dict maps each option to the setting
# that the option sets.
_ALIASES = {
    "--jars": "spark.jars",
    "--packages": "spark.jars.packages",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}
_OWN_OPTIONS = {"--hudi", "--delta", "--iceberg"}
_SWITCHES = {
    *("--verbose", "-v", "--version", "--help", "-h", "--usage-error", "--supervise"),
    "--load-spark-defaults",
}


def _is_named(artifact: str, user: Settings) -> bool:
    """Returns whether the user's settings for jars or packages name an artifact."""
    return any(artifact in user.get(key, "") for key in ("spark.jars", "spark.jars.packages"))


def hudi_settings(spark: SparkHome, user: Settings) -> Settings:
    """The settings that make Spark load Hudi, with a Hudi bundle unless the user names one."""
    bundle = f"org.apache.hudi:hudi-spark{spark.line}-bundle_{spark.scala}:{HUDI_VERSION}"
    jars = [jar for jar in user.get("spark.jars", "").split(",") if "hudi-spark" in jar]
    return {
        # In a Thrift server, all sessions find the data sources on this class path. Only the first
        # session finds other data sources.
        "spark.driver.extraClassPath": ":".join([str(shim_jar(spark)), *jars]),
        "spark.sql.extensions": f"{EXTENSIONS},{HUDI_EXTENSION}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    } | ({} if _is_named("hudi-spark", user) else {"spark.jars.packages": bundle})


def delta_settings(spark: SparkHome, user: Settings) -> Settings:
    """The settings that make Spark load Delta, with a Delta package unless the user names one.

    Raises:
        UnsupportedError: Sieve knows no release of Delta for this Spark.
    """
    settings = {
        "spark.sql.extensions": f"{EXTENSIONS},{DELTA_EXTENSION}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    if _is_named("delta-spark", user):
        return settings
    if spark.line not in DELTA_PACKAGES:
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_SPARK",
            f"no Delta is known for Spark {spark.line}; name one with --packages",
        )
    return settings | {"spark.jars.packages": DELTA_PACKAGES[spark.line]}


def iceberg_settings(spark: SparkHome, environ: Mapping[str, str], user: Settings) -> Settings:
    """The settings that make Spark load Iceberg, with its package unless the user names one.

    Raises:
        UnsupportedError: Sieve knows no release of Iceberg for this Spark.
    """
    settings = {
        "spark.sql.extensions": f"{EXTENSIONS},{ICEBERG_EXTENSION}",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
    }
    if (
        "spark.hadoop.hive.metastore.uris" not in user
        and not (user_conf_dir(spark, environ) / "hive-site.xml").exists()
    ):
        # Iceberg opens the embedded metastore through Hive's client. By default, Hive's client
        # finds neither its connection pool nor its tables for locks. The client also rejects an
        # empty metastore, and changes of column types.
        settings |= {
            "spark.hadoop.datanucleus.connectionPoolingType": "dbcp",
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.hive.metastore.schema.verification": "false",
            "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
            "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        }
    if _is_named("iceberg-spark", user):
        return settings
    if spark.line not in ICEBERG_PACKAGES:
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_SPARK",
            f"Sieve indexes Iceberg tables on Spark {', '.join(ICEBERG_PACKAGES)}, not on "
            f"{spark.line}; to use Iceberg all the same, name its package with --packages",
        )
    return settings | {"spark.jars.packages": ICEBERG_PACKAGES[spark.line]}


def shipped_settings(spark: SparkHome, environ: Mapping[str, str]) -> Settings:
    """All settings that ``sieve`` adds and the user may override, such as settings that load Sieve.

    Raises:
        UnavailableError: no Java is installed.
        UnsupportedError: there is no shim jar for this Spark.
    """
    settings = read_properties(conf_file("spark-defaults.conf"))
    settings |= wiring(shim_jar(spark))
    options = []
    if not (user_conf_dir(spark, environ) / "log4j2.properties").exists():
        options.append(log_option())
    archive = class_archive.archive_file(spark, find_java(environ), environ)
    if archive.exists():
        options.append(class_archive.using(archive))
    return settings | ({"spark.driver.extraJavaOptions": " ".join(options)} if options else {})


@dataclass(frozen=True, slots=True)
class Terminal:
    """How `sieve sql` prints rows and the steps of statements.

    Attributes:
        is_one: True if standard error is a terminal and the arguments contain no ``--silent``.
        settings: Spark settings that replace Sieve's defaults.
        environ: environment variables that the shim reads.
    """

    is_one: bool
    settings: Settings
    environ: Mapping[str, str]


def on_terminal(args: Sequence[str]) -> Terminal:
    """Decides how `sieve sql` with these arguments prints rows and steps."""
    rows = "aligned" if sys.stdout.isatty() else "plain"
    if not sys.stderr.isatty() or "-S" in args or "--silent" in args:
        return Terminal(is_one=False, settings={}, environ={"SIEVE_SQL": rows})
    return Terminal(
        is_one=True,
        settings={"spark.ui.showConsoleProgress": "false"},
        environ={"SIEVE_SQL": rows, "SIEVE_SQL_STEPS": "1"},
    )


def submit_command(
    spark: SparkHome,
    environ: Mapping[str, str],
    args: Sequence[str],
    main_class: str | None = None,
    *,
    hudi: bool = False,
    delta: bool = False,
    iceberg: bool = False,
    shown: Settings | None = None,
) -> list[str]:
    """The spark-submit command line, with Sieve's settings merged into the user's settings.

    Args:
        spark: Spark installation to start.
        environ: the user's environment variables.
        args: the user's arguments. If ``main_class`` is None, the first argument that is not an
            option is the script or jar. The program receives all later arguments.
        main_class: Spark class to start, such as a server. This class parses the options in
            ``args`` that spark-submit does not know. None if ``args`` names a script or jar.
        hudi: whether to configure Hudi.
        delta: whether to configure Delta.
        iceberg: whether to configure Iceberg.
        shown: Spark settings that replace Sieve's defaults.

    Raises:
        InvalidInputError: the caller requests several table formats. Each format would replace the
            session catalog.
        UnsupportedError: this Spark has no shim jar, no release of the table format, or no Spark
            Connect.
    """
    if main_class == CONNECT_SERVER_CLASS and not [*(spark.path / "jars").glob("spark-connect_*")]:
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_SPARK",
            f"The Spark {spark.version} at {spark.path} has no spark-connect jar; Spark 4.0 and "
            "later come with it.",
        )
    if hudi + delta + iceberg > 1:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            "Hudi, Delta and Iceberg each replace the session catalog; choose one of "
            "--hudi, --delta and --iceberg",
        )
    given, rest = split_arguments(args, stop_at_program=main_class is None)
    user = user_settings(spark, environ, given)
    ours = shipped_settings(spark, environ) | (shown or {})
    if hudi:
        ours |= hudi_settings(spark, user)
    elif delta:
        ours |= delta_settings(spark, user)
    elif iceberg:
        ours |= iceberg_settings(spark, environ, user)
    conf = [
        part for key, value in merged(ours, user).items() for part in ("--conf", f"{key}={value}")
    ]
    start = ["--class", main_class] if main_class else []
    return [str(spark.path / "bin" / "spark-submit"), *start, *conf, *rest]


def user_settings(spark: SparkHome, environ: Mapping[str, str], given: Settings) -> Settings:
    """The user's settings.

    Settings in the arguments (``given``) override settings in ``spark-defaults.conf``.
    """
    file = given.get("--properties-file") or user_conf_dir(spark, environ) / "spark-defaults.conf"
    return (read_properties(Path(file)) if Path(file).exists() else {}) | given


def environment(spark: SparkHome, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment variables, and variables that make Spark's scripts use this Spark."""
    return {
        # With the value 0, the command-line programs of Spark 4 start their own driver instead of a
        # call to a Connect server. Spark's own script spark-sql also sets this variable.
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        **environ,
        "SPARK_HOME": str(spark.path),
    }


def split_arguments(args: Sequence[str], *, stop_at_program: bool) -> tuple[Settings, list[str]]:
    """Finds the settings in spark-submit arguments, and removes the settings that are lists.

    Returns:
        The settings in the arguments, and the remaining arguments. The settings include the option
        ``--properties-file``. The remaining arguments omit settings that are lists, because the
        launcher merges such settings with Sieve's values.

    Raises:
        InvalidInputError: one of ``--hudi``, ``--delta`` and ``--iceberg`` comes after an option of
            spark-submit.
    """
    given: Settings = {}
    rest: list[str] = []
    position = 0
    while position < len(args):
        option, equals, inline = args[position].partition("=")
        joined = bool(equals) and option.startswith("--")
        if stop_at_program and option in _OWN_OPTIONS:
            raise InvalidInputError(
                "SIEVE_INVALID_OPTION",
                f"{option} must precede all other options: sieve submit {option} ... SCRIPT.py",
            )
        takes_value = option.startswith("-") and option not in _SWITCHES
        if not takes_value and stop_at_program and not option.startswith("-"):
            break
        size = 1 if joined or not takes_value else 2
        words = list(args[position : position + size])
        position += size
        value = inline if joined else words[-1]
        key = _ALIASES.get(option, "")
        if option in {"--conf", "-c"}:
            key, _, value = value.partition("=")
        if key or option == "--properties-file":
            given[key or option] = value
        if key not in SEPARATORS:
            rest += words
    return given, [*rest, *args[position:]]
