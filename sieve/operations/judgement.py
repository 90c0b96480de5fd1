"""Judges the benefit of an index from expected reads, which a build or ESTIMATE measured."""

from __future__ import annotations

from collections.abc import Sequence

from sieve.indexing.probes import files_read, least_read
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import VALUE, Expected
from sieve.workload.benefit import Benefit, benefit_of


def benefit(expected: Sequence[Expected], locations: int, bytes_total: int) -> Benefit | None:
    """The benefit of an index with these expected reads; None if the column has no key."""
    each = max(1.0, bytes_total / max(1, locations))
    reads, least = files_read(expected, each), least_read(expected, each)
    if "present" not in reads:
        return None
    return benefit_of(reads["present"], least.get(VALUE, least["present"]), locations)


def benefit_of_version(manifest: Manifest) -> Benefit | None:
    """The benefit of an index, judged by one of its versions."""
    stats = manifest.stats
    return benefit(stats.expected, stats.ranges_total, stats.bytes_total)
