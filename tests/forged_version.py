"""Forges a version of an index: the version has correct checksums, but other content."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from spark_session import Lab

from sieve.metadata.commit import newest, publish, read_version
from sieve.metadata.file_list import Locations, render_locations
from sieve.metadata.paths import locations_file
from sieve.metadata.records import LocationsRef, PartRef, RunRef, VersionId
from sieve.reader.version_reader import read_locations
from sieve.storage.local import LocalStore


def folder(lab: Lab, index: str) -> Path:
    """The folder of the index."""
    facts = lab.facts(index)
    return Path(facts["path"].removeprefix("file:"))


def forge(
    lab: Lab,
    index: str,
    change: Callable[[Locations, RunRef, Path], tuple[Locations, RunRef]],
) -> None:
    """Publishes a forged version 1 with correct checksums; queries then use this version."""
    place = folder(lab, index)
    store, uri = LocalStore(), f"file:{place}"
    sound, base = read_version(store, uri, 1), newest(store, uri)
    assert base is not None
    locations, run = change(read_locations(store, uri, sound), sound.runs[0], place)
    data = render_locations(locations, base.roots)
    name = f"{secrets.token_hex(16)}.parquet"
    store.create(locations_file(uri, name), data)
    part = PartRef(name, len(data), hashlib.sha256(data).hexdigest(), len(locations.paths))
    made = replace(
        base,
        version=base.version + 1,
        id=VersionId(secrets.token_hex(16)),
        parent=base.id,
        runs=(run,),
        locations=LocationsRef((part,), part.rows),
    )
    publish(store, uri, base, lambda _: made, attempts=1)
    lab.sql(f"ALTER SIEVE INDEX {index} ON t ENABLE")
