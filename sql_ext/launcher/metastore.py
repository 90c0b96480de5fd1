"""Creates the settings file and the command line of the Hive Metastore server in Spark's jars.

Only one process at a time can use Spark's embedded metastore, a Derby database. If a metastore
server runs, several Spark processes can share its catalog.
"""

from __future__ import annotations

import fcntl
import os
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sieve.client.spark_conf import user_conf_dir
from sieve.client.spark_home import SparkHome
from sieve.errors import ConflictError, InvalidInputError
from sql_ext.launcher import launch
from sql_ext.launcher.conf_files import conf_file, find_java, log_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DRIVERS = {
    "derby": "org.apache.derby.jdbc.EmbeddedDriver",
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
}

# Each of these settings makes Spark use another metastore than the one in its working directory.
_ELSEWHERE = (
    "spark.hadoop.hive.metastore.uris",
    "spark.hive.metastore.uris",
    "spark.hadoop.javax.jdo.option.ConnectionURL",
)


@dataclass(frozen=True, slots=True)
class Database:
    """The relational database in which the metastore server stores the catalog.

    Attributes:
        jdbc: JDBC URL of the database.
        user: name of the database user. None for Derby's default user.
        password: the database user's password. Every local user can read command lines, so Sieve
            never puts the password on a command line.
    """

    jdbc: str
    user: str | None = None
    password: str | None = None

    @property
    def driver(self) -> str:
        """The class of the JDBC driver, chosen by the kind of database in the URL."""
        kind = self.jdbc.removeprefix("jdbc:").split(":")[0]
        if not self.jdbc.startswith("jdbc:") or kind not in _DRIVERS:
            raise InvalidInputError(
                "SIEVE_JDBC_URL",
                f"{self.jdbc} is no JDBC URL of a database Sieve knows: {', '.join(_DRIVERS)}.",
            )
        return _DRIVERS[kind]


def derby_in(folder: Path) -> Database:
    """The Derby database that a Spark with working directory ``folder`` uses as its metastore."""
    return Database(f"jdbc:derby:;databaseName={folder / 'metastore_db'};create=true")


def is_embedded(settings: Mapping[str, str], conf_dir: Path) -> bool:
    """Returns whether Spark would open the Derby metastore in its working directory.

    Args:
        settings: the user's settings, which may name a metastore server or database.
        conf_dir: the user's configuration folder. Sieve assumes that a ``hive-site.xml`` in this
            folder names another metastore.
    """
    elsewhere = any(key in settings for key in _ELSEWHERE)
    in_memory = settings.get("spark.sql.catalogImplementation") == "in-memory"
    return not (elsewhere or in_memory or (conf_dir / "hive-site.xml").exists())


def refuse_locked_metastore(
    spark: SparkHome, environ: Mapping[str, str], args: Sequence[str]
) -> None:
    """Raises an error if another process already uses the metastore that a program would open.

    Args:
        spark: Spark that runs the program.
        environ: the user's environment variables.
        args: the program's command line. The check ignores a metastore that a script configures.

    Raises:
        ConflictError: another process has opened the Derby metastore of the working directory.
    """
    given, _ = launch.split_arguments(args, stop_at_program=False)
    settings = launch.user_settings(spark, environ, given)
    if is_embedded(settings, user_conf_dir(spark, environ)):
        refuse_locked(Path.cwd())


def refuse_locked(folder: Path) -> None:
    """Raises an error if another process uses the Derby metastore in ``folder``.

    Derby itself would reject a second process with about a thousand lines of output.

    Raises:
        ConflictError: another process has opened the Derby metastore in ``folder``.
    """
    if _derby_locked(folder / "metastore_db"):
        raise ConflictError(
            "SIEVE_METASTORE_HELD",
            f"Another program uses the embedded metastore {folder / 'metastore_db'}, which serves "
            "one program at a time. If it is a Thrift server, connect with `sieve beeline`. Else "
            "end it, or let both programs use a server: `sieve metastore start`.",
        )


def _derby_locked(database: Path) -> bool:
    """Returns whether a running process holds the lock of this Derby database."""
    try:
        with (database / "dbex.lck").open("r+b") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no database yet, or a missing permission, which Derby reports
    return False


def write_site(path: Path, database: Database, warehouse: Path) -> None:
    """Writes the settings of Sieve and of the database to a file that only its owner can read."""
    tree = ET.parse(conf_file("metastore-site.xml"))  # noqa: S314 - our own file
    settings = {
        "javax.jdo.option.ConnectionURL": database.jdbc,
        "javax.jdo.option.ConnectionDriverName": database.driver,
        "javax.jdo.option.ConnectionUserName": database.user,
        "javax.jdo.option.ConnectionPassword": database.password,
        "hive.metastore.warehouse.dir": warehouse.as_uri(),
    }
    for name, value in settings.items():
        if value is not None:
            prop = ET.SubElement(tree.getroot(), "property")
            ET.SubElement(prop, "name").text = name
            ET.SubElement(prop, "value").text = value
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        tree.write(file, encoding="utf-8", xml_declaration=True)


def command(
    spark: SparkHome,
    environ: Mapping[str, str],
    site_dir: Path,
    port: int,
    jars: Sequence[Path] = (),
) -> list[str]:
    """The command line that starts the metastore server with the settings in ``site_dir``.

    Args:
        spark: Spark installation whose jars contain the metastore server.
        environ: environment variables that determine which ``java`` runs the server.
        site_dir: folder that contains the server's ``hive-site.xml``.
        port: TCP port on which the server listens.
        jars: jars of JDBC drivers that are not among Spark's jars.
    """
    path = [str(site_dir), *map(str, jars), str(spark.path / "jars" / "*")]
    return [
        find_java(environ),
        "-Xmx512m",
        log_option(),
        "-cp",
        os.pathsep.join(path),
        "org.apache.hadoop.hive.metastore.HiveMetaStore",
        "-p",
        str(port),
    ]
