"""Result rows of ESTIMATE, and of DESCRIBE: the properties, size and staleness of an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sieve.encoding.encoder import Encoder
from sieve.index_key import GRAM_BYTES, SUBSTRING, kind_of, shown
from sieve.indexing.auto_budget import map_left_out
from sieve.indexing.signatures import TEXT_BYTES
from sieve.metadata.index_options import AUTO, MANUAL, IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import VALUE, BuildStats, Expected
from sieve.operations.dropped_column import dropped_column
from sieve.operations.estimate import Estimate
from sieve.operations.judgement import (
    benefit,
    benefit_of_version,
    expected_of_version,
    of_text,
)
from sieve.operations.reader_state import reader_problem
from sieve.operations.registered_index import (
    Disabled,
    Malformed,
    Ready,
    RegisteredIndex,
    Usable,
)
from sieve.reader.version_reader import read_locations
from sieve.tables.column import Column
from sieve.tables.file_status import file_statuses
from sieve.tables.formats import reads_whole_files
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.table import CatalogTable
from sieve.workload.benefit import Benefit
from sql_ext.statements.commands import quote
from sql_ext.statements.context import Row

_KINDS = {
    "present": "a key that occurs",
    "absent": "a key that does not occur",
    "range": "a range of 0.05% of the domain",
}

_TEXT_LENGTHS = (GRAM_BYTES, 8, TEXT_BYTES, 16)
"""The lengths of texts for which DESCRIBE shows the expected reads of a substring index."""

_WHOLE = {"delta": "files of Delta tables", "hudi": "file slices of Hudi tables"}
"""Maps a table format to the kind of its files. Spark never reads such files in ranges."""

_SHOWN = {"new": "new", "racy": "new", "changed": "changed", "unproven": "unproven"}
"""Maps the status of a file to its name in DESCRIBE. Every other status counts as indexed."""


def index_bytes(manifest: Manifest) -> int:
    """Size of an index version in bytes: its runs and its file list."""
    return sum(run.bytes for run in manifest.runs) + sum(
        part.length for part in manifest.locations.parts
    )


def shown_type(manifest: Manifest) -> str:
    """The type of the indexed values. For an index on substrings, this is the type of the text."""
    return "string" if kind_of(manifest.column) == SUBSTRING else manifest.type


def shown_instant(manifest: Manifest) -> str:
    """The time of the indexed snapshot. For a Delta table, also names the snapshot's version."""
    if manifest.commit is None or manifest.format_name != "delta":
        return manifest.instant
    return f"{manifest.instant} (version {manifest.commit.version})"


def advice(
    expected: Sequence[Expected],
    files: int,
    bytes_total: int,
    *,
    kind: str | None = None,
    mapped: bool = False,
) -> str | None:
    """Advice on an index that helps little or not at all. None for an index that helps.

    Args:
        expected: the expected reads of each kind of query (see `of_queries`).
        kind: the kind of the index. None for an ordinary index, which has one value per row.
        mapped: whether the index contains a segment of the shape `map`.
    """
    found = benefit(expected, files, bytes_total, kind=kind)
    if found is None or found is Benefit.HELPS:
        return None
    least = {kind.kind: kind.exact for kind in expected}
    if not found.is_suggested:
        if files == 1:
            return (
                "this index cannot help yet: the table is one file, which every query reads; with "
                "more files it may"
            )
        what = "a value of the column" if kind != SUBSTRING else f"a text of {TEXT_BYTES} bytes"
        much = "almost all" if found is Benefit.CANNOT else "most"
        return (
            f"this index {'cannot help' if found is Benefit.CANNOT else 'helps little'}: {what} is "
            f"in {least.get(VALUE, least['present']):.3g} of {files} files in the mean, so that a "
            f"query for it reads {much} of the table with any index"
            + (", unless the text contains a rare sequence of 4 bytes" if kind == SUBSTRING else "")
        )
    if mapped or kind == SUBSTRING:
        return (
            "this index helps little: try a larger budget, or write the table sorted by the column"
        )
    if 2 * least["present"] > files:
        return (
            "this index helps little: values that begin alike are in most of the files; try "
            "OPTIONS (shape = 'map') for = and IN, which tells them apart, or a larger budget"
        )
    return (
        "this index helps little: every file holds keys from the whole domain; try OPTIONS "
        "(shape = 'map') for = and IN, a larger budget, or write the table sorted by the column"
    )


