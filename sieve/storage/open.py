"""Opens the store for a URI: local files, or HDFS or S3 through the driver's JVM.

The URI's scheme determines the kind of store. The store for ``file:`` needs no JVM. The store for
``s3a:`` uses conditional puts. A URI with any other scheme goes to the store for HDFS, which
accepts only ``hdfs:``.
"""

from __future__ import annotations

from typing import Any

from sieve.storage.hdfs import HadoopStore
from sieve.storage.interface import Store, split
from sieve.storage.local import LocalStore
from sieve.storage.s3 import S3Store


def store_for(uri: str, jvm: Any, conf: Any, *, single_writer: bool = False) -> Store:
    """Returns the store for a URI, according to its scheme.

    Args:
        jvm: the py4j view of the driver's JVM.
        conf: the session's ``org.apache.hadoop.conf.Configuration``, a py4j object.
        single_writer: whether the user asserts that no other driver writes to indexes on this S3
            store.
    """
    scheme, _, _ = split(uri)
    if scheme == "file":
        return LocalStore()
    if scheme == "s3a":
        return S3Store(jvm, conf, single_writer=single_writer)
    return HadoopStore(jvm, conf)
