"""Scans of versions on disk, without Spark: which files they skip, even if an index is broken."""

from __future__ import annotations

import dataclasses
import shutil
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.metadata.manifest import Manifest, render_manifest
from sieve.metadata.records import VersionId, identity_from
from sieve.predicate.evaluate import Verdict
from sieve.predicate.parse_predicate import parse
from sieve.reader import pruner
from sieve.reader.bulkhead import Bulkhead
from sieve.reader.pruner import narrows
from sieve.reader.usable_version import why_unusable
from sieve.storage.interface import READ_LIMIT
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import DEFAULTS
from sql_ext.frontend.pruning import PruneService
from tests.built_index import CountingStore
from tests.unit.reader.indexed_table import LEFT, RIGHT, Table, both, equals


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with indexes; the cache is empty."""
    return Table(tmp_path)


def wait_for_rereads() -> None:
    """Waits until no thread reads a version in the background."""
    for thread in threading.enumerate():
        if thread.name == "sieve-reload":
            thread.join(30)


def test_scan_for_one_key_reads_the_list_and_one_run_file(table: Table) -> None:
    """A scan for one key reads the list of locations and one run file.

    A second scan of the same files reads no index file.
    """
    assert table.files_read(equals("x", 25)) == [2]
    runs = [name for name in table.store.read_names if name.startswith("part-")]
    assert runs == ["part-00000.parquet"]
    read = len(table.store.read_names)
    assert table.files_read(equals("x", 31)) == [3]
    assert len(table.store.read_names) == read


def test_index_is_opened_only_if_a_predicate_names_its_column(table: Table) -> None:
    """A scan opens an index only if the predicate names the index's column.

    A broken index has no effect on scans without a filter on the index's column.
    """
    (table.root / RIGHT / "versions" / "1.json").write_bytes(b"?")
    answer = table.prune(equals("x", 25))
    assert (answer["reasons"], answer["used"]) == ({}, ["x@1"])
    assert table.store.read_names.count("1.json") == 1
    part = {"op": "unknown", "why": "a function", "names": ["y"]}
    for predicate in (equals("y", 1), part, both(equals("x", 25), part)):
        assert table.prune(predicate)["reasons"] == {"index-corrupt": 1}
    assert table.prune(equals("z", 1))["reasons"] == {"no-predicate": 1}


def test_replaced_unused_index_keeps_the_dictionary(table: Table) -> None:
    """If an index is replaced, scans that do not use this index keep their dictionary."""
    table.prune(equals("x", 31))
    first = table.prune(equals("y", 31))["dictionary"]
    assert table.prune(equals("x", 31))["dictionary"] == first
    table.renew(RIGHT)
    assert table.prune(equals("x", 31))["dictionary"] == first
    second = table.prune(both(equals("x", 31), equals("y", 31)))["dictionary"]
    assert second != first
    assert table.prune(equals("x", 31))["dictionary"] == second
    assert table.files_read(equals("x", 31)) == table.files_read(equals("y", 31)) == [3]


def test_other_index_is_used_after_a_drop(table: Table) -> None:
    """If one of two indexes is dropped, scans use the other index, with a new dictionary."""
    table.prune(equals("y", 31), cache_bytes="0")
    first = table.prune(equals("x", 31), cache_bytes="0")["dictionary"]
    shutil.rmtree(table.root / RIGHT)
    table.invalidate(f"file:{table.root}/{RIGHT}")
    answer = table.prune(equals("x", 31), cache_bytes="0")
    assert answer["dictionary"] != first
    assert (answer["reasons"], answer["used"]) == ({}, ["x@1"])
    assert table.files_read(equals("x", 31), cache_bytes="0") == [3]


def test_dictionaries_can_name_versions_of_a_dropped_index(table: Table) -> None:
    """If an index is dropped, scans use the other index of the table.

    A scan's dictionary can name several versions of a dropped index.
    """
    predicate = both(equals("x", 31), equals("y", 31))
    table.prune(predicate, cache_bytes="0")
    table.renew(RIGHT)
    table.prune(predicate, cache_bytes="0")
    shutil.rmtree(table.root / RIGHT)
    table.invalidate(f"file:{table.root}/{RIGHT}")
    answer = table.prune(equals("x", 31), cache_bytes="0")
    assert (answer["reasons"], answer["used"]) == ({}, ["x@1"])


@pytest.mark.parametrize("size", ["0", "100", "300000", "2MB", "1 g"])
def test_a_cache_of_any_size_gives_the_same_answers(table: Table, size: str) -> None:
    """Scans return the same results for any size of the cache.

    If the cache is small, scans read some files again. The scan also gets a dictionary that does
    not fit into the cache.
    """
    for key in (25, 61, 25, 3):
        assert table.files_read(equals("x", key), cache_bytes=size) == [key // 10]
        assert table.files_read(both(equals("x", key), equals("y", 9)), cache_bytes=size) == (
            [0] if key < 10 else []
        )
    runs = sum(name.startswith("part-") for name in table.store.read_names)
    assert runs == 3 if size in {"2MB", "1 g", "300000"} else runs > 6


@pytest.mark.parametrize("size", ["lots", "-1", "1.5g", "12 parsecs", ""])
def test_invalid_cache_size_does_not_fail_a_scan(table: Table, size: str) -> None:
    """If the cache size is invalid, scans use the default size."""
    assert table.files_read(equals("x", 1), cache_bytes=size) == [0]
    assert table.pruner.cache.max_bytes == DEFAULTS.cache_bytes


@pytest.mark.parametrize("gone", [False, True])
def test_scan_reports_a_file_damaged_after_opening(table: Table, gone: bool) -> None:
    """A scan that needs a damaged or missing file of an index reports a reason.

    A scan that cannot use a damaged index still uses its other indexes. Scans that do not need a
    damaged file work as before.
    """
    reason = "index-gone" if gone else "index-corrupt"
    assert table.files_read(equals("x", 5)) == [0]
    path = table.run_file(LEFT, 1)
    if gone:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    answer = table.prune(equals("x", 75))
    assert answer["reasons"] == {reason: 1}
    assert "skip" not in answer
    assert path.name in answer["detail"]
    with_other = both(equals("x", 75), equals("y", 71))
    assert table.prune(with_other)["reasons"] == {reason: 1}
    assert table.prune(with_other)["used"] == ["y@1"]
    assert table.files_read(with_other) == [7]
    assert table.files_read(equals("x", 5)) == [0]
    assert table.prune(equals("x", 5))["reasons"] == {}
    either = {"op": "or", "args": [equals("x", 75), equals("y", 1)]}
    assert "skip" not in table.prune(either)


def test_failed_file_is_read_again_in_the_background(table: Table) -> None:
    """The reader reads an unreadable file again in the background, with the file's version.

    No scan waits for this second reading.
    """
    path = table.run_file(LEFT, 1)
    data = path.read_bytes()
    path.write_bytes(b"?")
    wanted = equals("x", 75)

    def reads() -> int:
        return table.store.read_names.count(path.name)

    for _ in range(3):
        assert table.prune(wanted)["reasons"] == {"index-corrupt": 1}
    assert reads() == 1
    table.prune(equals("x", 5), registry_ttl="0ms")
    wait_for_rereads()
    assert reads() == 2
    assert table.prune(wanted)["reasons"] == {"index-corrupt": 1}
    assert reads() == 2
    path.write_bytes(data)
    table.prune(equals("x", 5), registry_ttl="0ms")
    wait_for_rereads()
    assert table.files_read(wanted) == [7]
    assert reads() == 3


def test_other_index_is_used_if_a_list_is_deleted(table: Table) -> None:
    """If an index's list is deleted and no longer in the cache, scans use the other index."""
    assert table.files_read(equals("x", 5), cache_bytes="0") == [0]
    (path,) = (table.root / LEFT / "locations").iterdir()
    path.unlink()
    answer = table.prune(both(equals("x", 5), equals("y", 13)), cache_bytes="0")
    assert (answer["reasons"], answer["used"]) == ({"index-gone": 1}, ["y@1"])
    assert table.files_read(equals("y", 13), cache_bytes="0") == [1]


