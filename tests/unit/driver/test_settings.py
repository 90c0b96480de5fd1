"""Settings: which values are accepted or refused, and which defaults replace invalid values."""

from __future__ import annotations

import pytest
from setting_values import INVALID, VALID

from sieve.errors import InvalidInputError
from sieve.metadata.retention import Retention
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
    """Each setting accepts the documented spellings of its values."""
    for key, values in VALID.items():
        for value in values:
            parse_settings({key: value})


def test_invalid_values_are_refused_by_name() -> None:
    """The error for an invalid setting names its key, its value, and the allowed values.

    Background work must not fail, so it replaces an invalid value by the default.
    """
    for key, values in INVALID.items():
        for value in values:
            with pytest.raises(InvalidInputError) as refusal:
                parse_settings({key: value})
            assert refusal.value.condition == "SIEVE_INVALID_SETTING"
            assert f"{key} = '{value}' is not valid; allowed: " in refusal.value.message
            assert ALLOWED.get(key, "") in refusal.value.message
            assert valid_settings({key: value}) == DEFAULTS


def test_values_are_read_in_their_units() -> None:
    """As in Spark, a duration without a unit is in milliseconds, and a size has a binary unit."""
    read = parse_settings(
        {
            "spark.sieve.prune.timeout": "250",
            "spark.sieve.registry.ttl": "2 MIN",
            "spark.sieve.cache.bytes": "3 kB",
            "spark.sieve.versions.retain": "3, 2d",
            "spark.sieve.roots": " file:/a , /b,",
            "spark.sieve.path": " /c ",
            "spark.sieve.single.writer": "TRUE",
            "spark.sieve.history": " True",
            "spark.sieve.unknown": "x",
        }
    )
    assert (read.prune_timeout_s, read.registry_ttl_s, read.cache_bytes) == (0.25, 120.0, 3072)
    assert (read.retention, read.roots, read.path) == (Retention(3, 48.0), ("file:/a", "/b"), "/c")
    assert read.single_writer
    assert read.history
    assert not DEFAULTS.history
    assert not DEFAULTS.single_writer
    assert valid_settings({"spark.sieve.single.writer": "maybe"}) == DEFAULTS
    assert (DEFAULTS.prune_timeout_s, DEFAULTS.cache_bytes) == (0.5, 256 << 20)
    assert (DEFAULTS.retention, DEFAULTS.path, DEFAULTS.roots) == (Retention(10, 168.0), None, ())


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("7", 7), ("7b", 7), ("7k", 7 << 10), ("7KB", 7 << 10), ("7m", 7 << 20), ("7MB", 7 << 20),
        ("7g", 7 << 30), ("7 gb", 7 << 30), ("7t", 7 << 40), ("7TB", 7 << 40),
    ],
)  # fmt: skip
def test_units_of_sizes(text: str, size: int) -> None:
    """The units of sizes are powers of 1,024 bytes."""
    read = parse_settings({"spark.sieve.cache.bytes": text, "spark.sieve.range.bytes": text})
    assert (read.cache_bytes, read.range_bytes) == (size, size)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3us", 3e-6), ("3ms", 3e-3), ("3", 3e-3), ("3s", 3), ("3m", 180), ("3min", 180),
        ("3h", 10_800), ("3d", 259_200),
    ],
)  # fmt: skip
def test_units_of_durations(text: str, seconds: float) -> None:
    """If a duration has no unit, it is in milliseconds."""
    read = parse_settings({"spark.sieve.prune.timeout": text, "spark.sieve.registry.ttl": text})
    assert read.prune_timeout_s == read.registry_ttl_s == pytest.approx(seconds, rel=1e-12)


def test_units_of_ages() -> None:
    """An age is given in hours or in days."""
    for text, hours in (("4, 3h", 3.0), ("4,3D", 72.0)):
        read = parse_settings({"spark.sieve.versions.retain": text})
        assert read.retention == Retention(4, hours)
