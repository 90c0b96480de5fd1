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
from rich.console import Console

import sieve
from sieve.client.spark_conf import read_properties, user_conf_dir, wiring
from sieve.client.spark_home import SparkHome, find_spark, shim_jar
from sieve.errors import SieveError, UnavailableError
from sql_ext.launcher import advise as advice
from sql_ext.launcher import class_archive, launch, metastore, servers
from sql_ext.launcher.spark_home import conf_file, find_java, log_option
from sql_ext.statements.commands import quote

# Options that are not Sieve's are passed to spark-submit unchanged and in order.
_PASS_ON = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
_UP_TO_PROGRAM = {**_PASS_ON, "allow_interspersed_args": False}

_args = click.argument("args", nargs=-1, type=click.UNPROCESSED)
_hudi = click.option(
    "--hudi", is_flag=True, help="With Hudi: its bundle, catalog, extension and serializer."
)
_delta = click.option(
    "--delta", is_flag=True, help="With Delta: its package, catalog and extension."
)
_host = click.option(
    "--host", default="localhost", show_default=True, help="Address; 0.0.0.0 lets other hosts in."
)
# The kind in the server's record, and its name.
_SPARK_SERVERS = {
    launch.THRIFT_SERVER_CLASS: ("thriftserver", "Thrift server"),
    launch.CONNECT_SERVER_CLASS: ("connect-server", "Spark Connect server"),
}
_notes = Console(stderr=True, highlight=False)


class _Commands(click.Group):
    """Shows Sieve's own errors as one line instead of a stack trace."""

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


@main.command(context_settings=_PASS_ON)
@_hudi
@_delta
@_args
def sql(hudi: bool, delta: bool, args: tuple[str, ...]) -> NoReturn:
    """Spark's SQL shell.

    \b
    sieve sql                     prompts
    sieve sql -e 'SHOW TABLES'    runs statements
    sieve sql -f report.sql       runs a file
    sieve sql --hudi              prompts, and knows tables USING hudi
    sieve sql --delta             prompts, and knows tables USING delta
    """  # noqa: D301 - click's mark for lines to keep, which a raw string would spell out
    spark = find_spark(os.environ)
    _refuse_held_metastore(spark, args)
    main_class = launch.SPARK_SQL_CLASS
    command = launch.submit_command(spark, os.environ, args, main_class, hudi=hudi, delta=delta)
    _become(spark, command)


@main.command(context_settings=_UP_TO_PROGRAM)
@_hudi
@_delta
@_args
def submit(hudi: bool, delta: bool, args: tuple[str, ...]) -> NoReturn:
    """Runs a program: sieve submit [OPTIONS] SCRIPT.py [ARG ...]."""
    if not args:
        raise click.UsageError("name the script or jar to run: sieve submit SCRIPT.py [ARG ...]")
    spark = find_spark(os.environ)
    _become(spark, launch.submit_command(spark, os.environ, args, hudi=hudi, delta=delta))


@main.command(context_settings=_PASS_ON)
@_args
def beeline(args: tuple[str, ...]) -> NoReturn:
    """Hive's client of the Thrift server.

    Connects to the server started in this directory unless -u names another.
    """
    spark = find_spark(os.environ)
    shown = [f"--{k}={v}" for k, v in read_properties(conf_file("beeline.properties")).items()]
    options = [option for option in shown if not _given(option.partition("=")[0], args)]
    if not _given("-u", args):
        port = servers.the_one("thriftserver", None).port
        options += ["-u", _jdbc_url("localhost", port)]
        options += [] if _given("-n", args) else ["-n", getpass.getuser()]
    environ = {"SPARK_BEELINE_OPTS": log_option(), **os.environ}
    _become(spark, [str(spark.path / "bin" / "beeline"), *options, *args], environ)


