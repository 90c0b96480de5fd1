from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from sieve.errors import CorruptError, InvalidInputError, UnsupportedError
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import FORMAT, MEMBERS, Manifest, parse_manifest, render_manifest
from sieve.metadata.records import Commit, Expected, LocationsRef, PartRef
from tests.unit.metadata.manifest_sample import SAMPLE

DATA = render_manifest(SAMPLE)


def sealed(text: str | bytes) -> bytes:
    """Appends the right checksum to a body, as a hostile writer or a later release can do."""
    body = text.encode() if isinstance(text, str) else text
    return body[:-1] + b',"checksum":"%s"}' % hashlib.sha256(body).hexdigest().encode()


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    """Makes one change in the JSON of the sample manifest, and appends the right checksum."""
    record = json.loads(DATA)
    del record["checksum"]
    change(record)
    return sealed(json.dumps(record, separators=(",", ":")))


def test_manifest_is_read_back_unchanged() -> None:
    """A manifest is read back unchanged, and equal manifests have equal bytes."""
    assert parse_manifest(DATA) == SAMPLE
    assert render_manifest(parse_manifest(DATA)) == DATA


def test_the_file_is_ascii_json_with_the_checksum_last() -> None:
    """A manifest is ASCII JSON. Its last member is the checksum of all earlier bytes."""
    record = json.loads(DATA.decode("ascii"))
    assert record["format"] == FORMAT
    assert list(record)[-1] == "checksum"
    assert sealed(DATA[: DATA.rindex(b',"checksum"')] + b"}") == DATA


def test_every_truncation_is_seen() -> None:
    """A manifest that is truncated at any byte is corrupt."""
    for length in range(len(DATA)):
        with pytest.raises(CorruptError):
            parse_manifest(DATA[:length])


def test_every_flipped_bit_is_seen() -> None:
    """A manifest with any flipped bit is corrupt, even if the bit is in the format number."""
    for position in range(len(DATA)):
        flipped = bytearray(DATA)
        flipped[position] ^= 1 << position % 8
        with pytest.raises(CorruptError):
            parse_manifest(bytes(flipped))


@pytest.mark.parametrize(
    "data",
    [
        edited(lambda m: m.update(format=FORMAT + 1)),
        sealed('{"format":7,"everything":"else"}'),
        edited(lambda m: m["options"].update(shape="spirals")),
        edited(lambda m: m["options"].update(colour="blue")),
    ],
)
def test_manifest_of_a_later_release_is_too_new(data: bytes) -> None:
    """A manifest of a later release is too new, even if its other content is invalid."""
    with pytest.raises(UnsupportedError) as caught:
        parse_manifest(data)
    assert caught.value.condition == "SIEVE_VERSION_TOO_NEW"


