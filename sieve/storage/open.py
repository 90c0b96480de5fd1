"""Opens the store of a URI by its scheme: local files, or S3 or HDFS through the driver's JVM.

``file:`` needs no JVM. ``s3a:`` uses conditional puts. The HDFS store gets all other schemes, and
refuses a scheme without an atomic rename.
"""

from __future__ import annotations

from typing import Any

from sieve.storage.hdfs import HadoopStore
from sieve.storage.interface import Store, split
from sieve.storage.local import LocalStore
from sieve.storage.s3 import S3Store


def store_for(uri: str, jvm: Any, conf: Any, *, single_writer: bool = False) -> Store:
    """The store of a URI by its scheme: local files, or S3 or HDFS through the driver's JVM.

    Args:
        jvm: py4j view of the driver's JVM.
        conf: the session's ``org.apache.hadoop.conf.Configuration``, a py4j object.
        single_writer: whether the user asserts that no other driver writes indexes on S3.
    """
    scheme, _, _ = split(uri)
    if scheme == "file":
        return LocalStore()
    if scheme == "s3a":
        return S3Store(jvm, conf, single_writer=single_writer)
    return HadoopStore(jvm, conf)
