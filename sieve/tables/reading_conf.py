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

    Structs with a default are read with all fields, because Spark loses the default if it omits
    some of the fields. If values have a maximum width, the limit of rows per batch is enough, so
    the limit of bytes is removed. From 4.1 on, Spark measures a batch after each row. For numbers,
    the measuring takes more time than all other work of reading; for texts, a third of that time.

    Args:
        session: the user's session, a py4j object.
        whole_texts: whether Python gets whole strings or binary values, not their leading bytes.
    """
    conf: Conf = ((_FIELDS_OF_STRUCTS, "false"),) if parts.get("structs") == "whole" else ()
    if whole_texts or session.conf().getOption(_BYTES_OF_A_BATCH).isEmpty():
        return conf
    return (*conf, (_BYTES_OF_A_BATCH, str(2**31 - 1)))
