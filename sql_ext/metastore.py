"""The Hive Metastore server in Spark's jars: its settings file and its command line."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sieve.errors import InvalidInputError
from sql_ext.launch import log_option
from sql_ext.spark_home import SparkHome, conf_file, find_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DRIVERS = {
    "derby": "org.apache.derby.jdbc.EmbeddedDriver",
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
}


@dataclass(frozen=True, slots=True)
class Database:
    """Where the metastore keeps its tables.

    Attributes:
        jdbc: JDBC URL of the database.
        user: its user; Derby's own default when ``None``.
        password: never put on a command line, where every local user could read it.
    """

    jdbc: str
    user: str | None = None
    password: str | None = None

    @property
    def driver(self) -> str:
        """The JDBC driver class, by the kind of database in the URL."""
        kind = self.jdbc.removeprefix("jdbc:").split(":")[0]
        if not self.jdbc.startswith("jdbc:") or kind not in _DRIVERS:
            raise InvalidInputError(
                "SIEVE_JDBC_URL",
                f"{self.jdbc} is no JDBC URL of a database Sieve knows: {', '.join(_DRIVERS)}.",
            )
        return _DRIVERS[kind]


def derby_in(folder: Path) -> Database:
    """The Derby database that an embedded metastore started in ``folder`` would use, too."""
    return Database(f"jdbc:derby:;databaseName={folder / 'metastore_db'};create=true")


def write_site(path: Path, database: Database, warehouse: Path) -> None:
    """Writes the shipped settings with the database's added, readable by the owner alone."""
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
    """Starts the metastore of Spark's jars with the settings in ``site_dir``.

    Args:
        spark: whose jars to run.
        environ: where ``java`` is looked up.
        site_dir: folder with the ``hive-site.xml`` to use.
        port: the TCP port to listen on.
        jars: JDBC drivers that Spark does not ship.
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
