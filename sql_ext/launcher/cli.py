"""Command line ``sieve``: starts Spark's shells, programs and servers with Sieve configured."""

from __future__ import annotations

import getpass
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import click

import sieve
from sieve.client.spark_conf import read_properties, wiring
from sieve.client.spark_home import SparkHome, find_spark, shim_jar
from sieve.errors import SieveError, UnavailableError
from sql_ext.launcher import class_archive, event_log_report, launch, metastore, servers
from sql_ext.launcher.command_options import (
    PASS_ON,
    UP_TO_PROGRAM,
    notes,
    spark_arguments,
    with_delta,
    with_hudi,
    with_iceberg,
)
from sql_ext.launcher.conf_files import conf_file, find_java, log_option
from sql_ext.launcher.server_commands import connect, jdbc_url, metastore_group, thriftserver
from sql_ext.statements.commands import quote


class _Commands(click.Group):
    """The command group `sieve`.

    The command prints Sieve's own errors as one line, not as a stack trace.
    """

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SieveError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Commands)
@click.version_option(sieve.__version__, prog_name="sieve")
def main() -> None:
    """Data-skipping indexes for Spark SQL.

    Runs the Spark at SPARK_HOME, else the pyspark installed beside Sieve. Options that are not
    listed go on to spark-submit: --conf key=value, --master, --packages, ...
    """


@main.command(context_settings=PASS_ON)
@with_hudi
@with_delta
@with_iceberg
@spark_arguments
def sql(hudi: bool, delta: bool, iceberg: bool, args: tuple[str, ...]) -> NoReturn:
    """Starts Spark's SQL shell.

    \b
    sieve sql                     opens a prompt
    sieve sql -e 'SHOW TABLES'    runs statements
    sieve sql -f report.sql       runs a file
    sieve sql --hudi              opens a prompt; tables USING hudi work
    sieve sql --delta             opens a prompt; tables USING delta work
    sieve sql --iceberg           opens a prompt; tables USING iceberg work
    """  # noqa: D301 - click's mark for lines to keep, which a raw string would spell out
    spark = find_spark(os.environ)
    metastore.refuse_locked_metastore(spark, os.environ, args)
    main_class = launch.SPARK_SQL_CLASS
    terminal = launch.on_terminal(args)
    command = launch.submit_command(
        spark,
        os.environ,
        args,
        main_class,
        hudi=hudi,
        delta=delta,
        iceberg=iceberg,
        shown=terminal.settings,
    )
    if terminal.is_one:
        notes.print(f"Starting Spark {spark.version}")
    _become(spark, command, {**os.environ, **terminal.environ})


@main.command(context_settings=UP_TO_PROGRAM)
@with_hudi
@with_delta
@with_iceberg
@spark_arguments
def submit(hudi: bool, delta: bool, iceberg: bool, args: tuple[str, ...]) -> NoReturn:
    """Runs a program: sieve submit [OPTIONS] SCRIPT.py [ARG ...]."""
    if not args:
        raise click.UsageError("name the script or jar to run: sieve submit SCRIPT.py [ARG ...]")
    spark = find_spark(os.environ)
    _become(
        spark,
        launch.submit_command(spark, os.environ, args, hudi=hudi, delta=delta, iceberg=iceberg),
    )


@main.command(context_settings=PASS_ON)
@spark_arguments
def beeline(args: tuple[str, ...]) -> NoReturn:
    """Starts Hive's client of the Thrift server.

    Connects to the server that was started in this directory, unless -u names another server.
    """
    spark = find_spark(os.environ)
    shown = [f"--{k}={v}" for k, v in read_properties(conf_file("beeline.properties")).items()]
    options = [option for option in shown if not _given(option.partition("=")[0], args)]
    if not _given("-u", args):
        port = servers.the_one("thriftserver", None).port
        options += ["-u", jdbc_url("localhost", port)]
        options += [] if _given("-n", args) else ["-n", getpass.getuser()]
    environ = {"SPARK_BEELINE_OPTS": log_option(), **os.environ}
    _become(spark, [str(spark.path / "bin" / "beeline"), *options, *args], environ)


