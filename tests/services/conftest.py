"""Fixtures for PostgreSQL, HDFS and S3 servers, which start when a test first needs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab

from sieve.storage.interface import Store
from sieve.storage.open import store_for
from tests.services import hdfs as name_node
from tests.services import postgres, s3
from tests.services.postgres import Postgres


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgres]:
    """A running PostgreSQL server with an empty database."""
    with postgres.started() as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of an empty HDFS with one data node, without a slash at its end."""
    with name_node.started(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Gate]:
    """The gate in front of an S3 server with three empty buckets."""
    with s3.started(tmp_path_factory.mktemp("s3")) as way:
        yield way


@pytest.fixture
def store(lab: Lab, hdfs: str) -> Store:
    """The store through which Sieve accesses the files of this HDFS."""
    return store_for(hdfs + "/", lab.spark._jvm, lab.spark._jsc.hadoopConfiguration())
