"""Paths: the layout of an index's folder ``<root>/<index uuid>/``.

A name in a manifest must match a fixed pattern, so even a forged manifest cannot name a file
outside the index's folder.
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
"""The names of temporary files. A store creates a temporary file next to the file that it
writes."""
CREATION_RECORD = "intent.json"
REGISTERED = "registered"


def versions_dir(index_dir: str) -> str:
    """Returns the folder that contains the manifests of an index."""
    return join(index_dir, "versions")


def version_file(index_dir: str, version: int) -> str:
    """Returns the manifest file of the version ``version``, which is 1 or more."""
    return join(index_dir, "versions", f"{version}.json")


def pending_writes_dir(index_dir: str) -> str:
    """Returns the folder that contains the pending writes of an index."""
    return join(index_dir, "intents")


def vacuumed_file(index_dir: str, version: int) -> str:
    """Returns the marker file of a VACUUM that deleted files of versions 1 to ``version``."""
    return join(index_dir, "vacuumed", str(version))


def run_dir(index_dir: str, run: RunId) -> str:
    """Returns the folder to which Spark's writer writes the files of a run."""
    return join(index_dir, "runs", run)


def run_file(index_dir: str, run: RunId, file: FileRef) -> str:
    """Returns the path of one file of a run."""
    return join(index_dir, "runs", run, file.name)


def locations_file(index_dir: str, name: str) -> str:
    """Returns the file of a part of a file list; ``name`` is the part's name in the manifest."""
    return join(index_dir, "locations", name)
