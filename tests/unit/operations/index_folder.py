"""Makes the folder of an old index. Some of the index's versions can be damaged."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from sieve.metadata.creation_record import write_creation_record
from sieve.metadata.manifest import render_manifest
from sieve.metadata.paths import CREATION_RECORD, REGISTERED
from sieve.metadata.records import IndexUuid, TableIdentity, VersionId
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE

STORE = LocalStore()
FIRST = SAMPLE.table
LATER = replace(FIRST, table="renamed", location="file:/w/renamed")


def index(root: Path, *versions: TableIdentity | None, uuid: IndexUuid = SAMPLE.index) -> str:
    """Creates an old index of the first table, with one version for each of the given tables.

    In the list of tables, None stands for a damaged version.
    """
    folder = root / uuid
    (folder / "versions").mkdir(parents=True)
    write_creation_record(STORE, f"file:{folder}", SAMPLE.name, FIRST)
    os.utime(folder / CREATION_RECORD, (0, 0))
    (folder / REGISTERED).touch()
    for number, table in enumerate(versions, 1):
        made = replace(
            SAMPLE,
            index=uuid,
            version=number,
            id=VersionId(f"{number:032x}"),
            parent=VersionId(f"{number - 1:032x}") if number > 1 else None,
            table=table or FIRST,
        )
        data = render_manifest(made)
        (folder / "versions" / f"{number}.json").write_bytes(data if table else data[:-9])
    return f"file:{folder}"