def advice_on(manifest: Manifest) -> str | None:
    """Advice on an index, with the statement that the user should run. None without advice."""
    return ". ".join(_problems(manifest)) or None


def _problems(manifest: Manifest) -> Iterator[str]:
    without_effect = _of_granularity(
        manifest.wanted_options, manifest.format_name, manifest.fingerprint_parts
    )
    if without_effect is not None:
        yield without_effect
    limit = None if kind_of(manifest.column) == SUBSTRING else map_left_out(manifest)
    judged = benefit_of_version(manifest)
    if limit is not None and (judged is None or judged.is_suggested):
        more = "more bytes" if limit == "bytes" else "longer to build"
        table = ".".join(map(quote, manifest.table.name))
        on = f"{quote(manifest.name)} ON {table}"
        yield (
            f"a map would find the file of a key for = and IN, but takes {more} than an index "
            f"takes unasked: ALTER SIEVE INDEX {on} SET OPTIONS (shape = 'map'), then REFRESH "
            f"SIEVE INDEX {on}"
        )
        return
    stats = manifest.stats
    words = advice(
        expected_of_version(manifest),
        stats.ranges_total,
        stats.bytes_total,
        kind=kind_of(manifest.column),
        mapped=any(file.hashes for run in manifest.runs for file in run.files),
    )
    if words is not None:
        useless = stats.ranges_total > 1 and judged is Benefit.CANNOT
        yield words + ("; DROP this one, unless queries look for rare values" if useless else "")


def _of_granularity(
    options: IndexOptions, format_name: str, parts: Mapping[str, str]
) -> str | None:
    """Advice if the options request ranges, although Spark reads this table's files as a whole."""
    if options.granularity != "range" or not reads_whole_files(format_name, parts):
        return None
    what = _WHOLE.get(format_name, "text files with such records, encoding or separator")
    return (
        f"granularity = 'range' has no effect: {what} are read whole; give granularity = 'file', "
        "or none"
    )


def describe_rows(
    table: RegisteredTable,
    index: RegisteredIndex,
    extended: bool,
    doing: str,
    unreadable: str | None = None,
) -> Iterator[tuple[str, str]]:
    """Yields the properties of an index: pairs of a name and a value, both as text.

    Args:
        extended: whether to add the properties of EXTENDED. EXTENDED lists the table's files.
        doing: state of the table's automatic refresh, usually empty.
        unreadable: reason why Spark cannot read the table. None if Spark can read it.
    """
    yield "index", index.name
    yield "table", table.info.label
    if isinstance(index, Malformed):
        yield "state", index.state
        yield "problem", index.problem
        return
    yield "column", shown(table.info.name_of(index.registration.column))
    if (kind := kind_of(index.registration.column)) is not None:
        yield "kind", kind
    if kind == SUBSTRING:
        yield "finds", f"texts with at least {GRAM_BYTES} bytes between wildcards"
    readable = table if unreadable is None and isinstance(table, CatalogTable) else None
    dropped = changed = None
    if readable is not None and isinstance(index, Ready | Disabled):
        dropped = dropped_column(readable.info, index.manifest)
        changed = None if dropped else reader_problem(readable.info, index.manifest)
    yield "state", changed.partition(":")[0] if changed else index.state
    yield "uuid", index.registration.uuid
    if not isinstance(index, Ready | Disabled):
        yield "problem", index.problem
        yield "path", index.directory
        return
    problem = unreadable if readable is None else dropped or changed
    if problem is not None:
        yield "problem", problem
    yield from _plain(index.manifest)
    if extended and readable is not None:
        yield from _extended(readable, index, doing)