@main.command(context_settings=PASS_ON)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Path of the .png file; by default INDEX.png in this directory.",
)
@with_hudi
@with_delta
@with_iceberg
@spark_arguments
def inspect(
    output: Path | None, hudi: bool, delta: bool, iceberg: bool, args: tuple[str, ...]
) -> NoReturn:
    """Draws an index: sieve inspect [OPTIONS] TABLE INDEX.

    The picture shows the files that queries read for each key, with the index and with min/max
    statistics. It also shows how many files a query for one key reads.
    """
    if len(args) < 2 or any(name.startswith("-") for name in args[-2:]):
        raise click.UsageError("name the table and the index last: sieve inspect TABLE INDEX")
    *options, table, index = args
    if importlib.util.find_spec("matplotlib") is None:
        raise click.ClickException(
            "sieve inspect draws with matplotlib: pip install 'sieve-index[inspect]'"
        )
    output = (output or Path(re.sub(r"[^\w.-]", "_", index) + ".png")).absolute()
    if output.suffix.lower() != ".png" or not output.parent.is_dir():
        raise click.UsageError(f"--output {output}: name a .png file in an existing folder")
    spark = find_spark(os.environ)
    metastore.refuse_locked_metastore(spark, os.environ, tuple(options))
    program = [str(Path(__file__).parent / "inspection" / "__main__.py"), table, index, str(output)]
    command = [*options, *program]
    _become(
        spark,
        launch.submit_command(spark, os.environ, command, hudi=hudi, delta=delta, iceberg=iceberg),
    )


@main.command(context_settings=PASS_ON)
@click.option("--database", help="The database to clean; by default the database `default`.")
@click.option("--retain-hours", type=click.FloatRange(min=0), help="Minimum age; 24.")
@with_hudi
@with_delta
@with_iceberg
@spark_arguments
def gc(
    database: str | None,
    retain_hours: float | None,
    hudi: bool,
    delta: bool,
    iceberg: bool,
    args: tuple[str, ...],
) -> NoReturn:
    """Deletes indexes that belong to no table, like VACUUM SIEVE INDEXES."""
    words = [
        "VACUUM SIEVE INDEXES",
        f"IN {quote(database)}" if database else "",
        "" if retain_hours is None else f"RETAIN {retain_hours!r} HOURS",
    ]
    spark = find_spark(os.environ)
    metastore.refuse_locked_metastore(spark, os.environ, args)
    command = launch.submit_command(
        spark,
        os.environ,
        [*args, "-e", " ".join(filter(None, words))],
        launch.SPARK_SQL_CLASS,
        hudi=hudi,
        delta=delta,
        iceberg=iceberg,
    )
    _become(spark, command)


@main.command()
@click.option(
    "--event-log",
    "folder",
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="Folder of event logs (spark.eventLog.dir), or the log of one application.",
)
@click.option("--json", "in_json", is_flag=True, help="Prints JSON.")
def advise(folder: Path, in_json: bool) -> None:
    """Suggests indexes from the event logs of any Spark, with or without Sieve.

    The command starts no Spark, and shows no constants of queries.
    """
    replay = event_log_report.replay_folder(folder)
    if in_json:
        click.echo(event_log_report.as_json(replay))
    else:
        event_log_report.print_report(replay)


@main.command()
def archive() -> None:
    """Archives Spark's classes, so that later starts of sieve take less time.

    Runs a short session. Run the command again after an upgrade of Spark, Sieve or Java.
    """
    spark = find_spark(os.environ)
    file = class_archive.archive_file(spark, find_java(os.environ), os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    command = launch.submit_command(
        spark,
        os.environ,
        [
            *("--conf", f"spark.driver.extraJavaOptions={class_archive.writing(file)}"),
            *("-e", "; ".join(class_archive.STATEMENTS)),
        ],
        launch.SPARK_SQL_CLASS,
    )
    with notes.status("Running a session"), tempfile.TemporaryDirectory() as folder:
        environ = launch.environment(spark, os.environ)
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, check=False
        )
    if done.returncode != 0 or not file.exists():
        raise UnavailableError(
            "SIEVE_NO_CLASS_ARCHIVE",
            "Java wrote no archive of classes. It cannot, if a folder with files, such as "
            f"SPARK_HOME/conf, is on its class path. {done.stderr[-500:]}".rstrip(),
        )
    click.echo(file)


@main.command()
def conf() -> None:
    """Prints settings for spark-defaults.conf that make an existing Spark load Sieve."""
    spark = find_spark(os.environ)
    lines = wiring(shim_jar(spark))
    click.echo(f"# Sieve {sieve.__version__} for Spark {spark.line} at {spark.path}")
    click.echo(
        "# If a setting exists already, add to its value: lists with commas, paths with colons."
    )
    for key, value in lines.items():
        click.echo(f"{key:<28}  {value}")


for _group in (thriftserver, connect, metastore_group):
    main.add_command(_group)


def _become(
    spark: SparkHome, command: list[str], environ: dict[str, str] | None = None
) -> NoReturn:
    """Replaces this process by the command (exec). So Spark itself gets the terminal and Ctrl-C."""
    sys.stdout.flush()
    os.execve(command[0], command, launch.environment(spark, environ or os.environ))


def _given(option: str, args: tuple[str, ...]) -> bool:
    return any(arg == option or arg.startswith(f"{option}=") for arg in args)
