"""Commands of ``sieve`` that start and stop the Thrift, Spark Connect and metastore servers."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sieve.client.spark_home import find_spark
from sql_ext.launcher import launch, metastore, servers
from sql_ext.launcher.command_options import (
    PASS_ON,
    notes,
    spark_arguments,
    with_delta,
    with_hudi,
    with_iceberg,
)

_host = click.option(
    "--host", default="localhost", show_default=True, help="Address; 0.0.0.0 lets other hosts in."
)
# Maps the class of a server to its kind, as in `servers`, and to its name in messages.
_SPARK_SERVERS = {
    launch.THRIFT_SERVER_CLASS: ("thriftserver", "Thrift server"),
    launch.CONNECT_SERVER_CLASS: ("connect-server", "Spark Connect server"),
}


@click.group()
def thriftserver() -> None:
    """The server that beeline, PyHive and BI tools connect to."""


@thriftserver.command("start", context_settings=PASS_ON)
@click.option("--port", default=10000, show_default=True, help="TCP port to listen on.")
@_host
@with_hudi
@with_delta
@with_iceberg
@spark_arguments
def start_thriftserver(
    port: int, host: str, hudi: bool, delta: bool, iceberg: bool, args: tuple[str, ...]
) -> None:
    """Starts the Thrift server; returns when the server answers.

    By default, the server has no passwords, so it listens only on localhost.
    """
    listen = ["--hiveconf", f"hive.server2.thrift.port={port}"]
    listen += ["--hiveconf", f"hive.server2.thrift.bind.host={host}"]
    server = _start_spark(
        launch.THRIFT_SERVER_CLASS,
        port,
        host,
        [*args, *listen],
        hudi=hudi,
        delta=delta,
        iceberg=iceberg,
    )
    click.echo(jdbc_url(_reached(host), port))
    notes.print(f"[dim]pid {server.pid}, log {server.log}; try `sieve beeline`[/dim]")


@click.group()
def connect() -> None:
    """A server of Spark Connect.

    Clients of Spark Connect need neither Spark nor Sieve nor Java.
    """


@connect.command("start", context_settings=PASS_ON)
@click.option("--port", default=15002, show_default=True, help="TCP port to listen on.")
@_host
@with_hudi
@with_delta
@with_iceberg
@spark_arguments
def start_connect(
    port: int, host: str, hudi: bool, delta: bool, iceberg: bool, args: tuple[str, ...]
) -> None:
    """Starts the Spark Connect server; returns when the server answers.

    By default, the server has no passwords, so it listens only on localhost.
    """
    listen = ["--conf", f"spark.connect.grpc.binding.port={port}"]
    listen += ["--conf", f"spark.connect.grpc.binding.address={host}"]
    server = _start_spark(
        launch.CONNECT_SERVER_CLASS,
        port,
        host,
        [*args, *listen],
        hudi=hudi,
        delta=delta,
        iceberg=iceberg,
    )
    url = f"sc://{_reached(host)}:{port}"
    click.echo(url)
    notes.print(
        f"[dim]pid {server.pid}, log {server.log}; in Python: "
        f'SparkSession.builder.remote("{url}").getOrCreate()[/dim]'
    )


@click.group("metastore")
def metastore_group() -> None:
    """A Hive Metastore in a separate process, for several Sparks at once."""


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
    """Starts the metastore server; returns when the server answers.

    The server is Hive's own and has no passwords. Everyone with access to the port can change every
    table.
    """
    spark = find_spark(os.environ)
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    password = os.environ.get("SIEVE_METASTORE_PASSWORD")
    database = metastore.Database(jdbc, user, password) if jdbc else metastore.derby_in(folder)
    site = servers.RUN_DIR.absolute() / f"metastore-{port}"
    if jdbc is None:
        metastore.refuse_locked(folder)
    metastore.write_site(site / "hive-site.xml", database, folder / "spark-warehouse")
    command = metastore.command(spark, os.environ, site, port, [jar.absolute() for jar in jars])
    with notes.status("Starting the metastore"):
        server = servers.start("metastore", port, command, os.environ, "localhost")
    click.echo(f"--conf spark.hadoop.hive.metastore.uris=thrift://localhost:{port}")
    notes.print(
        f"[dim]pid {server.pid}, log {server.log}; give this option to sieve sql, ...[/dim]"
    )


def _start_spark(
    main_class: str,
    port: int,
    host: str,
    args: list[str],
    *,
    hudi: bool,
    delta: bool,
    iceberg: bool,
) -> servers.Server:
    """Starts a Thrift server or a Spark Connect server."""
    spark = find_spark(os.environ)
    kind, name = _SPARK_SERVERS[main_class]
    if not any(server.port == port for server in servers.running(kind)):
        metastore.refuse_locked_metastore(spark, os.environ, args)
    # Switches progress bars off, because a server writes to a log file instead of a terminal. The
    # user's options follow this option and can override it.
    quiet = ["--conf", "spark.ui.showConsoleProgress=false"]
    command = launch.submit_command(
        spark, os.environ, [*quiet, *args], main_class, hudi=hudi, delta=delta, iceberg=iceberg
    )
    environ = launch.environment(spark, os.environ)
    with notes.status(f"Starting the {name}"):
        return servers.start(kind, port, command, environ, _reached(host))


def _reached(host: str) -> str:
    """The address at which this machine can reach a server that listens on address ``host``."""
    return "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared, not bound


def _add_stop(group: click.Group, kind: str, name: str) -> None:
    @group.command("stop", help=f"Stops the {name} that was started from this directory.")
    @click.option("--port", type=int, help="Which one, when several run here.")
    def stop(port: int | None) -> None:
        server = servers.the_one(kind, port)
        with notes.status(f"Stopping the {kind}"):
            servers.stop(server)
        click.echo(f"Stopped the {kind} on port {server.port}.")


for _group, _kind, _name in (
    (thriftserver, "thriftserver", "Thrift server"),
    (connect, "connect-server", "Spark Connect server"),
    (metastore_group, "metastore", "metastore server"),
):
    _add_stop(_group, _kind, _name)


def jdbc_url(host: str, port: int) -> str:
    """The JDBC URL at which clients connect to a Thrift server."""
    return f"jdbc:hive2://{host}:{port}"
