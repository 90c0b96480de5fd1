"""Settings: which values each takes, and what stands for a wrong one."""

from __future__ import annotations

import pytest
from setting_values import INVALID, VALID

from sieve.errors import InvalidInputError
from sieve.metadata.history import Retention
from sql_ext.driver.settings import DEFAULTS, parse_settings, valid_settings

ALLOWED = {
    "spark.sieve.enabled": "true or false",
    "spark.sieve.audit.sample": "a number from 0 to 1",
    "spark.sieve.path": "an absolute path or URI",
    "spark.sieve.prune.timeout": "a duration such as 30s",
    "spark.sieve.versions.retain": "a number of versions, 1 or more, and an age",
    "spark.sieve.cache.bytes": "a size such as 256MB",
}


def test_valid_values_are_accepted() -> None:
    """Every form in which a value can be written."""
    for key, values in VALID.items():
        for value in values:
            parse_settings({key: value})


def test_invalid_values_are_refused_by_name() -> None:
    """The error names key, value and what is allowed; work that must not fail has the default."""
    for key, values in INVALID.items():
        for value in values:
            with pytest.raises(InvalidInputError) as refusal:
                parse_settings({key: value})
            assert refusal.value.condition == "SIEVE_INVALID_SETTING"
            assert f"{key} = '{value}' is not valid; allowed: " in refusal.value.message
            assert ALLOWED.get(key, "") in refusal.value.message
            assert valid_settings({key: value}) == DEFAULTS


def test_values_are_read_in_their_units() -> None:
    """Bare durations are milliseconds, as under Spark's own keys; sizes are binary."""
    read = parse_settings(
        {
            "spark.sieve.prune.timeout": "250",
            "spark.sieve.registry.ttl": "2 MIN",
            "spark.sieve.cache.bytes": "3 kB",
            "spark.sieve.versions.retain": "3, 2d",
            "spark.sieve.roots": " file:/a , /b,",
            "spark.sieve.path": " /c ",
            "spark.sieve.single.writer": "TRUE",
            "spark.sieve.unknown": "x",
        }
    )
    assert (read.prune_timeout_s, read.registry_ttl_s, read.cache_bytes) == (0.25, 120.0, 3072)
    assert (read.retention, read.roots, read.path) == (Retention(3, 48.0), ("file:/a", "/b"), "/c")
    assert read.single_writer
    assert not DEFAULTS.single_writer
    assert valid_settings({"spark.sieve.single.writer": "maybe"}) == DEFAULTS
    assert (DEFAULTS.prune_timeout_s, DEFAULTS.cache_bytes) == (0.5, 256 << 20)
    assert (DEFAULTS.retention, DEFAULTS.path, DEFAULTS.roots) == (Retention(10, 168.0), None, ())
