"""Starts an Iceberg REST catalog for tests.

Iceberg's test servlet runs in a separate JVM, and stores the catalog in an SQLite database.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

FOLDER = Path(__file__).parents[2] / "build" / "iceberg" / "rest"
# The server always uses the jars of Spark 4.1, because these jars include Jetty and Hadoop.
SPARK = Path(sysconfig.get_path("purelib")) / "pyspark" / "jars"


@contextmanager
def rest_server(folder: Path) -> Iterator[str]:
    """Starts the catalog's server, yields its URI, and stops it afterwards.

    Args:
        folder: an existing folder for the catalog's database and for the tables.
    """
    if not any(FOLDER.glob("*.jar")):
        pytest.fail(f"{FOLDER} has no jars: run `make test-iceberg`.", pytrace=False)
    port = launch_gateway(
        classpath=os.pathsep.join([f"{FOLDER}/*", f"{SPARK}/*"]),
        jarpath=str(next(SPARK.glob("py4j-*.jar"))),
        javaopts=["-Xmx256m"],
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    jvm: Any = gateway.jvm
    iceberg, jetty = jvm.org.apache.iceberg, jvm.org.sparkproject.jetty
    backend = iceberg.jdbc.JdbcCatalog()
    backend.setConf(jvm.org.apache.hadoop.conf.Configuration())
    backend.initialize("backend", {
        "uri": f"jdbc:sqlite:{folder}/catalog.db",
        "warehouse": str(folder / "warehouse"),
        "jdbc.schema-version": "V1",
    })  # fmt: skip
    servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(backend))
    handler = jetty.servlet.ServletContextHandler()
    handler.addServlet(jetty.servlet.ServletHolder(servlet), "/*")
    server = jetty.server.Server(0)
    server.setHandler(handler)
    server.start()
    try:
        yield f"http://localhost:{server.getURI().getPort()}"
    finally:
        server.stop()
        gateway.shutdown()