def test_a_damaged_newer_file_is_damaged() -> None:
    """A manifest with a wrong checksum is corrupt, even if its format number is later."""
    with pytest.raises(CorruptError):
        parse_manifest(DATA.replace(b'"format":%d' % FORMAT, b'"format":%d' % (FORMAT + 1)))


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "part-0.parquet/../x",
        "part-0\0.parquet",
        "part-.parquet",
        "part-0.parquet\n",
        "part-" + "0" * 121 + ".parquet",
        "file:part-0.parquet",
        "_SUCCESS",
        "",
    ],
)
def test_run_files_have_plain_names(name: str) -> None:
    """A reader refuses the name of a run file that could be outside of the run's folder."""
    with pytest.raises(CorruptError):
        parse_manifest(edited(lambda m: m["runs"][0]["files"][0].update(name=name)))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("type"),
        lambda m: m.update(unknown=1),
        lambda m: m.update(format="1"),
        lambda m: m.update(format=True),
        lambda m: m.update(version=0),
        lambda m: m.update(version=2),
        lambda m: m.update(version=1.0),
        lambda m: m.update(version=1 << 63),
        lambda m: m.update(parent="2" * 32),
        lambda m: m.update(index="../" + "0" * 33),
        lambda m: m.update(id="A" * 32),
        lambda m: m.update(instant="yesterday"),
        lambda m: m.update(state="building"),
        lambda m: m.update(column=[]),
        lambda m: m.update(column=["a"] * 101),
        lambda m: m.update(column=["a", ""]),
        lambda m: m.update(column=["a", 1]),
        lambda m: m.update(column="ab"),
        lambda m: m.update(name=""),
        lambda m: m.update(null_proof=1),
        lambda m: m.update(roots=["relative"]),
        lambda m: m.update(fingerprint="f" * 63),
        lambda m: m.update(fingerprint_parts={"a": 1}),
        lambda m: m.update(fingerprint_parts=dict.fromkeys(map(str, range(1001)), "")),
        lambda m: m.update(fingerprint_parts=[]),
        lambda m: m.update(runs={}),
        lambda m: m.update(runs=[1]),
        lambda m: m["runs"][0].update(id="../" + "a" * 29),
        lambda m: m["runs"][0].update(rows=-1),
        lambda m: m["runs"][0]["files"][0].pop("codes"),
        lambda m: m["runs"][0]["files"][0].update(codes=[], hashes=[]),
        lambda m: m["runs"][0]["files"][0].update(codes=None),
        lambda m: m["runs"][0]["files"][0].update(codes=[5, 6]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[5]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[5, 6, 7]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[5, 4]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[5, 6], [6, 7]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[5, 6], [1, 2]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[5, 6.0]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[False, True]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[0, 1 << 63]]),
        lambda m: m["runs"][0]["files"][0].update(hashes=[[-(1 << 63) - 1, 0]]),
        lambda m: m["runs"][0]["files"][0].update(codes=[[k, k] for k in range(10_001)]),
        lambda m: m["runs"][0].update(encoder=None),
        lambda m: m["runs"][0].update(encoder={"a": [0] * 1000}),
        lambda m: m["runs"][0].update(encoder={"a": "x" * 32769}),
        lambda m: m["runs"][0].update(encoder=json.loads('{"a":' * 9 + "1" + "}" * 9)),
        lambda m: m["runs"][0]["files"][0].update(sha256="g" * 64),
        lambda m: m["locations"]["parts"][0].update(name="x.parquet"),
        lambda m: m["locations"]["parts"][0].update(rows=1 << 31),
        lambda m: m["locations"]["parts"][0].update(rows=-1),
        lambda m: m["locations"].update(parts=m["locations"]["parts"] * 65),
        lambda m: m["locations"].update(parts={}),
        lambda m: m["locations"].update(file=m["locations"]["parts"][0]),
        lambda m: m["locations"].update(count=1 << 31),
        lambda m: m["stats"].update(seconds=-0.5),
        lambda m: m["stats"].update(seconds="1"),
        lambda m: m["stats"].update(nulls=True),
        lambda m: m["stats"].update(more=1),
        lambda m: m.update(options=[]),
        lambda m: m.update(format=0),
        lambda m: m.update(type=""),
        lambda m: m["table"].update(table=""),
        lambda m: m["table"].update(create_time_ms=-(1 << 63) - 1),
        lambda m: m["stats"]["expected"][0].update(kind=""),
        lambda m: m["stats"].update(rows=1 << 63),
        lambda m: m["stats"].update(seconds=float(1 << 1023) * 2),
    ],
)
def test_members_of_the_wrong_kind(change: Callable[[dict[str, Any]], object]) -> None:
    """If a member has the wrong type or exceeds its limits, the manifest is corrupt."""
    with pytest.raises(CorruptError, match="manifest"):
        parse_manifest(edited(change))


def many_runs(manifest: dict[str, Any], count: int) -> None:
    """Gives a manifest this many runs without files."""
    manifest["runs"] = [
        manifest["runs"][0] | {"files": [], "id": f"{k:032x}"} for k in range(count)
    ]


def many_ranges(manifest: dict[str, Any], count: int) -> None:
    """Gives a file in a manifest `count` ranges of codes and `count` ranges of hashes."""
    ranges = [[k, k] for k in range(count)]
    manifest["runs"][0]["files"][0].update(codes=ranges, hashes=ranges)


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (many_runs, 10_000),
        (many_ranges, 10_000),
        (lambda m, n: m.update(roots=[f"f:/{k}" for k in range(n)]), 100_000),
        (lambda m, n: m.update(fingerprint_parts=dict.fromkeys(map(str, range(n)), "")), 1000),
        (lambda m, n: m.update(fingerprint_parts={"a": "x" * n}), 4 << 20),
        (lambda m, n: m["stats"].update(expected=m["stats"]["expected"] * n), 100),
        (lambda m, n: m["locations"].update(parts=m["locations"]["parts"] * n, count=17 * n), 64),
        (lambda m, n: m["runs"][0].update(encoder={"a": "x" * n}), 32 << 10),
        (lambda m, n: m.update(column=["a"] * n), 100),
        (lambda m, n: m.update(name="x" * n), 256),
        (lambda m, n: m.update(type="x" * n), 4096),
        (lambda m, n: m.update(comment="x" * n), 4 << 20),
        (lambda m, n: m["stats"]["expected"][0].update(kind="x" * n), 100),
        (lambda m, n: m["table"].update(create_time_ms=n), (1 << 63) - 1),
        (lambda m, n: m["runs"][0].update(locations=n), (1 << 31) - 1),
        (lambda m, n: m["runs"][0].update(encoder=json.loads('{"a":' * n + "1" + "}" * n)), 7),
        (lambda m, n: m["runs"][0].update(encoder={"a": [0] * n}), 997),
    ],
    ids="runs ranges roots parts text kinds lists encoder column name type comment kind time "
    "locations depth nodes".split(),
)
def test_a_manifest_may_reach_its_limits(
    change: Callable[[dict[str, Any], int], object], most: int
) -> None:
    """A manifest with values exactly at their limits is valid, as releases can write it.

    If a value exceeds its limit, the manifest is reported as damaged.
    """
    parse_manifest(edited(lambda m: change(m, most)))
    with pytest.raises(CorruptError, match="manifest"):
        parse_manifest(edited(lambda m: change(m, most + 1)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"\x80\x04}",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"format":' + b"9" * 10_000 + b"}",
        b'{"format":1,"format":2}',
        b'{"format":NaN}',
        b'{"format":1e999}',
        '{"format":"ä"}'.encode(),
        b'{"format":1' + b" " * (32 << 20) + b"}",
    ],
    ids=range(13),
)
def test_hostile_bodies(body: bytes) -> None:
    """Deep nesting, huge sizes, repeated members and other encodings make a manifest damaged."""
    with pytest.raises(CorruptError):
        parse_manifest(sealed(body))


