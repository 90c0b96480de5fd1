"""A table of eight files with two indexes on disk, and scans of this table without Spark."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sieve.encoding.encoder import Encoder
from sieve.metadata.file_list import Locations
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.manifest import Manifest, render_manifest
from sieve.metadata.records import IndexUuid, VersionId
from sieve.reader.pruner import Pruner
from sieve.segments.blocks.format import CSR, Segment, encode_segment
from sql_ext.driver.roots import Roots
from sql_ext.frontend.pruning import PruneService
from sql_ext.frontend.request_queue import Request
from tests.built_index import RUN, CountingStore, plain_locations, write_run, write_version
from tests.wire import flags, paths_of

N = 8
LEFT, RIGHT = (IndexUuid(f"0b9f3c1e-5a55-4b1c-9d0e-01234567890{k}") for k in "ab")


def cut_locations() -> Locations:
    """A list of locations of four files with 1, 3, 2 and 2 ranges.

    Each range of file k has 100 + k bytes; if file k is cut, its footer has k bytes.
    """
    counts = np.array([1, 3, 2, 2])
    number, firsts = np.arange(4), np.cumsum(counts) - counts
    within = np.arange(N) - np.repeat(firsts, counts)
    starts, tens = within * np.repeat(100 + number, counts), np.full(N, 10)
    ranges = FileRanges(counts, np.where(counts > 1, number, 0), starts, tens, 0 * tens, 0 * tens)
    files = plain_locations(4)
    columns = {"lengths": counts * (100 + number), "rows": 10 * counts, "slots": firsts}
    return dataclasses.replace(files, **columns, ranges=ranges)


def make_index(root: Path, uuid: IndexUuid, column: str, listed: Locations) -> Manifest:
    """Writes an index of eight locations, in two run files of four locations each.

    Location k has the keys 10 k to 10 k + 9.
    """
    files = []
    for first in (0, N // 2):
        block = CSR(
            np.arange(N // 2 + 1), np.arange(first, first + N // 2, dtype=np.int32), np.ones(N // 2)
        )
        ends = 10 * first, 10 * first + 10 * N // 2 - 1
        payload = encode_segment(Segment(*ends, 10, block))
        files.append([("sieve", *ends, 40, 40, 4, payload)])
    folder = root / uuid
    run = write_run(folder, files, Encoder("bigint"), N)
    version = write_version(folder, [run], listed)
    version = dataclasses.replace(
        version, index=uuid, column=(column,), name=column, id=VersionId(uuid[-1] * 32)
    )
    (folder / "versions").mkdir()
    (folder / "versions" / "1.json").write_bytes(render_manifest(version))
    return version


class Table:
    """A table with indexes on `x` and on `y`, and a driver's scans of this table.

    By default, the table has eight files.
    """

    def __init__(self, root: Path, listed: Locations | None = None) -> None:
        self.root = root
        self.versions = [
            make_index(root, uuid, column, listed or plain_locations(N))
            for uuid, column in ((LEFT, "x"), (RIGHT, "y"))
        ]
        self.store = CountingStore()
        self.pruner = Pruner(lambda _: self.store, 1 << 26)
        self.service = PruneService(Roots(None), self.pruner)
        self.invalidate = self.pruner.invalidate

    def run_file(self, uuid: IndexUuid, number: int) -> Path:
        """The path of a run file of an index."""
        return self.root / uuid / "runs" / RUN / f"part-{number:05d}.parquet"

    def renew(self, uuid: IndexUuid) -> None:
        """Replaces version 1 of an index with an equal version that has another id."""
        (old,) = (version for version in self.versions if version.index == uuid)
        version = dataclasses.replace(old, id=VersionId("f" * 32))
        path = self.root / uuid / "versions" / "1.json"
        path.write_bytes(render_manifest(version))
        self.invalidate(f"file:{self.root}/{uuid}")

    def send(self, kind: str, **body: Any) -> Mapping[str, Any]:
        """Sends a request of this kind to the reader, and returns the answer."""
        request = Request(1, kind, body, None)
        return {"prune": self.service.prune, "dictionary": self.service.dictionary}[kind](request)

    def prune(
        self, predicate: Mapping[str, Any], as_of: Mapping[str, Any] | None = None, **settings: str
    ) -> Mapping[str, Any]:
        """Sends a scan's request; `as_of` adds members to the request, such as an instant."""
        table = dataclasses.asdict(self.versions[0].table)
        registrations = {
            f"sieve.index.{version.name}": json.dumps(
                {
                    "format": 1,
                    "uuid": version.index,
                    "column": version.column,
                    "root": f"file:{self.root}",
                }
            )
            for version in self.versions
        }
        named = {f"spark.sieve.{key.replace('_', '.')}": text for key, text in settings.items()}
        return self.send(
            "prune",
            table=table,
            registrations=registrations,
            fingerprints=["own"],
            parts={"own": self.versions[0].fingerprint_parts},
            predicate=predicate,
            settings={"spark.sieve.roots": f"file:{self.root}", **named},
            **(as_of or {}),
        )

    def files_read(self, predicate: Mapping[str, Any], **settings: str) -> list[int]:
        """Returns the files that the scan reads, by their numbers in the scan's dictionary."""
        answer = self.prune(predicate, **settings)
        paths = paths_of(self.send("dictionary", dictionary=answer["dictionary"]))
        skip = flags(answer["skip"], len(paths))
        return [int(path[-1]) for path, skipped in zip(paths, skip, strict=True) if not skipped]


def equals(column: str, value: int) -> dict[str, Any]:
    """An equality comparison in the wire form that the driver sends."""
    return {"op": "=", "col": [column], "value": value}


def both(*args: dict[str, Any]) -> dict[str, Any]:
    """The AND of some predicates."""
    return {"op": "and", "args": list(args)}