def _plain(manifest: Manifest) -> Iterator[tuple[str, str]]:
    yield "type", shown_type(manifest)
    yield "shape", manifest.options.shape
    yield "options", _options(manifest.options)
    if manifest.next_options is not None:
        yield "options after next refresh", _options(manifest.next_options)
    if manifest.comment is not None:
        yield "comment", manifest.comment
    yield "version", str(manifest.version)
    yield "instant", shown_instant(manifest)
    yield "files", str(manifest.locations.count)
    yield "rows", str(manifest.stats.rows)
    yield "bytes", str(index_bytes(manifest))
    yield from _expected(manifest)
    if (words := advice_on(manifest)) is not None:
        yield "advice", words


def _expected(manifest: Manifest) -> Iterator[tuple[str, str]]:
    stats = manifest.stats
    what = "ranges" if stats.ranges_total > stats.files_total else "files"
    if kind_of(manifest.column) == SUBSTRING:
        yield from _expected_of_texts(stats, what)
        return
    of_value = next((kind for kind in stats.expected if kind.kind == VALUE), None)
    for kind in stats.expected:
        if kind.kind == VALUE:
            continue
        least = of_value if of_value is not None and kind.kind == "present" else kind
        read = f"{kind.files:.2f} of {stats.ranges_total} expected"
        bounds = f"at least {least.exact:.2f}, by min and max {kind.minmax:.2f}"
        query = _KINDS.get(kind.kind, kind.kind)
        yield f"{what} read for {query}", f"{read}; {bounds}"
        size = f"{kind.bytes:.0f} of {stats.bytes_total} expected"
        yield f"bytes read for {query}", f"{size}; at least {least.exact_bytes:.0f}"


def _expected_of_texts(stats: BuildStats, what: str) -> Iterator[tuple[str, str]]:
    """Yields the expected reads of queries, for texts of several lengths."""
    texts = [
        (length, one)
        for length in _TEXT_LENGTHS
        for one in of_text(stats.expected, length, stats.ranges_total, stats.bytes_total)
    ]
    for length, one in texts:
        query = f"a text of {length} bytes"
        read = f"{one.files:.2f} of {stats.ranges_total} expected"
        yield f"{what} read for {query}", f"{read}; at least {one.exact:.2f}"
        size = f"{one.bytes:.0f} of {stats.bytes_total} expected"
        yield f"bytes read for {query}", f"{size}; at least {one.exact_bytes:.0f}"


def estimate_row(table: CatalogTable, column: Column, estimate: Estimate) -> Row:
    """The row of ESTIMATE for an index on one column."""
    asked = estimate.asked
    present = next((kind.files for kind in estimate.expected if kind.kind == "present"), None)
    read = present if asked is None else float(asked.files)
    words = _advice_on_estimate(table, column, estimate, always=True)
    if estimate.sampled is not None:
        whole = f"estimated by a sample of {estimate.sampled} files"
        words = whole if words is None else f"{words}. {whole[0].upper()}{whole[1:]}"
    return (
        str(column),
        estimate.files,
        None if read is None else round(read, 2),
        estimate.bytes,
        estimate.seconds,
        words,
    )


def frontier_row(table: CatalogTable, column: Column, estimate: Estimate) -> Row:
    """The row of ESTIMATE EXTENDED for an index on one column with one budget."""
    read = {kind.kind: kind for kind in estimate.expected}
    kinds: list[float | int | None] = []
    for name in _KINDS:
        kind = read.get(name)
        kinds += [None, None] if kind is None else [round(kind.files, 2), round(kind.bytes)]
    asked = estimate.asked
    return (
        str(column),
        None if estimate.options.every_key else estimate.options.budget,
        ", ".join(estimate.shapes) or None,
        estimate.bytes,
        round(100 * estimate.share, 4),
        estimate.seconds,
        estimate.files,
        *kinds,
        None if asked is None else asked.files,
        None if asked is None else asked.bytes,
        _advice_on_estimate(table, column, estimate, always=estimate.options.automatic),
    )