@main.command(context_settings=_PASS_ON)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Where the picture goes, a .png; by default INDEX.png here.",
)
@_args
def inspect(output: Path | None, args: tuple[str, ...]) -> NoReturn:
    """Draws an index: sieve inspect [OPTIONS] TABLE INDEX.

    Which files it reads for which keys, against their min and max, and how many for one key.
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
        raise click.UsageError(f"--output {output}: name a .png in a folder that is there")
    spark = find_spark(os.environ)
    _refuse_held_metastore(spark, tuple(options))
    program = [str(Path(__file__).parent / "inspection" / "__main__.py"), table, index, str(output)]
    _become(spark, launch.submit_command(spark, os.environ, [*options, *program]))


@main.command(context_settings=_PASS_ON)
@click.option("--database", help="Whose folder to clean; by default the database named default.")
@click.option("--retain-hours", type=click.FloatRange(min=0), help="Age of what may go; 24.")
@_args
def gc(database: str | None, retain_hours: float | None, args: tuple[str, ...]) -> NoReturn:
    """Deletes indexes that no table has, as VACUUM SIEVE INDEXES does."""
    words = [
        "VACUUM SIEVE INDEXES",
        f"IN {quote(database)}" if database else "",
        "" if retain_hours is None else f"RETAIN {retain_hours!r} HOURS",
    ]
    spark = find_spark(os.environ)
    _refuse_held_metastore(spark, args)
    command = [*args, "-e", " ".join(filter(None, words))]
    _become(spark, launch.submit_command(spark, os.environ, command, launch.SPARK_SQL_CLASS))


@main.command()
@click.option(
    "--event-log",
    "folder",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of event logs (spark.eventLog.dir), or of one application's rolling log.",
)
@click.option("--json", "in_json", is_flag=True, help="Prints JSON.")
def advise(folder: Path, in_json: bool) -> None:
    """Names the indexes worth having, by the event logs of any Spark.

    That Spark need not have had Sieve. No Spark is started, and no constant of a query is shown.
    """
    replay = advice.replay_folder(folder)
    if in_json:
        click.echo(advice.as_json(replay))
    else:
        advice.print_report(replay)


@main.command()
def archive() -> None:
    """Archives Spark's classes, so that later starts of sieve take less time.

    Runs a short session once; again after an upgrade of Spark, Sieve or Java.
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
    with _notes.status("Running a session"), tempfile.TemporaryDirectory() as folder:
        environ = launch.environment(spark, os.environ)
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, check=False
        )
    if done.returncode != 0 or not file.exists():
        raise UnavailableError(
            "SIEVE_NO_CLASS_ARCHIVE",
            "Java wrote no archive of classes, which it does not where a folder with files, such "
            f"as SPARK_HOME/conf, is on its class path. {done.stderr[-500:]}".rstrip(),
        )
    click.echo(file)


@main.command()
def conf() -> None:
    """Prints what an existing Spark's spark-defaults.conf needs to load Sieve."""
    spark = find_spark(os.environ)
    lines = wiring(shim_jar(spark))
    click.echo(f"# Sieve {sieve.__version__} for Spark {spark.line} at {spark.path}")
    click.echo(
        "# Where a line of that name exists, add to its value: lists by comma, paths by colon."
    )
    for key, value in lines.items():
        click.echo(f"{key:<28}  {value}")


@main.group()
def thriftserver() -> None:
    """The server that beeline, PyHive and BI tools connect to."""


@thriftserver.command("start", context_settings=_PASS_ON)
@click.option("--port", default=10000, show_default=True, help="TCP port to listen on.")
@_host
@_hudi
@_delta
@_args
def start_thriftserver(
    port: int, host: str, hudi: bool, delta: bool, args: tuple[str, ...]
) -> None:
    """Starts the server; returns when it answers.

    It has no passwords unless you configure some, hence the default host.
    """
    listen = ["--hiveconf", f"hive.server2.thrift.port={port}"]
    listen += ["--hiveconf", f"hive.server2.thrift.bind.host={host}"]
    server = _start_spark(
        launch.THRIFT_SERVER_CLASS, port, host, [*args, *listen], hudi=hudi, delta=delta
    )
    click.echo(_jdbc_url(_reached(host), port))
    _notes.print(f"[dim]pid {server.pid}, log {server.log}; try `sieve beeline`[/dim]")


@thriftserver.command("stop")
@click.option("--port", type=int, help="Which one, when several run here.")
def stop_thriftserver(port: int | None) -> None:
    """Stops the server that was started from this directory."""
    _stop("thriftserver", port)


@main.group()
def connect() -> None:
    """A server of Spark Connect.

    Its clients need neither Spark nor Sieve nor Java.
    """


@connect.command("start", context_settings=_PASS_ON)
@click.option("--port", default=15002, show_default=True, help="TCP port to listen on.")
@_host
@_hudi
@_delta
@_args
def start_connect(port: int, host: str, hudi: bool, delta: bool, args: tuple[str, ...]) -> None:
    """Starts the server; returns when it answers.

    It has no passwords unless you configure some, hence the default host.
    """
    listen = ["--conf", f"spark.connect.grpc.binding.port={port}"]
    listen += ["--conf", f"spark.connect.grpc.binding.address={host}"]
    server = _start_spark(
        launch.CONNECT_SERVER_CLASS, port, host, [*args, *listen], hudi=hudi, delta=delta
    )
    url = f"sc://{_reached(host)}:{port}"
    click.echo(url)
    _notes.print(
        f"[dim]pid {server.pid}, log {server.log}; in Python: "
        f'SparkSession.builder.remote("{url}").getOrCreate()[/dim]'
    )


