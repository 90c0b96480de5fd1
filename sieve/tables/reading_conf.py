"""Spark settings that a build changes in its copy of the user's session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Conf = tuple[tuple[str, str], ...]
"""Names and values of Spark settings."""

_BYTES_OF_A_BATCH: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_FIELDS_OF_STRUCTS: Final = "spark.sql.optimizer.nestedSchemaPruning.enabled"


def reading_conf(session: Any, parts: Mapping[str, str], *, whole_texts: bool) -> Conf:
    """The settings for a copy of the session that reads one column of a table.

    Spark loses a struct's default if it reads only some fields of the struct. So the build reads
    all fields of a struct with a default. If values have a maximum width, the limit of rows per
    batch is enough, so the function removes the limit of bytes. From 4.1 on, Spark measures a batch
    after each row. Measuring numbers takes longer than the rest of the reading. Measuring texts
    takes a third as long as the rest of the reading.

    Args:
        session: the user's session, a py4j object.
        whole_texts: whether Spark sends whole strings and binary values to Python, not only leading
            bytes.
    """
    conf: Conf = ((_FIELDS_OF_STRUCTS, "false"),) if parts.get("structs") == "whole" else ()
    if whole_texts or session.conf().getOption(_BYTES_OF_A_BATCH).isEmpty():
        return conf
    return (*conf, (_BYTES_OF_A_BATCH, str(2**31 - 1)))
