"""The settings ``spark.sieve.*`` that the front end acts on, as a session's request has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sieve.errors import InvalidInputError
from sieve.history import KEPT_BY_DEFAULT, Retention

_DURATION = re.compile(r"\s*(\d+)\s*(us|ms|s|m|min|h|d)?\s*", re.IGNORECASE)
_SIZE = re.compile(r"\s*(\d{1,15})\s*([kmgt]?)b?\s*", re.IGNORECASE | re.ASCII)
_RETENTION = re.compile(r"\s*(\d{1,9})\s*,\s*(\d{1,9})\s*([hd])\s*", re.IGNORECASE | re.ASCII)
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session has set, or the defaults.

    Attributes:
        path: folder for new indexes; None for ``.sieve`` in the database's own folder.
        roots: further folders in which indexes are honoured, set by the administrator.
        prune_timeout_s: seconds that a scan waits for its answer.
        registry_ttl_s: seconds after which a version read once is looked for again.
        cache_bytes: what the front end holds of index files at most.
        retention: which versions of the past VACUUM leaves as they are.
    """

    path: str | None = None
    roots: tuple[str, ...] = ()
    prune_timeout_s: float = 0.5
    registry_ttl_s: float = 30.0
    cache_bytes: int = 256 << 20
    retention: Retention = KEPT_BY_DEFAULT


def parse_settings(conf: Mapping[str, str]) -> Settings:
    """The record for a session's ``spark.sieve.*`` entries.

    Raises:
        InvalidInputError: a value is not of its setting's form.
    """
    path = conf.get("spark.sieve.path", "").strip() or None
    roots = tuple(
        root.strip() for root in conf.get("spark.sieve.roots", "").split(",") if root.strip()
    )
    default = Settings()
    return Settings(
        path,
        roots,
        _prune_timeout(conf, default.prune_timeout_s),
        _seconds(conf, "spark.sieve.registry.ttl", default.registry_ttl_s),
        _size(conf, "spark.sieve.cache.bytes", default.cache_bytes),
        _retention(conf, "spark.sieve.versions.retain", default.retention),
    )


def _prune_timeout(conf: Mapping[str, str], default: float) -> float:
    """The shim, which keeps the time, takes what it cannot read for the default, too."""
    try:
        return _seconds(conf, "spark.sieve.prune.timeout", default)
    except InvalidInputError:
        return default


def _seconds(conf: Mapping[str, str], key: str, default: float) -> float:
    text = conf.get(key)
    if text is None:
        return default
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InvalidInputError(
            "SIEVE_INVALID_SETTING", f"{key} = {text!r} is not a duration such as 30s or 500ms"
        )
    # Spark reads a bare number under a key of this kind as milliseconds.
    return int(match[1]) * _SECONDS[(match[2] or "ms").lower()]


def _retention(conf: Mapping[str, str], key: str, default: Retention) -> Retention:
    text = conf.get(key)
    if text is None:
        return default
    match = _RETENTION.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise InvalidInputError(
            "SIEVE_INVALID_SETTING",
            f"{key} = {text!r} is not a number of versions, 1 or more, and an age, such as 10, 7d",
        )
    return Retention(int(match[1]), int(match[2]) * (24.0 if match[3].lower() == "d" else 1.0))


def _size(conf: Mapping[str, str], key: str, default: int) -> int:
    text = conf.get(key)
    if text is None:
        return default
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InvalidInputError(
            "SIEVE_INVALID_SETTING", f"{key} = {text!r} is not a size such as 256MB or 1g"
        )
    return int(match[1]) * _BYTES[match[2].lower()]
