"""Tests the settings of the session that reads a column."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sieve.tables.reading_conf import Conf, reading_conf

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
WHOLE: Conf = (("spark.sql.optimizer.nestedSchemaPruning.enabled", "false"),)
UNBOUND: Conf = ((BYTES, str(2**31 - 1)),)


def session(*keys: str) -> Any:
    """A session of a Spark version with the given settings."""

    def option(key: str) -> Any:
        return SimpleNamespace(isEmpty=lambda: key not in keys)

    return SimpleNamespace(conf=lambda: SimpleNamespace(getOption=option))


@pytest.mark.parametrize(
    ("parts", "whole_texts", "keys", "conf"),
    [
        ({}, False, [BYTES], UNBOUND),
        ({}, True, [BYTES], ()),
        ({}, False, [], ()),
        ({"structs": "whole"}, False, [BYTES], WHOLE + UNBOUND),
        ({"structs": "whole"}, True, [BYTES], WHOLE),
        ({"structs": "whole"}, False, [], WHOLE),
        ({"structs": "pruned"}, True, [BYTES], ()),
    ],
)
def test_settings_for_reading_a_column(
    parts: dict[str, str], whole_texts: bool, keys: list[str], conf: Conf
) -> None:
    """A build reads a struct with a default value as a whole.

    Batches have a limit of bytes only if the build reads whole texts.
    """
    assert reading_conf(session(*keys), parts, whole_texts=whole_texts) == conf