@connect.command("stop")
@click.option("--port", type=int, help="Which one, when several run here.")
def stop_connect(port: int | None) -> None:
    """Stops the server that was started from this directory."""
    _stop("connect-server", port)


@main.group("metastore")
def metastore_group() -> None:
    """A Hive Metastore of its own process, for several Sparks at once."""


@metastore_group.command("start")
@click.option(
    "--port", default=9083, show_default=True, help="TCP port to listen on, on all hosts."
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where its Derby database and the warehouse lie; by default here, as Spark's own do.",
)
@click.option("--jdbc", help="JDBC URL of another database: PostgreSQL, MySQL or MariaDB.")
@click.option("--user", help="User of that database; its password: SIEVE_METASTORE_PASSWORD.")
@click.option(
    "--jar",
    "jars",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JDBC driver, unless it lies in Spark's jars.",
)
def start_metastore(
    port: int, folder: Path, jdbc: str | None, user: str | None, jars: tuple[Path, ...]
) -> None:
    """Starts the server; returns when it answers.

    It is Hive's own and has no passwords: whoever reaches the port may change every table.
    """
    spark = find_spark(os.environ)
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    password = os.environ.get("SIEVE_METASTORE_PASSWORD")
    database = metastore.Database(jdbc, user, password) if jdbc else metastore.derby_in(folder)
    site = servers.RUN_DIR.absolute() / f"metastore-{port}"
    if jdbc is None:
        metastore.refuse_when_held(folder)
    metastore.write_site(site / "hive-site.xml", database, folder / "spark-warehouse")
    command = metastore.command(spark, os.environ, site, port, [jar.absolute() for jar in jars])
    with _notes.status("Starting the metastore"):
        server = servers.start("metastore", port, command, os.environ, "localhost")
    click.echo(f"--conf spark.hadoop.hive.metastore.uris=thrift://localhost:{port}")
    _notes.print(
        f"[dim]pid {server.pid}, log {server.log}; give this option to sieve sql, ...[/dim]"
    )


@metastore_group.command("stop")
@click.option("--port", type=int, help="Which one, when several run here.")
def stop_metastore(port: int | None) -> None:
    """Stops the server that was started from this directory."""
    _stop("metastore", port)


def _refuse_held_metastore(spark: SparkHome, args: tuple[str, ...]) -> None:
    """For programs that surely open the metastore; a script may configure another."""
    given, _ = launch.split_arguments(args, stop_at_program=False)
    settings = launch.user_settings(spark, os.environ, given)
    if metastore.is_embedded(settings, user_conf_dir(spark, os.environ)):
        metastore.refuse_when_held(Path.cwd())


def _start_spark(
    main_class: str, port: int, host: str, args: list[str], *, hudi: bool, delta: bool
) -> servers.Server:
    """Starts one of Spark's servers, which opens the metastore."""
    spark = find_spark(os.environ)
    kind, name = _SPARK_SERVERS[main_class]
    if not any(server.port == port for server in servers.running(kind)):
        _refuse_held_metastore(spark, tuple(args))
    # First, so that the user's own setting takes precedence; a progress bar is for terminals only.
    quiet = ["--conf", "spark.ui.showConsoleProgress=false"]
    command = launch.submit_command(
        spark, os.environ, [*quiet, *args], main_class, hudi=hudi, delta=delta
    )
    environ = launch.environment(spark, os.environ)
    with _notes.status(f"Starting the {name}"):
        return servers.start(kind, port, command, environ, _reached(host))


def _reached(host: str) -> str:
    """Where a server that listens on this address is reached from this machine."""
    return "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared, not bound


def _stop(kind: str, port: int | None) -> None:
    server = servers.the_one(kind, port)
    with _notes.status(f"Stopping the {kind}"):
        servers.stop(server)
    click.echo(f"Stopped the {kind} on port {server.port}.")


def _become(
    spark: SparkHome, command: list[str], environ: dict[str, str] | None = None
) -> NoReturn:
    """Replaces this process with Spark's (exec), which then owns Ctrl-C, exit code and terminal."""
    sys.stdout.flush()
    os.execve(command[0], command, launch.environment(spark, environ or os.environ))


def _given(option: str, args: tuple[str, ...]) -> bool:
    return any(arg == option or arg.startswith(f"{option}=") for arg in args)


def _jdbc_url(host: str, port: int) -> str:
    return f"jdbc:hive2://{host}:{port}"
