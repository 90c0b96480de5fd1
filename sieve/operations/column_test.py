"""Column test: measures an index on a sample of files, before ADVISE suggests the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sieve.environment import Environment
from sieve.index_key import kind_of
from sieve.indexing.probes import files_read
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import Expected
from sieve.operations.estimate import estimate_index
from sieve.operations.judgement import benefit, expected_of_version
from sieve.tables.column import Column
from sieve.tables.table import CatalogTable
from sieve.workload.benefit import Benefit
from sieve.workload.suggest import ColumnTest

_ERROR: Final = 0.1
"""ADVISE suggests only indexes that would help even if queries read this share more than estimated.
CREATE draws another sample. Without this margin, CREATE could report that the values are in most
files."""


def column_test(table: CatalogTable, column: Column, environment: Environment) -> ColumnTest:
    """Estimates how many files queries read with a default index on a column.

    Raises:
        The same errors as `estimate_index`.
    """
    (estimate,) = estimate_index(table, column, [IndexOptions()], None, environment)
    nulls = estimate.with_null
    return _test(estimate.expected, estimate.files, nulls, estimate.bytes_total, _ERROR)


def tested_by_build(manifest: Manifest) -> ColumnTest:
    """The expected number of files that queries read with a version of an index.

    The version stores only the number of NULLs. So the function assumes that each NULL is in a
    different file.
    """
    stats = manifest.stats
    expected = expected_of_version(manifest)
    kind = kind_of(manifest.column)
    nulls = min(stats.nulls, stats.ranges_total)
    return _test(expected, stats.ranges_total, nulls, stats.bytes_total, kind=kind)


def _test(
    expected: Sequence[Expected],
    files: int,
    nulls: float,
    size: int,
    error: float = 0.0,
    kind: str | None = None,
) -> ColumnTest:
    reads = files_read(expected, max(1.0, size / max(1, files)))
    judged = benefit(expected, files, size, kind=kind, error=error)
    return ColumnTest(
        # If all values of the column are NULL or NaN, no query for a value needs the index.
        Benefit.CANNOT if judged is None else judged,
        files,
        reads.get("present", float(files)),
        reads.get("range", float(files)),
        float(nulls),
    )