def test_a_manifest_beyond_the_limits_is_not_written() -> None:
    """The writer refuses to write a manifest that readers would refuse."""
    bad = LocationsRef((PartRef("no such name", 1, "0" * 64, 17),), 17)
    with pytest.raises(InvalidInputError, match="customer_sieve"):
        render_manifest(replace(SAMPLE, locations=bad))


def test_an_empty_comment_is_kept() -> None:
    """Readers distinguish an empty comment from a missing comment."""
    assert parse_manifest(render_manifest(replace(SAMPLE, comment=""))).comment == ""


def test_expected_reads_can_be_zero() -> None:
    """The expected reads can be 0, for example for queries between two keys that exist."""
    none = replace(
        SAMPLE.stats, expected=(Expected("absent", 0.0, 0.0, 0.0, 0.0, 0.0),), seconds=0.0
    )
    assert parse_manifest(render_manifest(replace(SAMPLE, stats=none))).stats == none


def test_the_bytes_of_a_manifest_are_those_of_its_format() -> None:
    """Every release of format 4 writes the sample manifest as the same bytes."""
    told = render_manifest(SAMPLE)
    members = list(json.loads(told))
    assert members == ["format", *MEMBERS, "checksum"]
    assert {*MEMBERS, "commit", "is_outdated"} == {field.name for field in fields(Manifest)}
    assert hashlib.sha256(told).hexdigest() == (
        "26227d8b63fbc3819b24e659283f6d6f1b53754c36f600c7aa374e61c6da1c0e"
    )


def test_older_format_gives_only_an_identity() -> None:
    """From a manifest of an older format, readers use only the identity and the options.

    REFRESH rebuilds the index.
    """

    def older(record: dict[str, Any]) -> None:
        record["format"] = FORMAT - 1
        record["next_options"] = None
        record["options"] |= {"shape": "runs", "refresh": "auto"}
        record["locations"] = {"file": {}}
        del record["stats"]

    found = parse_manifest(edited(older))
    assert found.is_outdated
    assert (found.name, found.column, found.comment) == (
        SAMPLE.name,
        SAMPLE.column,
        SAMPLE.comment,
    )
    assert found.options == found.next_options == IndexOptions()
    assert (found.runs, found.locations.count, found.stats.rows) == ((), 0, 0)
    assert not parse_manifest(render_manifest(found)).is_outdated


def test_option_refresh_can_be_current_and_pending() -> None:
    """A manifest can contain `refresh` as a current option or as a pending option.

    Without the option `refresh`, a manifest has the same bytes as in earlier releases.
    """
    auto = replace(SAMPLE.options, refresh="auto")
    follows = replace(SAMPLE, options=auto, next_options=replace(auto, budget="2%"))
    assert parse_manifest(render_manifest(follows)) == follows
    assert render_manifest(follows).count(b'"refresh":"auto"') == 2
    assert b"refresh" not in render_manifest(SAMPLE)


def test_only_manifests_of_delta_tables_have_a_commit() -> None:
    """A manifest can name a commit of its table. An invalid commit makes the manifest corrupt."""
    commit = Commit("0b6c", 7)
    told = render_manifest(replace(SAMPLE, commit=commit))
    assert list(json.loads(told)) == ["format", *MEMBERS, "commit", "checksum"]
    assert parse_manifest(told).commit == commit
    for wrong in (None, {}, {"table": "0b6c", "version": -1}, {"table": "", "version": 1}):
        with pytest.raises(CorruptError):
            parse_manifest(edited(lambda record, wrong=wrong: record.update(commit=wrong)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda m: m["stats"].update(nulls=True),
            r"manifest\.stats\.nulls is not an integer from 0",
        ),
        (lambda m: m["stats"].update(more=1), r"manifest\.stats has an unknown member 'more'"),
        (lambda m: m.update(options=[]), r"manifest\.options is not an object"),
        (lambda m: m["runs"].append(1), r"manifest\.runs\[1\] is not an object"),
    ],
)
def test_error_names_the_path_of_the_wrong_member(
    change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    """The error for a wrong member of a manifest names the member's path."""
    with pytest.raises(CorruptError, match=problem):
        parse_manifest(edited(change))
