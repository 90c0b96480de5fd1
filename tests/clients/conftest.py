"""Starts a real metastore server and a real Thrift server, which the client tests share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import sieve
from ports import free_ports


@dataclass(frozen=True, slots=True)
class Site:
    """A working folder for the servers and for the ``sieve`` command, and the servers' ports.

    Attributes:
        folder: the working folder.
        metastore_port: the port of the metastore server.
        thrift_port: the port of the Thrift server.
        ui_port: the port of the Thrift server's user interface.
        other_port: a free port.
    """

    folder: Path
    metastore_port: int
    thrift_port: int
    ui_port: int
    other_port: int

    @property
    def metastore_option(self) -> list[str]:
        """The option that connects Spark to the metastore server."""
        uri = f"thrift://localhost:{self.metastore_port}"
        return ["--conf", f"spark.hadoop.hive.metastore.uris={uri}"]

    def sieve(self, *args: str) -> str:
        """Runs ``sieve`` in the folder until the command ends; returns its standard output."""
        return sieve(self.folder, *args)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Starts the servers with the commands that a user would type; stops them at the end."""
    site = Site(tmp_path_factory.mktemp("site"), *free_ports(4))
    settings = {
        "spark.ui.port": site.ui_port,
        "spark.acls.enable": "true",
        "spark.sql.shuffle.partitions": 4,
        # With a shorter time-out, tests would fail on a busy machine.
        "spark.sieve.start.timeout": "120s",
    }
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    uri = site.sieve("metastore", "start", "--port", str(site.metastore_port))
    assert uri.split() == site.metastore_option
    try:
        url = site.sieve(
            *("thriftserver", "start", "--port", str(site.thrift_port)),
            *(*site.metastore_option, *conf),
        )
        assert url.strip() == f"jdbc:hive2://localhost:{site.thrift_port}"
        yield site
        site.sieve("thriftserver", "stop")
    finally:
        site.sieve("metastore", "stop")