def _advice_on_estimate(
    table: CatalogTable, column: Column, estimate: Estimate, *, always: bool
) -> str | None:
    """Advice on an estimated index.

    If ``always`` is false, the advice does not say whether the index helps.
    """
    info, asked, options = table.info, estimate.asked, estimate.options
    if asked is not None and not asked.understood:
        return "this index has no part in the predicate"
    words = _of_granularity(options, info.format_name, info.fingerprint_parts)
    if words is None and always:
        words = advice(
            estimate.expected,
            estimate.files,
            estimate.bytes_total,
            kind=column.kind,
            mapped="map" in estimate.shapes,
        )
    return words


def _share(size: int, stats: BuildStats) -> str:
    return f"{size / stats.column_bytes:.4%}" if stats.column_bytes else "no values"


def _extended(table: CatalogTable, index: Usable, doing: str) -> Iterator[tuple[str, str]]:
    manifest = index.manifest
    stats, runs = manifest.stats, manifest.runs
    counts = against_now(table, index)
    yield "freshness", doing or stale(counts) or "current"
    for what, count in counts.items():
        yield f"files {what}", str(count)
    yield "bytes as share of column", _share(index_bytes(manifest), stats)
    yield "runs", str(len(runs))
    yield "segments", str(sum(run.segments for run in runs))
    yield "blocks", str(sum(run.blocks for run in runs))
    yield "keys summed over files", str(sum(run.keys for run in runs))
    encoders = [Encoder.from_json(dict(run.encoder)) for run in runs]
    if encoders:
        yield "keys", ", ".join(dict.fromkeys(_coding(encoder) for encoder in encoders))
    yield "nulls", str(stats.nulls)
    yield "nans", str(stats.nans)
    yield "build seconds", f"{stats.seconds:.3f}"
    yield "built by", f"Sieve {manifest.created_by.sieve} on Spark {manifest.created_by.spark}"
    # `reader_problem` can recommend a REFRESH. After a DROP COLUMN, a REFRESH does not help.
    problem = None if dropped_column(table.info, manifest) else reader_problem(table.info, manifest)
    yield "reader", problem or "unchanged"
    yield "path", index.directory


def _coding(encoder: Encoder) -> str:
    if encoder.exact:
        return "exact"
    if encoder.window is not None:
        return f"steps of 2^{encoder.window.shift} units of the last digit"
    if (splits := encoder.splits) is not None:
        return f"{splits.digits} characters behind {len(splits.points)} split points"
    return "first bytes of each value"


def stale(counts: Counter[str]) -> str:
    """The text ``stale: n files``, from the counts of `against_now`; "" for a current index."""
    behind = counts["new"] + counts["changed"]
    return f"stale: {behind} files" if behind else ""


def against_now(table: CatalogTable, index: Usable) -> Counter[str]:
    """Compares an index with the table's current files, and counts the files by their status."""
    known = read_locations(index.store, index.directory, index.manifest)
    files = table.files()
    counts = Counter({"indexed": 0, "new": 0, "changed": 0})
    counts.update(_SHOWN.get(status, "indexed") for status in file_statuses(known, files))
    counts["gone"] = len(set(known.paths).difference(file.path for file in files))
    return counts


def _options(options: IndexOptions) -> str:
    granularity = f", granularity = {options.granularity}" if options.granularity != AUTO else ""
    refresh = f", refresh = {options.refresh}" if options.refresh != MANUAL else ""
    if options.every_key:
        return f"shape = sieve, error = {options.error}{granularity}{refresh}"
    payback = f", payback = {options.payback}" if options.automatic else ""
    return f"shape = {options.shape}, budget = {options.budget}{payback}{granularity}{refresh}"
