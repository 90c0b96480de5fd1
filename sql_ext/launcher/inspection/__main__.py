"""The Spark program of ``sieve inspect``: reads an index, plots it, and prints a summary."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sieve.encoding.encoder import Encoder
from sieve.errors import SieveError, UnsupportedError
from sieve.metadata.commit import newest
from sieve.metadata.file_list import Locations
from sieve.metadata.manifest import Manifest
from sieve.reader.version_reader import read_locations
from sieve.segments.shapes.format import Entries, decode
from sieve.storage.open import store_for
from sql_ext.launcher.inspection.layout import FileLayout, lay_out
from sql_ext.launcher.inspection.picture import draw
from sql_ext.statements.commands import quote
from udfs.segments import stored_segments

_WIDEST = 3


def main(table: str, index: str, output: str) -> None:
    """Plots the index of a table, named as in SQL, into a file."""
    spark = SparkSession.builder.appName("sieve inspect").getOrCreate()
    try:
        rows = spark.sql(f"DESCRIBE SIEVE INDEX EXTENDED {quote(index)} ON {table}").collect()
        info = {row[0]: row[1] for row in rows}
        read = _read(spark, info)
        layout = lay_out(read.entries, read.paths)
        if layout is None:
            raise UnsupportedError(
                "SIEVE_NOTHING_TO_DRAW", f"no file of {info['table']} holds a key of this index"
            )
        present = next((e for e in read.manifest.stats.expected if e.kind == "present"), None)
        expected = {} if present is None else {"exact": present.exact}
        title = [*_title(info, read, layout)]
        draw(layout, title, read.encoder.decode, expected).savefig(output)
    except PySparkException as error:
        # The first line has the message; the rest is a stack trace or the plan.
        raise SystemExit(f"Error: {str(error).splitlines()[0]}") from None
    except (SieveError, OSError) as error:
        raise SystemExit(f"Error: {error}") from None
    finally:
        spark.stop()
    for line in _summary(info, layout):
        print(line)  # noqa: T201 - what the command is for
    print(output)  # noqa: T201


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """A whole version of an index."""

    manifest: Manifest
    encoder: Encoder
    entries: Entries
    paths: tuple[str, ...]
    has_maps: bool


def _read(spark: SparkSession, info: Mapping[str, str]) -> _Index:
    conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - PySpark has no public door to it
    folder = info["path"]
    store = store_for(folder, spark._jvm, conf)  # noqa: SLF001
    manifest = newest(store, folder) if "problem" not in info else None
    if manifest is None:
        raise UnsupportedError(
            "SIEVE_INDEX_NOT_USABLE",
            f"index {info['index']} is {info['state']}: {info.get('problem', 'it has no version')}",
        )
    listed = read_locations(store, folder, manifest)
    encoder, parts, maps = Encoder(manifest.type), [], 0
    for coded, slot, segment in stored_segments(store, folder, manifest):
        encoder = coded
        if segment["shape"] == "map":
            maps += 1
        else:
            part = decode(segment["payload"])
            parts.append(Entries(part.low, part.high, part.location + np.int32(slot)))
    none = np.empty(0, np.int64)
    slots = np.concatenate([none, *(part.location for part in parts)])
    # Files that are no longer in the file list still have their slots in a run.
    ordinal = np.full(sum(run.locations for run in manifest.runs), -1, np.int32)
    places = listed.places if listed.ranges is None else listed.range_slots[:, np.newaxis]
    location, _ = np.nonzero(places >= 0)
    ordinal[places[places >= 0]] = location
    there = ordinal[slots] >= 0
    entries = Entries(
        np.concatenate([none, *(part.low for part in parts)])[there],
        np.concatenate([none, *(part.high for part in parts)])[there],
        ordinal[slots][there],
    )
    return _Index(manifest, encoder, entries, _names(listed), maps > 0)


def _names(listed: Locations) -> tuple[str, ...]:
    """The locations by name: paths, with the offset of a range of a file."""
    if listed.ranges is None:
        return listed.paths
    owners, starts = listed.ranges.owners.tolist(), listed.ranges.starts.tolist()
    several = (listed.ranges.counts > 1).tolist()
    return tuple(
        f"{listed.paths[owner]} from byte {start:,}" if several[owner] else listed.paths[owner]
        for owner, start in zip(owners, starts, strict=True)
    )


def _title(info: Mapping[str, str], read: _Index, layout: FileLayout) -> Iterator[str]:
    share = info.get("bytes as share of column", "no share")
    yield (
        f"{info['index']}@{info['version']} on {info['table']} ({info['column']} {info['type']}): "
        f"{info['files']} files, {int(info['rows']):,} rows, {int(info['bytes']):,} bytes "
        f"({share} of the column), {info['options']}"
    )
    for kind in read.manifest.stats.expected:
        if kind.kind == "present":
            yield (
                f"a key that occurs reads {kind.files:.2f} files, by min and max "
                f"{kind.minmax:.2f}, at the least {kind.exact:.2f}"
            )
    if "advice" in info:
        yield info["advice"]
    if read.has_maps:
        yield "= and IN are answered by the map; what is drawn serves ranges"
    if layout.without:
        yield f"{layout.without} files without a key are not drawn"
    if info.get("files new", "0") != "0" or info.get("files changed", "0") != "0":
        yield (
            f"stale: {info['files new']} files new and {info['files changed']} changed since, "
            "which are read always; REFRESH SIEVE INDEX"
        )


def _summary(info: Mapping[str, str], layout: FileLayout) -> Iterator[str]:
    """The summary of the picture as lines of text."""
    width, covered = layout.width(), layout.covered()
    for key in (key for key in info if " read for " in key):
        yield f"{key}: {info[key]}"
    yield (
        f"of all keys a file spans {np.median(width):.1%} by min and max (median), "
        f"{np.median(covered):.1%} by the index"
    )
    wide = np.argsort(-covered, kind="stable")[:_WIDEST]
    for k in wide.tolist():
        name = layout.paths[k].rpartition("/")[2]
        yield f"widest: {name} with {covered[k]:.1%} of all keys, {width[k]:.1%} by min and max"
    if "advice" in info:
        yield f"advice: {info['advice']}"


if __name__ == "__main__":
    main(*sys.argv[1:])
