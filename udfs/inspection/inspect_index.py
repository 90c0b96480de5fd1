"""``sieve_inspect`` returns one row: a summary of an index, and a picture of the index as PNG.

Example: ``SELECT summary FROM sieve_inspect('orders', 'id_sieve')``.
"""

from __future__ import annotations

import base64
import importlib.util
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from sieve.errors import UnsupportedError
from sieve.metadata.records import VALUE, Expected
from sieve.operations.registered_index import Usable
from udfs.inspection.layout import FileLayout, lay_out
from udfs.inspection.picture import draw
from udfs.inspection.version_entries import VersionEntries, read_entries

COLUMNS: Final = (("summary", "STRING"), ("png", "BINARY"))

_WIDEST: Final = 3


def inspection_rows(index: Usable, described: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns one row. The PNG is base64 text, because Sieve sends BINARY values as base64.

    Args:
        described: the index's properties, as in DESCRIBE SIEVE INDEX EXTENDED.

    Raises:
        UnsupportedError: matplotlib is missing, no file contains a key, or a later release of Sieve
            wrote the index.
        CorruptError, UnavailableError: a file of the index is damaged, or the store does not
            answer.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UnsupportedError(
            "SIEVE_NOTHING_TO_DRAW_WITH",
            "matplotlib is missing: on the driver's machine, pip install 'sieve-index[inspect]' "
            "into the Python that spark.sieve.python names",
        )
    version = read_entries(index)
    layout = lay_out(version.entries, version.names)
    if layout is None:
        table = index.manifest.table
        raise UnsupportedError(
            "SIEVE_NOTHING_TO_DRAW",
            f"no file of {table.database}.{table.table} holds a key of this index",
        )
    png = _png(version, layout, [*_title(described, version, layout)])
    summary = "\n".join(_summary(described, layout))
    return [(summary, base64.b64encode(png).decode("ascii"))]


def _png(version: VersionEntries, layout: FileLayout, title: Sequence[str]) -> bytes:
    expected = {}
    if (present := _expected(version, "present")) is not None:
        expected["exact"] = (_expected(version, VALUE) or present).exact
        if version.has_maps:
            expected["map"] = present.files
    png = io.BytesIO()
    # Omits the version of matplotlib from the PNG, so that equal pictures have equal bytes.
    as_text = version.encoder.leading_bytes is not None
    figure = draw(layout, title, version.encoder.decode, expected, as_text=as_text)
    figure.savefig(png, format="png", metadata={"Software": None})
    return png.getvalue()


def _title(
    described: Mapping[str, str], version: VersionEntries, layout: FileLayout
) -> Iterator[str]:
    share = described.get("bytes as share of column", "no share")
    yield (
        f"{described['index']}@{described['version']} on {described['table']} "
        f"({described['column']} {described['type']}): {described['files']} files, "
        f"{int(described['rows']):,} rows, {int(described['bytes']):,} bytes "
        f"({share} of the column), {described['options']}"
    )
    if (present := _expected(version, "present")) is not None:
        least = _expected(version, VALUE) or present
        yield (
            f"a key that occurs reads {present.files:.2f} files, by min and max "
            f"{present.minmax:.2f}, at the least {least.exact:.2f}"
        )
    if "advice" in described:
        yield described["advice"]
    if version.has_maps:
        yield "= and IN are answered by the map; what is drawn serves ranges"
    if layout.without:
        yield f"{layout.without} files without a key are not drawn"
    if described.get("files new", "0") != "0" or described.get("files changed", "0") != "0":
        yield (
            f"stale: {described['files new']} files new and {described['files changed']} changed "
            "since, which are read always; REFRESH SIEVE INDEX"
        )


def _expected(version: VersionEntries, kind: str) -> Expected | None:
    return next((one for one in version.manifest.stats.expected if one.kind == kind), None)


def _summary(described: Mapping[str, str], layout: FileLayout) -> Iterator[str]:
    """Yields the lines of the picture's summary."""
    width, covered = layout.width(), layout.covered()
    for key in (key for key in described if " read for " in key):
        yield f"{key}: {described[key]}"
    yield (
        f"of all keys a file spans {np.median(width):.1%} by min and max (median), "
        f"{np.median(covered):.1%} by the index"
    )
    wide = np.argsort(-covered, kind="stable")[:_WIDEST]
    for k in wide.tolist():
        name = layout.paths[k].rpartition("/")[2]
        yield f"widest: {name} with {covered[k]:.1%} of all keys, {width[k]:.1%} by min and max"
    if "advice" in described:
        yield f"advice: {described['advice']}"
