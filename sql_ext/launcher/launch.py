"""Spark command lines: merges Sieve's settings into those that the user configured.

A setting on the command line replaces the user's setting in ``spark-defaults.conf``. For settings
that are lists, such as ``spark.sql.extensions``, the launcher therefore reads the user's values and
appends Sieve's values.
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

# Each option of spark-submit that would override --conf, with the setting that the option sets.
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
    """Returns whether the user's jars or packages contain an artifact."""
    return any(artifact in user.get(key, "") for key in ("spark.jars", "spark.jars.packages"))


def hudi_settings(spark: SparkHome, user: Settings) -> Settings:
    """Settings that make Spark load Hudi, including Hudi's bundle unless the user names one."""
    bundle = f"org.apache.hudi:hudi-spark{spark.line}-bundle_{spark.scala}:{HUDI_VERSION}"
    jars = [jar for jar in user.get("spark.jars", "").split(",") if "hudi-spark" in jar]
    return {
        # In a Thrift server, only the first session finds data sources that are not on this path.
        "spark.driver.extraClassPath": ":".join([str(shim_jar(spark)), *jars]),
        "spark.sql.extensions": f"{EXTENSIONS},{HUDI_EXTENSION}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    } | ({} if _is_named("hudi-spark", user) else {"spark.jars.packages": bundle})


def delta_settings(spark: SparkHome, user: Settings) -> Settings:
    """Settings that make Spark load Delta, including Delta's package unless the user names one.

    Raises:
        UnsupportedError: no release of Delta is known for this Spark.
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
    """Settings that make Spark load Iceberg, including its package unless the user names one.

    Raises:
        UnsupportedError: no release of Iceberg is known for this Spark.
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
        # Iceberg opens the embedded metastore through Hive's client. By default, this client
        # refuses an empty metastore and changes of the types of columns, and does not find its
        # connection pool or its tables for locks.
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
    """All settings of ``sieve`` that the user may override: defaults, logging, loading of Sieve.

    Raises:
        UnavailableError: there is no Java.
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
    """How `sieve sql` shows rows and steps.

    Attributes:
        is_one: whether standard error is a terminal and the user has not requested silence.
        settings: settings that replace Sieve's defaults.
        environ: environment variables that the shim reads.
    """

    is_one: bool
    settings: Settings
    environ: Mapping[str, str]


def on_terminal(args: Sequence[str]) -> Terminal:
    """Decides how a shell with these arguments shows its rows and steps."""
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
    """The spark-submit command line with Sieve's settings merged into the user's.

    Args:
        spark: the Spark installation to start.
        environ: the user's environment variables.
        args: the user's arguments. Without ``main_class``, the first argument that is not an option
            is the script or jar. All later arguments belong to the script or jar.
        main_class: one of Spark's own classes to start, which finds its options in ``args``.
        hudi: whether to configure Hudi too.
        delta: whether to configure Delta too.
        iceberg: whether to configure Iceberg too.
        shown: settings that replace Sieve's usual defaults.

    Raises:
        InvalidInputError: several table formats are requested, but the session catalog can belong
            to only one.
        UnsupportedError: for this Spark, there is no shim jar, no Delta, no Iceberg or no Spark
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
    """The user's settings; a setting in the arguments (``given``) overrides spark-defaults."""
    file = given.get("--properties-file") or user_conf_dir(spark, environ) / "spark-defaults.conf"
    return (read_properties(Path(file)) if Path(file).exists() else {}) | given


def environment(spark: SparkHome, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for Spark's scripts: the user's, with this Spark and Python."""
    return {
        # Spark's script spark-sql also sets this variable. With the value 0, a CLI of Spark 4 uses
        # its own driver instead of a Connect server.
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        **environ,
        "SPARK_HOME": str(spark.path),
    }


def split_arguments(args: Sequence[str], *, stop_at_program: bool) -> tuple[Settings, list[str]]:
    """Extracts the settings from spark-submit arguments.

    Returns:
        The settings that the options set; the key ``--properties-file`` has the file of this
        option. Also the arguments for spark-submit, without those settings that the launcher merges
        with Sieve's settings.

    Raises:
        InvalidInputError: an option of ``sieve`` comes after an option of spark-submit.
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
