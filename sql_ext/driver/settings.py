"""Parses the values of the settings ``spark.sieve.*`` that a request of a session contains.

The file ``settings.json`` is the only list of the settings' names, patterns, defaults and
descriptions. This module and the shim read ``settings.json``. ``SET`` fails for an invalid value,
and warns about an unknown name. An invalid value can also come from ``spark-defaults.conf`` or
``--conf``. Statements then fail, and scans use the default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from sieve.errors import InvalidInputError
from sieve.metadata.retention import Retention

_LIST: Final[Mapping[str, Any]] = json.loads(
    resources.files("sql_ext").joinpath("settings.json").read_text(encoding="utf-8")
)
_PATTERNS = {name: re.compile(form["pattern"], re.ASCII) for name, form in _LIST["forms"].items()}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of a session's settings. An unset setting has its default value.

    Attributes:
        path: folder for new indexes. If the value is None, new indexes are in ``.sieve`` in the
            database's own folder.
        roots: further folders that may contain indexes. The administrator sets this list.
        prune_timeout_s: maximum time in seconds that a scan waits for the front end's answer.
        registry_ttl_s: number of seconds until Sieve checks a cached index version for a newer
            version.
        cache_bytes: maximum size of the front end's cache of index files, in bytes.
        range_bytes: minimum size in bytes of a file that an index can divide into ranges.
        retention: which earlier versions of an index VACUUM retains.
        single_writer: True if no other driver writes indexes on S3.
        history: whether the driver saves its record of scans next to the indexes.
    """

    path: str | None
    roots: tuple[str, ...]
    prune_timeout_s: float
    registry_ttl_s: float
    cache_bytes: int
    range_bytes: int
    retention: Retention
    single_writer: bool
    history: bool


def parse_settings(conf: Mapping[str, str]) -> Settings:
    """Parses a session's ``spark.sieve.*`` settings. Settings with unknown names have no effect.

    Raises:
        InvalidInputError: a value does not match the pattern of its setting.
    """
    for key, text in conf.items():
        setting = _LIST["settings"].get(key)
        if setting is not None and _PATTERNS[setting["form"]].fullmatch(text) is None:
            allowed = _LIST["forms"][setting["form"]]["allowed"]
            raise InvalidInputError(
                "SIEVE_INVALID_SETTING", f"{key} = '{text}' is not valid; allowed: {allowed}"
            )
    return Settings(
        path=_text(conf, "spark.sieve.path").strip() or None,
        roots=tuple(
            root.strip() for root in _text(conf, "spark.sieve.roots").split(",") if root.strip()
        ),
        prune_timeout_s=_seconds(conf, "spark.sieve.prune.timeout"),
        registry_ttl_s=_seconds(conf, "spark.sieve.registry.ttl"),
        cache_bytes=_size(conf, "spark.sieve.cache.bytes"),
        range_bytes=_size(conf, "spark.sieve.range.bytes"),
        retention=_retention(conf, "spark.sieve.versions.retain"),
        single_writer=_switch(conf, "spark.sieve.single.writer"),
        history=_switch(conf, "spark.sieve.history"),
    )


def valid_settings(conf: Mapping[str, str]) -> Settings:
    """Parses settings for work that must not fail; uses the default instead of an invalid value."""
    settings = _LIST["settings"]
    return parse_settings(
        {
            key: text
            for key, text in conf.items()
            if key in settings and _PATTERNS[settings[key]["form"]].fullmatch(text)
        }
    )


def _text(conf: Mapping[str, str], key: str) -> str:
    default: str = _LIST["settings"][key].get("default", "")
    return conf.get(key, default)


def _switch(conf: Mapping[str, str], key: str) -> bool:
    return _text(conf, key).strip().lower() == "true"


def _parts(conf: Mapping[str, str], key: str) -> tuple[str, ...]:
    """The parts of a setting's value in lower case, such as number and unit."""
    match = _PATTERNS[_LIST["settings"][key]["form"]].fullmatch(_text(conf, key))
    return tuple((part or "").lower() for part in match.groups()) if match is not None else ()


def _seconds(conf: Mapping[str, str], key: str) -> float:
    number, unit = _parts(conf, key)
    # Spark reads a bare number in a time setting as milliseconds.
    return int(number) * _SECONDS[unit or "ms"]


def _size(conf: Mapping[str, str], key: str) -> int:
    number, unit = _parts(conf, key)
    return int(number) * _BYTES[unit]


def _retention(conf: Mapping[str, str], key: str) -> Retention:
    versions, age, unit = _parts(conf, key)
    return Retention(int(versions), int(age) * (24.0 if unit == "d" else 1.0))


DEFAULTS: Final = parse_settings({})
