from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sieve.errors import CorruptError, UnsupportedError
from sieve.metadata.index_options import SHAPES, IndexOptions
from sieve.metadata.manifest import Manifest, parse_manifest, render_manifest
from sieve.metadata.records import (
    BuildStats,
    CreatedBy,
    Expected,
    IndexUuid,
    LocationsRef,
    PartRef,
    RunFileRef,
    RunId,
    RunRef,
    TableIdentity,
    VersionId,
)

hex32 = st.text("0123456789abcdef", min_size=32, max_size=32)
hex64 = st.text("0123456789abcdef", min_size=64, max_size=64)
count = st.integers(0, (1 << 63) - 1)
text = st.text(max_size=40)
word = st.text(min_size=1, max_size=40)
word = st.text(min_size=1, max_size=40)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
ends = st.lists(int64, max_size=8, unique=True).map(sorted)
apart = ends.map(lambda codes: tuple(zip(codes[::2], codes[1::2], strict=False)))
ranges = st.one_of(apart, int64.map(lambda code: ((code, code),)))
real = st.floats(0, allow_nan=False, allow_infinity=False)
place = st.text(st.characters(exclude_characters="\0"), max_size=30).map("file:/{}".format)
part = st.builds("part-{:05d}-{}-c000.snappy.parquet".format, st.integers(0, 99_999), hex32)
places = st.integers(0, (1 << 31) - 1)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
options = st.one_of(
    st.builds(
        IndexOptions,
        st.sampled_from(SHAPES),
        st.sampled_from(["1%", "0.25%", "64MB", "7B"]),
        st.integers(1, 1_000_000),
    ),
    # Only the budget `auto` stores a price (the minimum gain per byte).
    st.builds(IndexOptions, st.sampled_from(SHAPES), payback=st.integers(1, 1_000_000)),
)
manifests = st.builds(
    Manifest,
    index=st.uuids().map(str).map(IndexUuid),
    version=st.just(1),
    id=hex32.map(VersionId),
    parent=st.none(),
    instant=st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z"),
    state=st.sampled_from(["ready", "disabled", "dropped"]),
    table=st.builds(TableIdentity, text, text, word, count, place),
    name=word,
    column=st.lists(word, min_size=1, max_size=4).map(tuple),
    type=word,
    comment=st.none() | text,
    options=options,
    next_options=st.none() | options,
    format_name=st.sampled_from(["parquet", "orc", "csv", "json"]),
    null_proof=st.booleans(),
    fingerprint=hex64,
    fingerprint_parts=st.dictionaries(text, text, max_size=4),
    runs=st.lists(
        st.builds(
            RunRef,
            id=hex32.map(RunId),
            encoder=st.dictionaries(text, json_value, max_size=3),
            files=st.lists(
                st.builds(RunFileRef, part, count, hex64, ranges, ranges).filter(
                    lambda file: file.codes or file.hashes
                ),
                max_size=3,
            ).map(tuple),
            locations=places,
            segments=count,
            blocks=count,
            keys=count,
            rows=count,
            bytes=count,
        ),
        max_size=3,
    ).map(tuple),
    locations=st.builds(
        LocationsRef,
        st.lists(
            st.builds(PartRef, hex32.map("{}.parquet".format), count, hex64, places), max_size=3
        ).map(tuple),
        places,
    ),
    roots=st.lists(place, max_size=3).map(tuple),
    stats=st.builds(
        BuildStats,
        count,
        count,
        count,
        count,
        real,
        st.lists(
            st.builds(Expected, word, real, real, real, real, real),
            max_size=3,
        ).map(tuple),
        count,
        count,
        count,
    ),
    created_by=st.builds(CreatedBy, text, text),
)
slow = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@slow
@given(manifests, st.integers(1, (1 << 63) - 1), hex32)
def test_round_trip(first: Manifest, version: int, parent: str) -> None:
    """Writing and reading leave a manifest unchanged, and equal manifests have the same bytes."""
    later = VersionId(parent) if version > 1 else None
    manifest = replace(first, version=version, parent=later)
    data = render_manifest(manifest)
    assert parse_manifest(data) == manifest
    assert render_manifest(parse_manifest(data)) == data


@slow
@given(manifests, st.data())
def test_edits_under_a_valid_checksum(manifest: Manifest, data: st.DataObject) -> None:
    """For any content with a valid checksum, the parser raises at most two kinds of error."""
    body = render_manifest(manifest)[:-79] + b"}"
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 20)))
    body = body[:start] + data.draw(st.binary(max_size=20)) + body[end:]
    seal = hashlib.sha256(body).hexdigest().encode()
    with contextlib.suppress(CorruptError, UnsupportedError):
        parse_manifest(body[:-1] + b',"checksum":"' + seal + b'"}')


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    """For a manifest of random bytes, the parser raises only the error for corrupt data."""
    with contextlib.suppress(CorruptError):
        parse_manifest(data)