def test_concurrent_scans_read_each_file_once(table: Table) -> None:
    """If several scans open an index at the same time, each run file is read only once."""
    answers: list[list[int]] = []
    start = threading.Barrier(8)

    def scan(key: int) -> None:
        start.wait(30)
        answers.append(table.files_read(equals("x", key)))

    threads = [threading.Thread(target=scan, args=(10 * k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers) == [[k] for k in range(8)]
    names = table.store.read_names
    assert all(names.count(name) == 1 for name in set(names) if name.startswith("part-"))


def add_versions(table: Table, numbers: Iterable[int]) -> None:
    """Adds versions of the index on `x`, one for each of these days of April."""
    for number in numbers:
        version = dataclasses.replace(
            table.versions[0],
            version=number,
            parent=VersionId(f"{number - 1:032x}") if number > 1 else None,
            id=VersionId(f"{number:032x}"),
            instant=f"2025-04-0{number}T00:00:00.000Z",
        )
        path = table.root / LEFT / "versions" / f"{number}.json"
        path.write_bytes(render_manifest(version))


def test_instant_before_all_versions_uses_the_oldest_one(
    table: Table,
) -> None:
    """A scan of an instant before all versions uses the oldest existing version."""
    add_versions(table, range(1, 4))
    day = 86_400_000
    first_of_april = 1_743_465_600_000
    for at, used in ((-day, "x@1"), (day + 1, "x@2"), (9 * day, "x@3")):
        answer = table.prune(equals("x", 25), {"instant": first_of_april + at})
        assert answer["used"] == [used]


def test_earlier_versions_are_read_in_parallel(table: Table) -> None:
    """If a scan of an earlier instant needs many versions, it reads them in parallel."""
    add_versions(table, range(2, 9))
    inside: list[str] = []
    at_once: list[int] = []

    class FarAway(CountingStore):
        """A store whose calls are slow."""

        def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
            inside.append(uri)
            time.sleep(0.05)
            at_once.append(len(inside))
            inside.remove(uri)
            return CountingStore.read(self, uri, limit)

    table.store = FarAway()
    answer = table.prune(equals("x", 25), {"instant": 1_743_552_000_000, "in_part": True})
    assert answer["used"] == [f"x@{number}" for number in range(2, 9)]
    assert max(at_once) >= 4


def test_next_scan_sees_a_change_during_opening(table: Table) -> None:
    """If an index is disabled while a scan opens it, the next scan does not use the index."""
    folder = table.root / LEFT
    off = dataclasses.replace(
        table.versions[0],
        version=2,
        parent=table.versions[0].id,
        id=VersionId("f" * 32),
        state="disabled",
    )

    class Meanwhile(CountingStore):
        """A store that disables the index just before a read of the list, as a thread could."""

        def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
            manifest = folder / "versions" / "2.json"
            if str(folder / "locations") in uri and not manifest.exists():
                manifest.write_bytes(render_manifest(off))
                table.invalidate(f"file:{folder}")
            return CountingStore.read(self, uri, limit)

    table.store = Meanwhile()
    assert table.files_read(equals("x", 5)) == [0]
    answer = table.prune(equals("x", 5))
    assert ("skip" in answer, answer["reasons"]) == (False, {"disabled": 1})


def test_version_is_usable_only_if_ready_and_of_the_table(table: Table) -> None:
    """A version is usable only if it is ready and belongs to the table.

    A usable version also matches the fingerprints of all sessions that read the table.
    """
    (version, _), mark = table.versions, table.versions[0].fingerprint_parts
    other_mark = mark | {"spark": "9.9"}
    here = dataclasses.asdict(version.table)

    def reason(version: Manifest, *marks: Mapping[str, str], **other: object) -> str:
        return why_unusable(version, identity_from(here | other), marks) or ""

    assert reason(version, mark) == reason(version, mark, mark) == ""
    assert reason(version, mark, table=here["table"].upper()) == ""
    for marks in ([other_mark], [mark, other_mark], [other_mark, mark]):
        assert reason(version, *marks) == "reader-changed"
    for key, value in (("table", "u"), ("database", "d"), ("create_time_ms", 1), ("location", "u")):
        assert reason(version, mark, **{key: value}) == "no-index"
    for state, told in (("disabled", "disabled"), ("dropped", "no-index")):
        assert reason(dataclasses.replace(version, state=state), mark) == told


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["not null"], False),
        (["not null", "unknown"], False),
        (["not null", "unknown", "="], True),
        (["other ="], False),
        ([("=", "unknown")], False),
        ([("=", "is null")], True),
    ],
)
def test_is_not_null_does_not_count_as_narrowing(
    parts: list[str | tuple[str, ...]], expected: bool
) -> None:
    """Spark adds IS NOT NULL to most filters, so IS NOT NULL does not count as a selective filter.

    In the test cases, a tuple stands for OR.
    """
    leaves: dict[str, dict[str, object]] = {
        "not null": {"op": "is not null", "col": ["x"]},
        "is null": {"op": "is null", "col": ["x"]},
        "=": {"op": "=", "col": ["x"], "value": 1},
        "other =": {"op": "=", "col": ["y"], "value": 1},
        "unknown": {"op": "unknown", "why": "remainder", "names": ["x"]},
    }
    args = [
        leaves[part] if isinstance(part, str) else {"op": "or", "args": [leaves[p] for p in part]}
        for part in parts
    ]
    assert narrows(parse({"op": "and", "args": args}), frozenset({("x",)})) is expected


