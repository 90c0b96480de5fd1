"""Paths: the layout of an index's folder ``<root>/<index uuid>/``.

Every name has a fixed pattern, so that even a forged manifest cannot refer to a file outside the
folder.
"""

from __future__ import annotations

import re

from sieve.metadata.records import FileRef, RunId
from sieve.storage.interface import join

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HEX_ID = re.compile(r"[0-9a-f]{32}")
RUN_FILE = re.compile(r"part-[A-Za-z0-9_-]{1,120}(?:\.[A-Za-z0-9_-]{1,20}){0,2}\.parquet")
LOCATIONS_FILE = re.compile(r"[0-9a-f]{32}\.parquet")
TEMPORARY = re.compile(r"\.(?:draft|probe)-[0-9a-f]{32}")
"""Temporary files that stores create next to the intended file."""
CREATION_RECORD = "intent.json"
REGISTERED = "registered"


def versions_dir(index_dir: str) -> str:
    """The folder of the manifests."""
    return join(index_dir, "versions")


def version_file(index_dir: str, version: int) -> str:
    """The manifest of version ``version`` (1 or more)."""
    return join(index_dir, "versions", f"{version}.json")


def pending_writes_dir(index_dir: str) -> str:
    """The folder of pending writes."""
    return join(index_dir, "intents")


def vacuumed_file(index_dir: str, version: int) -> str:
    """The file that records that VACUUM has deleted files of versions up to version ``version``."""
    return join(index_dir, "vacuumed", str(version))


def run_dir(index_dir: str, run: RunId) -> str:
    """The folder that Spark's writer fills with the files of a run."""
    return join(index_dir, "runs", run)


def run_file(index_dir: str, run: RunId, file: FileRef) -> str:
    """One file of a run."""
    return join(index_dir, "runs", run, file.name)


def locations_file(index_dir: str, name: str) -> str:
    """A part of a file list, by its name in the manifest."""
    return join(index_dir, "locations", name)
