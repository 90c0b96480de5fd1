"""Spark settings in which a build's session differs from the user's when it reads a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Conf = tuple[tuple[str, str], ...]
"""Keys of Spark settings and their values."""

_BYTES_OF_A_BATCH: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_FIELDS_OF_STRUCTS: Final = "spark.sql.optimizer.nestedSchemaPruning.enabled"


def reading_conf(session: Any, parts: Mapping[str, str], *, whole_texts: bool) -> Conf:
    """What to set in a copy of the session that reads one column of a table.

    A struct with a default is read with all of its fields: Spark loses the default when it prunes
    some of them. Where values have a greatest width, batches have no limit of bytes, since that on
    their rows is enough: from 4.1 on, Spark measures a batch after each row, which takes longer
    than everything else of reading a number, and a third of reading a text.

    Args:
        session: the user's, a py4j object.
        parts: of the reader's fingerprint.
        whole_texts: whether Python gets strings or binary whole, not their leading bytes.
    """
    conf: Conf = ((_FIELDS_OF_STRUCTS, "false"),) if parts.get("structs") == "whole" else ()
    if whole_texts or session.conf().getOption(_BYTES_OF_A_BATCH).isEmpty():
        return conf
    return (*conf, (_BYTES_OF_A_BATCH, str(2**31 - 1)))
