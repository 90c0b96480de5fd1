"""Column test: estimates an index on a sample of files before ADVISE suggests it."""

from __future__ import annotations

from typing import Final

from sieve.environment import Environment
from sieve.indexing.probes import files_read
from sieve.metadata.index_options import IndexOptions
from sieve.operations.estimate import estimate_index
from sieve.operations.judgement import benefit
from sieve.tables.column import Column
from sieve.tables.table import CatalogTable
from sieve.workload.benefit import Benefit
from sieve.workload.suggest import ColumnTest

_ERROR: Final = 0.1
"""ADVISE suggests an index only if it would also help if queries read this share more. So CREATE,
whose sample differs, does not say that the values are in most files."""


def column_test(table: CatalogTable, column: Column, environment: Environment) -> ColumnTest:
    """Estimates how many files queries read with an index on a column with default options.

    Raises:
        As `estimate_index`.
    """
    (estimate,) = estimate_index(table, column, [IndexOptions()], None, environment)
    files, size = estimate.files, estimate.bytes_total
    reads = files_read(estimate.expected, max(1.0, size / max(1, files)))
    judged = benefit(estimate.expected, files, size, error=_ERROR)
    return ColumnTest(
        # If all values of the column are NULL or NaN, no query for a value needs the index.
        Benefit.CANNOT if judged is None else judged,
        files,
        reads.get("present", float(files)),
        reads.get("range", float(files)),
    )
