"""Indexes from released versions: this release reads older ones and ignores newer ones."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.metadata.commit import newest
from sieve.metadata.manifest import FORMAT, Manifest
from sieve.reader.pruner import Pruner
from sieve.storage.local import LocalStore
from sql_ext.driver.roots import Roots
from sql_ext.frontend.link import Request
from sql_ext.frontend.pruning import PruneService
from tests.fake_scan import scan
from tests.fake_spark import Session, Warehouse, without_spark
from tests.wire import flags, paths_of

SAMPLES = sorted(path for path in Path(__file__).parent.iterdir() if path.name.startswith("format"))
INDEXES = [
    pytest.param(sample, uuid, id=f"{sample.name} {number}")
    for sample in SAMPLES
    for number, uuid in enumerate(json.loads((sample / "keys.json").read_text()))
]


def asked(service: PruneService, kind: str, **body: Any) -> Mapping[str, Any]:
    """Sends one request of a driver and returns the answer."""
    request = Request(1, kind, body, SimpleNamespace(session=lambda _: None))
    return {"prune": service.prune, "dictionary": service.dictionary}[kind](request)


def skipped(root: Path, index: Manifest, predicate: Mapping[str, Any]) -> tuple[set[str], str]:
    """The names of the files that a scan may skip, or the reason why it may skip none."""
    service = PruneService(Roots(None), Pruner(lambda _: LocalStore(), 1 << 26))
    told = {"format": 1, "uuid": index.index, "column": index.column, "root": f"file:{root}"}
    answer = asked(
        service, "prune", table=asdict(index.table), predicate=predicate,
        registrations={f"sieve.index.{index.name}": json.dumps(told)},
        fingerprints=["own"], parts={"own": index.fingerprint_parts},
        settings={"spark.sieve.roots": f"file:{root}"},
    )  # fmt: skip
    if "skip" not in answer:
        return set(), next(iter(answer["reasons"]))
    paths = paths_of(asked(service, "dictionary", dictionary=answer["dictionary"]))
    skip = flags(answer["skip"], len(paths))
    return {p.rpartition("/")[2] for p, flag in zip(paths, skip, strict=True) if flag}, ""


def wire(value: Any, kind: str) -> Any:
    """A value in the driver's wire form."""
    if kind == "string":
        return base64.b64encode(value.encode()).decode()
    return str(int(Decimal(value).scaleb(3))) if kind.startswith("decimal") else value


@pytest.mark.parametrize(("sample", "uuid"), INDEXES)
def test_every_key_is_found(sample: Path, uuid: str) -> None:
    """No query skips a file with its key, and queries skip most other files."""
    keys = json.loads((sample / "keys.json").read_text())[uuid]
    index = newest(LocalStore(), f"file:{sample / uuid}")
    assert index is not None
    of_key: dict[Any, set[str]] = {}
    for name, values in keys.items():
        for value in values:
            of_key.setdefault(value, set()).add(name)
    left_out = 0
    some = list(of_key.items())[:: max(1, len(of_key) // 60)]
    for value, files in some:
        predicate = {"op": "=", "col": list(index.column), "value": wire(value, index.type)}
        skip, reason = skipped(sample, index, predicate)
        assert reason == ""
        assert not skip & files, (value, files)
        left_out += len(skip) > 0
    assert left_out > len(some) // 2
    assert {len(keys), index.locations.count} == {24}


@pytest.mark.parametrize(("sample", "uuid"), INDEXES[:1])
def test_a_later_format_is_left_alone(sample: Path, uuid: str, tmp_path: Path) -> None:
    """Given an intact manifest of the next or an unknown format, queries read all files."""
    index = newest(LocalStore(), f"file:{sample / uuid}")
    assert index is not None
    shutil.copytree(sample / uuid, tmp_path / uuid)
    path = tmp_path / uuid / "versions" / f"{index.version + 1}.json"
    data = (tmp_path / uuid / "versions" / f"{index.version}.json").read_bytes()
    body = data[: data.rindex(b',"checksum"')].replace(
        b'"version":%d' % index.version, b'"version":%d' % (index.version + 1), 1
    )
    for later in (FORMAT + 1, 77):
        text = re.sub(rb'"format":\d+', b'"format":%d' % later, body, count=1) + b"}"
        seal = hashlib.sha256(text).hexdigest().encode()
        path.write_bytes(text[:-1] + b',"checksum":"' + seal + b'"}')
        predicate = {"op": "=", "col": list(index.column), "value": 1}
        assert skipped(tmp_path, index, predicate) == (set(), "version-too-new")


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize(("sample", "uuid"), INDEXES[::7])
def test_a_text_table_that_was_read_by_single_columns_is_read_in_full(
    sample: Path, uuid: str, kind: str, tmp_path: Path
) -> None:
    """Queries ignore an earlier release's index of CSV or JSON, and use one of this release."""
    shutil.copytree(sample / uuid, tmp_path / uuid)
    index = newest(LocalStore(), f"file:{sample / uuid}")
    assert index is not None
    path = tmp_path / uuid / "versions" / f"{index.version}.json"
    body = json.loads(path.read_bytes())
    del body["checksum"]
    body["format_name"] = kind
    predicate = {"op": "=", "col": list(index.column), "value": wire(-1, index.type)}
    for records, reason in (({}, "version-too-old"), ({"records": "whole"}, "")):
        body["fingerprint_parts"] |= records
        text = json.dumps(body, separators=(",", ":")).encode()
        seal = hashlib.sha256(text).hexdigest().encode()
        path.write_bytes(text[:-1] + b',"checksum":"' + seal + b'"}')
        built = replace(index, fingerprint_parts=body["fingerprint_parts"])
        skip, told = skipped(tmp_path, built, predicate)
        assert told == reason
        assert bool(skip) == (reason == "")


def test_an_index_of_format_1_is_refreshed(tmp_path: Path) -> None:
    """The one file of the old list becomes the first part of the new list without a rewrite."""
    warehouse = Warehouse(tmp_path / "shop")
    warehouse.create_table("t", [range(10 * k, 10 * k + 10) for k in range(8)])
    with without_spark():
        Session(warehouse).sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
        (path,) = warehouse.root.glob("*/versions/1.json")
        body = json.loads(path.read_bytes())
        (file,) = body["locations"]["parts"]
        assert file.pop("rows") == 8
        del body["checksum"]
        del body["options"]["granularity"]
        del body["stats"]["ranges_total"], body["stats"]["bytes_total"]
        body |= {"format": 1, "locations": {"file": file, "count": 8}}
        text = json.dumps(body, separators=(",", ":")).encode()
        seal = hashlib.sha256(text).hexdigest().encode()
        path.write_bytes(text[:-1] + b',"checksum":"' + seal + b'"}')
        before = scan(warehouse, "t", 13)
        warehouse.append("t", range(80, 90))
        Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
        after = scan(warehouse, "t", 83)
    assert (before.files, before.used) == (1, ("id_sieve@1",))
    assert (after.files, after.used) == (1, ("id_sieve@2",))
    now = json.loads(path.with_name("2.json").read_bytes())
    assert now["format"] == FORMAT
    assert now["locations"]["parts"][0] == file | {"rows": 8}
    assert [part["rows"] for part in now["locations"]["parts"]] == [8, 1]