def test_unusable_index_is_a_reason(table: Table) -> None:
    """A scan reports an index that is outside of the roots, or was built for another reader."""
    roots = Roots(None)
    roots._databases["sales"] = ("file:/w/.sieve", time.monotonic())
    table.service = PruneService(roots, table.pruner)
    answer = table.prune(equals("x", 25), roots="file:/elsewhere")
    assert ("skip" in answer, answer["reasons"]) == (False, {"root-refused": 1})
    assert f"file:{table.root}" in answer["detail"]
    assert table.store.read_names == []
    changed = dataclasses.replace(table.versions[0], fingerprint_parts={"spark": "9.9"})
    path = table.root / LEFT / "versions" / "1.json"
    path.write_bytes(render_manifest(changed))
    assert table.prune(equals("x", 25))["reasons"] == {"reader-changed": 1}
    answer = table.prune(both(equals("x", 25), equals("y", 31)))
    assert (answer["reasons"], answer["used"]) == ({"reader-changed": 1}, ["y@1"])


def test_an_unreadable_registration_is_a_reason(table: Table) -> None:
    """If a registration is unreadable, the scan reports a reason, and uses the other indexes.

    The scan cannot tell to which column the unreadable registration belongs.
    """
    first = table.prune(equals("x", 25))
    send = table.send
    table.send = lambda kind, **body: send(  # type: ignore[method-assign]
        kind, **body | {"registrations": body["registrations"] | {"sieve.index.z": "{"}}
    )
    answer = table.prune(equals("x", 25))
    assert (answer["skip"], answer["used"]) == (first["skip"], ["x@1"])
    assert answer["reasons"] == {"no-index": 1}
    assert answer["detail"] == "the registration is not readable"


