"""Scans without Spark: queries for one key of a `fake_spark` table skip files as in Spark.

The front end is real. The front end parses the request, looks up keys, and returns the answer and
the dictionary of files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sieve.reader.pruner import Pruner
from sieve.storage.interface import Store
from sieve.storage.local import LocalStore
from sql_ext.driver.roots import Roots
from sql_ext.frontend.pruning import PruneService
from sql_ext.frontend.request_queue import Request
from tests.fake_spark import PARTS, Session, Warehouse, keys_by_range, keys_of
from tests.wire import Part, files_of, flags, parts_of


@dataclass(frozen=True, slots=True)
class Scan:
    """The result of a query for one key.

    Attributes:
        rows: for each file, the number of rows with the key.
        files: the number of files that the query reads.
        total: the number of all files.
        ranges: the number of ranges in the answer, summed over all files.
        used: ``name@version`` of each index that the query used.
        reasons: for each index that the query did not use, the reason.
    """

    rows: Counter[str]
    files: int
    total: int
    ranges: int
    used: tuple[str, ...]
    reasons: tuple[str, ...]


def scan(warehouse: Warehouse, name: str, key: int, store: Store | None = None) -> Scan:
    """Queries a table for one key, as a driver with empty caches does.

    Raises an error if a row is lost.
    """
    info = warehouse.info(name)
    service = PruneService(
        Roots(Session(warehouse)), Pruner(lambda _: store or LocalStore(), 1 << 26)
    )
    predicate = {"op": "=", "col": ["id"], "value": key}
    answer = service.prune(
        _request(
            "prune",
            table={k: info[k] for k in ("catalog", "database", "table", "location")}
            | {"create_time_ms": info["create_time_ms"]},
            registrations=info["registrations"],
            fingerprints=["own"], parts={"own": PARTS},
            predicate=predicate,
            settings={},
        )
    ) if info["registrations"] else {"reasons": {"no-index": 1}}  # fmt: skip
    listed = warehouse.files(name)
    # For each file in the answer, the number of ranges and the number of skipped ranges.
    ranges = 0
    skipped: dict[tuple[str, int, int], list[bool]] = {}
    cuts: dict[tuple[str, int, int], list[int]] = {}
    if "skip" in answer:
        try:
            told = files_of(
                service.dictionary(_request("dictionary", dictionary=answer["dictionary"]))
            )
        except Exception:  # noqa: BLE001 - the shim then reads all files
            told = []
        ranges = sum(count for _, count in told)
        parts = parts_of(answer)
        skip = flags(answer["skip"], len(told)).tolist() if told else []
        for number, ((fact, _), gone) in enumerate(zip(told, skip, strict=True)):
            part = parts.get(number, Part([], 0, [gone]))
            cuts[fact], skipped[fact] = part.cuts, part.skip
    rows: Counter[str] = Counter()
    for file in listed:
        if found := keys_of(file[0]).count(key):
            rows[file[0]] = found
        for keys, gone in zip(
            keys_by_range(file[0], cuts[file]) if file in cuts else (),
            skipped.get(file, ()),
            strict=True,
        ):
            assert not (gone and key in keys), f"{answer} skips a range of {file} that has {key}"
    read = sum(not all(skipped.get(file, [False])) for file in listed)
    used, reasons = tuple(answer.get("used", ())), tuple(answer["reasons"])
    return Scan(rows, read, len(listed), ranges, used, reasons)


def _request(kind: str, **body: Any) -> Request:
    return Request(1, kind, body, SimpleNamespace(session=lambda _: None))
