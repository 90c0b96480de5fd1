"""Spark settings in which a build's session differs from the user's session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Conf = tuple[tuple[str, str], ...]
"""Keys of Spark settings and their values."""

_BYTES_OF_A_BATCH: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_FIELDS_OF_STRUCTS: Final = "spark.sql.optimizer.nestedSchemaPruning.enabled"


def reading_conf(session: Any, parts: Mapping[str, str], *, whole_texts: bool) -> Conf:
    """The settings for a copy of the session that reads one column of a table.

    A struct with a default is read with all of its fields, because Spark loses the default when it
    prunes some of them. If values have a maximum width, batches have no limit of bytes, since the
    limit of rows is enough. From 4.1 on, Spark measures a batch after each row. For numbers this
    costs more than the whole remaining work of reading, for texts a third of it.

    Args:
        session: the user's session, a py4j object.
        whole_texts: whether Python gets whole strings or binary values, not their leading bytes.
    """
    conf: Conf = ((_FIELDS_OF_STRUCTS, "false"),) if parts.get("structs") == "whole" else ()
    if whole_texts or session.conf().getOption(_BYTES_OF_A_BATCH).isEmpty():
        return conf
    return (*conf, (_BYTES_OF_A_BATCH, str(2**31 - 1)))