def test_unknown_parts_with_an_indexed_column_are_counted(table: Table) -> None:
    """A scan reports a reason for each unknown part of a predicate that names an indexed column.

    The known parts of the predicate still skip files.
    """
    parts = [{"op": "unknown", "why": "a function", "names": [name]} for name in ("x", "x", "z")]
    answer = table.prune(both(equals("x", 25), *parts))
    assert answer["reasons"] == {"unsupported-predicate": 2}
    assert answer["functions"] == ["a function"]
    assert answer["used"] == ["x@1"]
    answer = table.prune(parts[0])
    assert ("skip" in answer, answer["reasons"]) == (False, {"unsupported-predicate": 1})


def test_other_versions_are_used_if_one_is_broken(table: Table) -> None:
    """If one version is broken, scans of parts of slices use all other versions."""
    add_versions(table, range(1, 4))
    broken = dataclasses.replace(
        table.versions[0].runs[0],
        files=(dataclasses.replace(table.versions[0].runs[0].files[0], sha256="0" * 64),),
    )
    path = table.root / LEFT / "versions" / "2.json"
    second = dataclasses.replace(
        table.versions[0],
        version=2,
        parent=VersionId(f"{1:032x}"),
        id=VersionId(f"{2:032x}"),
        instant="2025-04-02T00:00:00.000Z",
        runs=(broken,),
    )
    path.write_bytes(render_manifest(second))
    asked = {"instant": 1_743_465_600_000 + 86_400_000, "in_part": True}
    answer = table.prune(equals("x", 5), asked)
    assert (answer["used"], answer["reasons"]) == (["x@3"], {})
    answer = table.prune(equals("x", 5), asked | {"in_part": False})
    assert ("skip" in answer, answer["reasons"]) == (False, {"index-corrupt": 1})


@pytest.mark.parametrize("columns", [("x", "y"), ("y", "x")])
def test_each_group_of_versions_can_exclude_files(
    monkeypatch: pytest.MonkeyPatch, columns: tuple[str, ...]
) -> None:
    """The reader groups versions by encoder. Each group can exclude files."""
    keeps = {"a": 0b1110, "b": 0b1101, "c": 0b1011, "d": 0b0111}
    groups = {"x": [("a",), ("b",), ("c",)], "y": [("d",)]}

    def bits(version: str) -> np.ndarray:
        return np.array([keeps[version] >> k & 1 for k in range(4)], np.bool_)

    def evaluated(_: object, over: Mapping[Any, Any], __: int) -> Verdict:
        keep = np.logical_and.reduce([bits(version) for (version,) in over.values()])
        return Verdict(keep, frozenset(over))

    monkeypatch.setattr(pruner, "NumberedVersions", lambda group, _files, _partial: group)
    monkeypatch.setattr(pruner, "evaluate", evaluated)
    groups = {name: groups[name] for name in columns}
    keep, used = pruner.might_match(None, groups, SimpleNamespace(n=4), partial=False)
    assert (keep.any(), used) == (False, {"x", "y"})


def test_other_index_is_used_if_one_is_blocked(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the bulkhead blocks one index, a scan uses the other index, and reports an error."""
    monkeypatch.setattr(Bulkhead, "blocked", lambda _self, wanted, _timeout: set(wanted[:1]))
    answer = table.prune(both(equals("x", 25), equals("y", 25)))
    assert answer["used"] == ["y@1"]
    assert answer["reasons"] == {"error": 1}


def test_every_scan_reports_a_damaged_index(table: Table) -> None:
    """Each scan that needs a damaged index reports a reason."""
    table.run_file(LEFT, 0).write_bytes(b"damaged")
    for _ in range(2):
        assert table.prune(equals("x", 3))["reasons"] == {"index-corrupt": 1}
